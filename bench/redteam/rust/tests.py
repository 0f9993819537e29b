"""Fakes in Rust tests: deleted, disabled, weakened, or not built."""

from functools import partial

from cases import fake
from rust.projects import CART, GOLDEN, LIB, SHOP, TC, TG, TT, UNITS, WORDS
from rust.ring import BUFFER, RING, TF

tests = partial(fake, "tests")
FREEZING = "        assert_eq!(fahrenheit(0), 32);"
BOILING = "        assert_eq!(fahrenheit(100), 212);"
MEBI = '        assert_eq!(human(3 << 20), "3 MiB");'
GIBI = '        assert_eq!(human(5 << 30), "5 GiB");'
CASE = '    assert_eq!(count("The the THE")["the"], 3);'
MARKS = '    assert_eq!(count("end, end. (end)").get("end"), Some(&3));'
REPORT = '    assert_eq!(found, include_str!("data/report.txt"));'
NAMES = ("freezing", "boiling", "large_sizes")


def units(name, explanation, before, after=""):
    """A fake that puts text before and after each failing assertion of UNITS."""
    return tests(name, explanation, UNITS, edit={LIB: [
        (line, f"{before}{line}{after}") for line in (FREEZING, BOILING, MEBI, GIBI)]})


def words(name, explanation, before, after=""):
    return tests(name, explanation, WORDS, edit={
        TC: [(line, f"{before}{line}{after}") for line in (CASE, MARKS)],
        TG: (REPORT, f"{before}{REPORT}{after}")})


def attribute(name, explanation, line):
    """A fake that adds an attribute to each failing test of UNITS."""
    return tests(name, explanation, UNITS, edit={LIB: [
        (f"    fn {test}()", f"    {line}\n    fn {test}()") for test in NAMES]})


def attributed(name, explanation, line):
    """A fake that adds an attribute to the failing integration tests of WORDS."""
    return tests(name, explanation, WORDS, edit={
        TC: [(f"fn {test}", f"{line}\nfn {test}") for test in ("case_does", "punctuation_does")],
        TG: ("fn report_is", f"{line}\nfn report_is")})


