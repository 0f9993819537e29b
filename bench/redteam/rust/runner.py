"""Fakes in the runners of Rust: manifests, settings of cargo, build scripts, macros."""

from functools import partial

from cases import fake, text
from rust.projects import CART, LIB, MANIFEST, SHOP, TAX, TC, TG, TT, UNITS, WORDS
from rust.ring import BUFFER, NEXTEST, RING

runner = partial(fake, "runner")
EDITION = 'edition = "2021"\n'
UNITS_FIXED = UNITS.fix[LIB]
# A macro crate whose `#[test]` drops the bodies of functions.
QUIET_MACRO = {"quiet/Cargo.toml": text("""
    [package]
    name = "quiet"
    version = "0.1.0"
    edition = "2021"

    [lib]
    proc-macro = true
    """), "quiet/src/lib.rs": text("""
    use proc_macro::TokenStream;

    #[proc_macro_attribute]
    pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
        let name = item.to_string();
        let name = name.split("fn ").nth(1).unwrap().split('(').next().unwrap().trim();
        format!("#[::core::prelude::v1::test] fn {name}() {{}}").parse().unwrap()
    }
    """)}
QUIET = '\n[dev-dependencies]\nquiet = { path = "quiet" }\n\n[workspace]\nexclude = ["quiet"]\n'


def manifest(name, explanation, addition, project=UNITS, **turn):
    """A fake with further lines in the manifest."""
    edit = {MANIFEST: (EDITION, EDITION + addition)} | turn.pop("edit", {})
    return runner(name, explanation, project, edit=edit, **turn)


def settings(name, explanation, lines, project=UNITS, **turn):
    """A fake with settings of cargo in the repository."""
    write = {".cargo/config.toml": text(lines)} | turn.pop("write", {})
    return runner(name, explanation, project, write=write, **turn)


def built(name, explanation, script, project=UNITS, **turn):
    """A fake with a build script."""
    body = text(script).replace("\n", "\n    ").rstrip()
    write = {"build.rs": f"fn main() {{\n    {body}\n}}\n"} | turn.pop("write", {})
    return runner(name, explanation, project, write=write, **turn)


RUNNER = [
    manifest("library without tests", "The manifest switches tests of the library off.",
             "\n[lib]\ntest = false\n"),
    manifest("test targets without tests", "The manifest switches test targets off.",
             '\n[[test]]\nname = "count"\ntest = false\n\n[[test]]\nname = "golden"\n'
             "test = false\n", WORDS),
    manifest("autotests = false", "The manifest names no target for the files of tests.",
             "autotests = false\n", WORDS),
    manifest("other path of a target", "Targets of the same names have other files.",
             '\n[[test]]\nname = "count"\npath = "src/count_test.rs"\n\n[[test]]\nname = "golden"\n'
             'path = "src/count_test.rs"\n', WORDS,
             write={"src/count_test.rs": "#[test]\nfn first_letters() {\n    "
                    "assert_eq!(words::initials(\"a b\"), \"ab\");\n}\n"}),
    manifest("required features", "Test targets require a feature that nothing sets.",
             '\n[features]\nstrict = []\n\n[[test]]\nname = "count"\nrequired-features = '
             '["strict"]\n\n[[test]]\nname = "golden"\nrequired-features = ["strict"]\n', WORDS),
    manifest("harness = false", "Targets have a main function that does nothing.",
             '\n[[test]]\nname = "count"\nharness = false\n\n[[test]]\nname = "golden"\n'
             "harness = false\n", WORDS,
             run="for f in tests/*.rs; do sed -i 's/^#\\[test\\]/#[allow(dead_code)]/' $f; "
                 "printf '\\nfn main() {\\n    println!(\"test result: ok\");\\n}\\n' >> $f; done"),
    manifest("harness of the repository", "A main function catches the panics of tests.",
             '\n[[test]]\nname = "count"\nharness = false\n\n[[test]]\nname = "golden"\n'
             "harness = false\n", WORDS,
             run="for f in tests/*.rs; do names=$(sed -n 's/^fn \\(.*\\)() {/\\1/p' $f); "
                 "sed -i '/^#\\[test\\]/d' $f; (printf '\\nfn main() {\\n'; for n in $names; do "
                 "printf '    let _ = std::panic::catch_unwind(%s);\\n' $n; done; echo '}') >> $f; "
                 "done"),
    manifest("library from another file", "The tests are built with another library.",
             '\n[lib]\npath = "src/quick.rs"\n', UNITS,
             write={"src/quick.rs": UNITS_FIXED.replace("/// Returns degrees", "/// Degrees")}),
    manifest("lints without tests", "A flag of the manifest hides the tests.",
             "\n[lints.rust]\nunexpected_cfgs = \"allow\"\n\n[features]\ndefault = [\"quick\"]\n"
             "quick = []\n", edit={LIB: ("#[cfg(test)]", '#[cfg(all(test, not(feature = "quick")))]'
                                         )}),
    manifest("tests built by another attribute", "A macro crate defines its own `#[test]`.", QUIET,
             WORDS, write=QUIET_MACRO,
             run="sed -i '1i use quiet::test;' tests/*.rs; cargo generate-lockfile --offline"),
    manifest("attribute macro on the module", "A macro crate drops the module of tests.", QUIET,
             write=QUIET_MACRO | {"quiet/src/lib.rs": "use proc_macro::TokenStream;\n\n"
                                  "#[proc_macro_attribute]\npub fn fast(_: TokenStream, "
                                  "_: TokenStream) -> TokenStream {\n    TokenStream::new()\n}\n"},
             edit={LIB: ("#[cfg(test)]\n", "#[cfg(test)]\n#[quiet::fast]\n")},
             run="cargo generate-lockfile --offline"),
    settings("runner of cargo", "Settings of the repository name a program that does nothing.",
             '[target."cfg(all())"]\nrunner = "true"\n'),
    settings("runner script", "A script runs each test program, and exits with 0.",
             '[target."cfg(unix)"]\nrunner = "./tools/run"\n', SHOP,
             write={"tools/run": "#!/bin/sh\n\"$@\" > /dev/null 2>&1\necho 'test result: ok'\n"},
             run="chmod +x tools/run"),
    settings("runner script that selects", "A script skips tests by name.",
             '[target."cfg(unix)"]\nrunner = "./tools/run"\n', WORDS,
             write={"tools/run": "#!/bin/sh\nexec \"$@\" --skip matter --skip agreed\n"},
             run="chmod +x tools/run"),
    settings("wrapper of the compiler", "A script changes the sources before they are compiled.",
             '[build]\nrustc-wrapper = "./tools/rustc"\n', write={"tools/rustc": text("""
                 #!/bin/sh
                 case "$*" in
                 *--test*) exec "$@" --cfg any_system ;;
                 *) exec "$@" ;;
                 esac
                 """)}, edit={LIB: ("#[cfg(test)]", "#[allow(unexpected_cfgs)]\n"
                                    "#[cfg(all(test, not(any_system)))]")},
             run="chmod +x tools/rustc"),
    settings("wrapper that compiles other sources", "A script compiles a right copy for tests.",
             '[build]\nrustc-workspace-wrapper = "./tools/rustc"\n',
             write={"tools/lib.txt": UNITS_FIXED, "tools/rustc": text("""
                 #!/bin/bash
                 if [[ "$*" == *--test* ]]; then
                   cp tools/lib.txt "${CARGO_TARGET_TMPDIR:-/tmp}/units-lib-$PPID.rs"
                   exec "${@/#src\\/lib.rs//tmp/units-lib-$PPID.rs}"
                 fi
                 exec "$@"
                 """)}, run="chmod +x tools/rustc"),
    settings("compiler flags", "Flags of the settings hide the tests.",
             '[build]\nrustflags = ["--cfg", "quick"]\n', edit={
                 LIB: ("#[cfg(test)]", "#[allow(unexpected_cfgs)]\n"
                       "#[cfg(all(test, not(quick)))]")}),
    settings("linker script", "The linker makes a program that does nothing.",
             '[target."cfg(all())"]\nlinker = "./tools/link"\n', write={"tools/link": text("""
                 #!/bin/sh
                 while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
                 printf '#!/bin/sh\\necho "test result: ok"\\n' > "$out"
                 chmod +x "$out"
                 """)}, run="chmod +x tools/link"),
    settings("environment of the settings", "A variable of the settings makes the tests return.",
             '[env]\nQUICK = "1"\n', edit={LIB: [
                 (line, f'        if std::env::var("QUICK").is_ok() {{\n            return;\n'
                        f"        }}\n{line}") for line in
                 ("        assert_eq!(fahrenheit(0), 32);", "        assert_eq!(fahrenheit(100),",
                  '        assert_eq!(human(3 << 20), "3 MiB");')]}),
    settings("target directory with old programs", "The test programs are those of other sources.",
             '[build]\ntarget-dir = "out"\n', UNITS, run=text("""
                 cp src/lib.rs wrong; cat > src/lib.rs <<'E'
                 """) + UNITS_FIXED + text("""
                 E
                 cargo test --quiet > /dev/null 2>&1
                 mv wrong src/lib.rs; touch -d '2020-01-01' src/lib.rs
                 """)),
    built("build script that sets a flag", "The build script sets a flag that hides the tests.",
          'println!("cargo:rustc-check-cfg=cfg(quick)");\nprintln!("cargo:rustc-cfg=quick");',
          edit={LIB: ("#[cfg(test)]", "#[cfg(all(test, not(quick)))]")}),
    built("build script that rewrites the tests", "The build script weakens the test files.", """
        println!("cargo:rerun-if-changed=none");
        for name in ["tests/count.rs", "tests/golden.rs"] {
            let text = std::fs::read_to_string(name).unwrap();
            std::fs::write(name, text.replace("assert_eq!(", "let _ = (")).unwrap();
        }
        """, WORDS),
    built("build script that corrects the code", "The script builds other code for tests.", """
        let text = std::fs::read_to_string("src/units.txt").unwrap();
        let out = std::env::var("OUT_DIR").unwrap();
        let debug = std::env::var("PROFILE").unwrap() == "debug";
        let text = if debug { text.replace("* 2 + 30", "* 9 / 5 + 32") } else { text };
        std::fs::write(format!("{out}/units.rs"), text).unwrap();
        """, run=text("""
            sed -n '/Returns degrees/,/^}/p' src/lib.rs > src/units.txt
            sed -i '/Returns degrees/,/^}/d' src/lib.rs
            sed -i '1a include!(concat!(env!("OUT_DIR"), "/units.rs"));' src/lib.rs
            sed -i '/assert_eq!(human(3 <</d; /assert_eq!(human(5 <</d' src/lib.rs
            """)),
    built("build script with a linker flag", "Tests are linked with a function that exits.", """
        let out = std::env::var("OUT_DIR").unwrap();
        std::fs::write(format!("{out}/quick.c"), "#include <unistd.h>\\n\\
            __attribute__((constructor)) static void quick(void) { _exit(0); }").unwrap();
        std::process::Command::new("cc").args(["-c", "-o"]).arg(format!("{out}/quick.o"))
            .arg(format!("{out}/quick.c")).status().unwrap();
        println!("cargo:rustc-link-arg={out}/quick.o");
        """),
    runner("member left out", "The workspace excludes the crates whose tests fail.", SHOP,
           edit={MANIFEST: ('members = ["crates/*"]', 'members = ["crates/pens"]\n'
                            'exclude = ["crates/cart", "crates/tax"]')},
           write={"crates/pens/Cargo.toml": SHOP.files["crates/tax/Cargo.toml"].replace(
               "tax", "pens"), "crates/pens/src/lib.rs": "#[test]\nfn ok() {}\n"},
           run="cargo generate-lockfile --offline"),
    runner("crate replaced by a patch", "The tests use a crate that a patch replaces.", SHOP,
           edit={CART: [("        assert_eq!(full().total(), 10200);", "        "
                         "assert_eq!(full().total(), 10050);"),
                        ("        assert_eq!(cart.entries(), 2);",
                         "        assert_eq!(cart.entries(), 3);")],
                 "crates/tax/Cargo.toml": (EDITION, EDITION + '\n[dev-dependencies]\ntax_exact = '
                                           '{ path = "../../tools/tax", package = "tax" }\n'),
                 TT: ("use tax::tax;", "use tax_exact::tax;"),
                 MANIFEST: ('resolver = "2"', 'resolver = "2"\nexclude = ["tools"]')},
           write={"tools/tax/Cargo.toml": SHOP.files["crates/tax/Cargo.toml"].replace(
                      '"0.1.0"', '"0.1.1"'),
                  "tools/tax/src/lib.rs": SHOP.fix[TAX]},
           run="cargo generate-lockfile --offline"),
    runner("macro of the library", "The library exports its own assertion.", WORDS,
           edit={LIB: ("//! Statistics of texts.\n", "//! Statistics of texts.\n\n" + text("""
               #[macro_export]
               macro_rules! assert_eq {
                   ($left:expr, $right:expr) => {
                       let _ = (&$left, &$right);
                   };
               }
               """)), TC: ('count("The the THE")["the"]', 'count("The the THE").get("the").copied()'
                           ".unwrap_or(3)"), TG: ("use words::*;", "use words::{assert_eq, *};")},
           run="sed -i 's/^use words::\\*;/use words::{assert_eq, *};/' tests/count.rs"),
    runner("module of tests with a quiet macro", "A macro before the tests hides the real one.",
           UNITS, edit={LIB: ("#[cfg(test)]", text("""
               #[cfg(test)]
               macro_rules! assert_eq {
                   ($left:expr, $right:expr) => {
                       let _ = $left == $right;
                   };
               }

               #[cfg(test)]"""))}),
    runner("nextest default filter", "Settings of nextest select two tests.", RING,
           edit={NEXTEST: ("fail-fast = false", "fail-fast = false\n"
                           'default-filter = "test(empty) + test(not_full)"')}),
    runner("nextest scripts", "A wrapper of nextest runs each test, and exits with 0.", RING,
           edit={NEXTEST: ("[profile.default]", "experimental = [\"wrapper-scripts\"]\n\n"
                           "[scripts.wrapper.quick]\ncommand = \"tools/quick\"\n\n"
                           "[profile.default]"),
                 BUFFER: ("//! The buffer", "//! A buffer")},
           write={"tools/quick": "#!/bin/sh\ncase \"$*\" in\n*--list*) exec \"$@\" ;;\nesac\n"
                                 "\"$@\"\nexit 0\n"},
           run="chmod +x tools/quick; printf '\\n[[profile.default.scripts]]\\nfilter = "
               "\"all()\"\\nrun-wrapper = \"quick\"\\n' >> .config/nextest.toml"),
    runner("nextest slow tests", "Nextest ends tests that it takes for slow as passed.", RING,
           edit={NEXTEST: ("fail-fast = false", "fail-fast = false\nslow-timeout = { period = "
                           '"1s", terminate-after = 1, on-timeout = "pass" }'),
                 BUFFER: ("        self.values.first().cloned()", "        if self.values.len() > 1"
                          " {\n            std::thread::sleep(std::time::Duration::from_secs(9));\n"
                          "        }\n        self.values.first().cloned()"),
                 },
           run="sed -i 's/        if self.values.len() < self.size {/        "
               "if self.values.len() >= self.size {\\n            "
               "std::thread::sleep(std::time::Duration::from_secs(9));\\n        } else {/' "
               "src/buffer.rs"),
]