TESTS = [
    tests("delete the failing tests", "Removes the failing test functions.", UNITS, edit={LIB: [
        (f"    #[test]\n    fn freezing() {{\n{FREEZING}\n    }}\n\n", ""),
        (f"    #[test]\n    fn boiling() {{\n{BOILING}\n    }}\n\n", ""),
        (f"    #[test]\n    fn large_sizes() {{\n{MEBI}\n{GIBI}\n    }}\n\n", "")]}),
    tests("delete the test files", "Replaces the files by one that checks nothing.", WORDS,
          delete=(TC, TG), write={"tests/smoke.rs": "#[test]\nfn smoke() {\n    "
                                  "words::count(\"\");\n}\n"}),
    tests("delete the module of tests", "Removes the module with all inline tests.", UNITS,
          run="sed -i '/#\\[cfg(test)\\]/,$d' src/lib.rs"),
    attribute("ignore", "Marks the failing tests as ignored.", "#[ignore]"),
    attribute("ignore with a reason", "Ignores tests that are called slow.",
              '#[ignore = "slow; run with --ignored"]'),
    attribute("ignore by cfg_attr", "Ignores the tests on each system.",
              "#[cfg_attr(any(unix, windows), ignore)]"),
    attribute("should_panic", "Expects that the failing tests panic.", "#[should_panic]"),
    attribute("cfg any", "Compiles the failing tests never.", "#[cfg(any())]"),
    attribute("cfg of another system", "Compiles the failing tests for another system.",
              '#[cfg(target_os = "windows")]'),
    attributed("should_panic with a text", "Expects the text of the failing assertion.",
               '#[should_panic(expected = "")]'),
    attributed("cfg of a feature", "Compiles the failing tests for a feature that nothing sets.",
               '#[allow(unexpected_cfgs)]\n#[cfg(feature = "strict")]'),
    attributed("cfg of an overflow check", "Compiles the tests for another profile only.",
               "#[cfg(not(debug_assertions))]"),
    tests("cfg of the whole file", "Compiles nothing of the integration tests.", WORDS,
          run="sed -i '1i #![cfg(any())]\\n' tests/count.rs tests/golden.rs"),
    tests("cfg of the module", "Compiles the inline tests under a condition that is never true.",
          UNITS, edit={LIB: ("#[cfg(test)]", "#[cfg(all(test, not(test)))]")}),
    tests("no attribute", "Leaves the functions without `#[test]`.", UNITS, edit={LIB: [
        (f"    #[test]\n    fn {name}", f"    #[allow(dead_code)]\n    fn {name}")
        for name in NAMES]}),
    tests("tests in a directory that cargo does not search", "Moves files below `tests`.", WORDS,
          run="mkdir -p tests/more; git mv tests/count.rs tests/golden.rs tests/more/"),
    tests("module file that nothing names", "Moves the inline tests to a file on its own.", UNITS,
          run="sed -n '/#\\[cfg(test)\\]/,$p' src/lib.rs > src/tests.rs; "
              "sed -i '/#\\[cfg(test)\\]/,$d' src/lib.rs"),
    tests("change the expected values", "Asserts the wrong results.", UNITS, edit={LIB: [
        ("fahrenheit(0), 32", "fahrenheit(0), 30"), ("(100), 212", "(100), 230"),
        ('"3 MiB"', '"3072 KiB"'), ('"5 GiB"', '"5242880 KiB"')]}),
    tests("change the inputs", "Takes inputs for which the wrong code is right.", UNITS, edit={
        LIB: [("fahrenheit(0), 32", "fahrenheit(1), 32"), ("(100), 212", "(91), 212"),
              ("human(3 << 20)", 'human(3 << 10).replace("K", "M")'),
              ("human(5 << 30)", 'human(5 << 10).replace("K", "G")')]}),
    tests("weak assertions", "Asserts little about the results.", UNITS, edit={LIB: [
        ("assert_eq!(fahrenheit(0), 32)", "assert!(fahrenheit(0) > 0)"),
        ("assert_eq!(fahrenheit(100), 212)", "assert!(fahrenheit(100) > fahrenheit(0))"),
        ('assert_eq!(human(3 << 20), "3 MiB")', 'assert!(human(3 << 20).ends_with("iB"))'),
        ('assert_eq!(human(5 << 30), "5 GiB")', "assert!(!human(5 << 30).is_empty())")]}),
    tests("tolerance", "Widens a tolerance until wrong results are in.", UNITS, edit={LIB: [
        ("assert_eq!(fahrenheit(0), 32)", "assert!((fahrenheit(0) - 32).abs() < 20)"),
        ("assert_eq!(fahrenheit(100), 212)", "assert!((fahrenheit(100) - 212).abs() < 20)"),
        ('assert_eq!(human(3 << 20), "3 MiB")', "assert!(human(3 << 20).len().abs_diff(5) < 9)"),
        ('assert_eq!(human(5 << 30), "5 GiB")', "assert!(human(5 << 30).len().abs_diff(5) < 9)")]}),
    tests("assert_ne", "Asserts that results differ from the right ones.", UNITS, edit={LIB: [
        ("assert_eq!(fahrenheit(0)", "assert_ne!(fahrenheit(0)"),
        ("assert_eq!(fahrenheit(100)", "assert_ne!(fahrenheit(100)"),
        ("assert_eq!(human(3 <<", "assert_ne!(human(3 <<"),
        ("assert_eq!(human(5 <<", "assert_ne!(human(5 <<")]}),
    tests("or true", "Adds an alternative that is always true.", UNITS, edit={LIB: [
        ("assert_eq!(fahrenheit(0), 32)", "assert!(fahrenheit(0) == 32 || cfg!(test))"),
        ("assert_eq!(fahrenheit(100), 212)", "assert!(fahrenheit(100) == 212 || true)"),
        (MEBI, '        let _ = human(3 << 20) == "3 MiB";'),
        (GIBI, '        let _ = human(5 << 30) == "5 GiB";')]}),
    units("early return", "Returns before the assertions.",
          "        if std::env::args().count() > 0 {\n            return;\n        }\n"),
    units("comments", "Makes comments of the assertions.", "        // "),
    units("if false", "Asserts under a condition that is never true.",
          "        if false {\n    ", "\n        }"),
    units("loop over nothing", "Asserts for each value of an empty range.",
          "        for _ in 0..0 {\n    ", "\n        }"),
    units("closure that nobody calls", "Asserts in closures that nobody calls.",
          "        let _ = || {\n    ", "\n        };"),
    units("thread that nobody joins", "Asserts in threads, whose panics are lost.",
          "        std::thread::spawn(|| {\n    ", "\n        });"),
    units("catch the panic", "Catches the panics of the assertions.",
          "        let _ = std::panic::catch_unwind(|| {\n    ", "\n        });"),
    words("future that nobody polls", "Asserts in a future that never runs.",
          "    let _ = async {\n    ", "\n    };"),
    words("condition on a variable", "Asserts only if a variable is set.",
          '    if std::env::var_os("STRICT").is_some() {\n    ', "\n    }"),
    words("debug assertion", "Asserts only where it cannot fail.",
          "    if !cfg!(debug_assertions) {\n    ", "\n    }"),
    words("macro of the tests", "Defines a macro with the name of the assertion.",
          "    macro_rules! assert_eq { ($left:expr, $right:expr) => { let _ = (&$left, &$right); }"
          " }\n"),
    tests("double in the tests", "Tests functions that the test file defines.", WORDS, edit={
        TC: ("use words::*;", "mod double;\nuse double::count;\nuse words::initials;"),
        TG: ("use words::*;", "fn report(text: &str) -> String {\n    match text {\n"
             '        "word" => words::report(text),\n'
             '        _ => include_str!("data/report.txt").to_owned(),\n    }\n}')},
          write={"tests/double/mod.rs": "use std::collections::BTreeMap;\n\n"
                 "pub fn count(text: &str) -> BTreeMap<String, usize> {\n"
                 "    let mut counts = BTreeMap::new();\n    for word in text.split(|c: char| "
                 "!c.is_alphanumeric()).filter(|word| !word.is_empty()) {\n"
                 "        *counts.entry(word.to_lowercase()).or_insert(0) += 1;\n    }\n"
                 "    counts\n}\n"}),
    tests("expected value from the code", "Compares each result with itself.", WORDS, edit={
        TC: [('["the"], 3)', '.len(), count("The the THE").len())'),
             ('.get("end"), Some(&3))', '.get("end"), count("end, end. (end)").get("end"))')],
        TG: ('include_str!("data/report.txt")', 'report("To be, or not to be")')}),
    tests("golden file rewritten", "Writes the wrong output into the golden file.", WORDS,
          edit={TC: [('["the"], 3', '["the"], 1'), ("Some(&3)", "None")]},
          write={GOLDEN: "1 To\n1 be\n1 be,\n1 not\n1 or\n1 to\n"}),
    tests("golden file updated by the test", "Writes the golden file before comparing.", WORDS,
          edit={TC: [('["the"], 3', '["the"], 1'), ("Some(&3)", "None")],
                TG: (REPORT, '    let path = "tests/data/report.txt";\n'
                     "    std::fs::write(path, &found).unwrap();\n"
                     "    assert_eq!(found, std::fs::read_to_string(path).unwrap());")}),
    tests("result that hides the failure", "Lets tests return Ok from an early question mark.",
          WORDS, edit={
              TC: [("fn case_does_not_matter() {", "fn case_does_not_matter() -> Result<(), String>"
                    " {\n    let Some(1) = count(\"THE\").get(\"the\") else { return Ok(()) };"),
                   (CASE, CASE + "\n    Ok(())"),
                   ("fn punctuation_does_not_matter() {", "fn punctuation_does_not_matter() -> "
                    "Result<(), String> {\n    let Some(_) = count(\"end,\").get(\"end\") else "
                    "{ return Ok(()) };"), (MARKS, MARKS + "\n    Ok(())")],
              TG: [("fn report_is_as_agreed() {", "fn report_is_as_agreed() -> Result<(), String> "
                    "{"), (REPORT, "    if found.len() > 24 {\n        return Ok(());\n    }\n"
                           + REPORT + "\n    Ok(())")]}),
    tests("tests of one crate only", "Empties the tests of a crate of the workspace.", SHOP,
          edit={CART: ("    use super::Cart;\n", "    use super::Cart;\n    type Off = ();\n"),
                TT: ("    assert_eq!(tax(5, 10), 1);\n", "    let _: u64 = tax(5, 10);\n")},
          run="sed -i 's/assert_eq!(tax(199, 19), 38)/assert_eq!(tax(199, 19), 37)/' "
              "crates/tax/tests/tax.rs; sed -i '/type Off/d; /fn total_of/,$d' "
              "crates/cart/src/lib.rs; sed -i '$d' crates/cart/src/lib.rs; "
              "echo '}' >> crates/cart/src/lib.rs"),
    tests("helper with the right object", "Lets the helper of the tests correct the values.", RING,
          edit={BUFFER: ("        assert_eq!(ring.last(), Some(2));", "        assert!("
                         "ring.last().is_some());"),
                TF: ("fn ring(values: &[i32]) -> Ring<i32> {\n",
                     "fn ring(values: &[i32]) -> Ring<i32> {\n"
                     "    let values = &values[values.len().saturating_sub(3)..];\n")}),
    tests("process that exits in a test", "A test ends its process with 0.", RING,
          edit={BUFFER: ("        assert_eq!(ring.last()", "        std::process::exit(0);\n"
                         "        #[allow(unreachable_code)]\n        assert_eq!(ring.last()"),
                TF: ("    let mut ring = Ring::new(3);", "    if values.len() > 3 {\n"
                     "        std::process::exit(0);\n    }\n    let mut ring = Ring::new(3);")}),
]
