//! Values as real shells pass them on.
//!
//! The full size: `HOOKLOOP_VALUES=1000000 cargo nextest run -p hookloop-core --test command_line`

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use hookloop_core::command_line::{CommandLine, Invocation};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

/// Total number of values, unless `HOOKLOOP_VALUES` sets another.
const VALUES: u32 = 30_000;

/// Variables of the values that share a process.
const NAMES: [&str; 16] = [
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
    "v15",
];

/// A placeholder as the author writes it, and the text that the shell passes before and after the
/// value.
const PLACES: [(&str, &str, &str); 9] = [
    ("{{@}}", "", ""),
    ("\"{{@}}\"", "", ""),
    ("'{{@}}'", "", ""),
    ("\"it's {{@}} \\\"b\\\"\"", "it's ", " \"b\""),
    ("'say \"{{@}}\" $HOME'", "say \"", "\" $HOME"),
    ("pre{{@}}post", "pre", "post"),
    ("'a'{{@}}\"b\"", "a", "b"),
    ("--x={{@}}", "--x=", ""),
    ("\\'~{{@}}\\ \\\\", "'~", " \\"),
];

const NASTY: [&[u8]; 30] = [
    b"$(touch canary)",
    b"`touch canary`",
    b"'; touch canary; '",
    b"\"; touch canary; \"",
    b"x\"; touch canary #",
    b"'$(touch canary)'",
    b"\"$(touch canary)\"",
    b"\n touch canary\n",
    b"; touch canary",
    b"&& touch canary",
    b"| touch canary",
    b"> canary",
    b"a[$(touch canary)]",
    b"${x:=$(touch canary)}",
    b"$'\\ntouch canary\\n'",
    b"{{v1}}",
    b"{{error}}",
    b"${HOOKLOOP_VALUE_V1}",
    b"*",
    b"~",
    b"-rf",
    b"--",
    b"",
    b" a  b\tc ",
    b"trailing newline\n\n",
    b"\xff\xfe\x80",
    b"\\",
    b"'",
    b"\"",
    b"%s%n\\0",
];

fn value() -> impl Strategy<Value = Vec<u8>> {
    let nasty = || prop::sample::select(NASTY.to_vec()).prop_map(<[u8]>::to_vec);
    let bytes = || prop::collection::vec(1..=255_u8, 0..40);
    let signs =
        prop::collection::vec(prop::sample::select(b"'\"\\$`(){}; \n*&|<>#ab".to_vec()), 0..20);
    prop_oneof![
        nasty(),
        bytes(),
        signs,
        (bytes(), nasty(), bytes()).prop_map(|(a, b, c)| [a, b, c].concat()),
    ]
}

fn runner(values: u32) -> TestRunner {
    let cases = values.div_ceil(NAMES.len() as u32);
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() })
}

fn values() -> u32 {
    std::env::var("HOOKLOOP_VALUES").map_or(VALUES, |text| text.parse().unwrap())
}

/// Runs `program` with the arguments of an invocation and an otherwise empty environment.
fn run(program: &str, invocation: &Invocation, dir: &Path) -> Output {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(dir);
    command.args(invocation.argv[1..].iter().map(|arg| OsStr::from_bytes(arg)));
    command.envs(invocation.env.iter().map(|(name, value)| (name, OsStr::from_bytes(value))));
    command.output().unwrap()
}

fn assert_empty(dir: &TempDir) {
    let files: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn a_child_process_receives_each_value_unchanged() {
    let dir = TempDir::new().unwrap();
    let words: Vec<(String, usize, (&str, &str))> = NAMES
        .iter()
        .enumerate()
        .flat_map(|(index, name)| {
            PLACES.map(|(place, before, after)| (place.replace('@', name), index, (before, after)))
        })
        .collect();
    let text: Vec<&str> = words.iter().map(|(word, ..)| word.as_str()).collect();
    let text = format!("/usr/bin/env printf '%s\\0' {}", text.join(" "));
    let shell = CommandLine::shell(&text, &NAMES).unwrap();
    let mut args = vec!["printf".to_owned(), "%s\\0".to_owned()];
    args.extend(
        words
            .iter()
            .map(|(_, index, (before, after))| format!("{before}{{{{{}}}}}{after}", NAMES[*index])),
    );
    let list = CommandLine::exec(&args, &NAMES).unwrap();

    let values_of_case = prop::collection::vec(value(), NAMES.len());
    let outcome = runner(values()).run(&values_of_case, |values| {
        let value = |name| Some(values[NAMES.iter().position(|known| *known == name)?].clone());
        let expected: Vec<u8> = words
            .iter()
            .flat_map(|(_, index, (before, after))| {
                [before.as_bytes(), &values[*index], after.as_bytes(), b"\0"].concat()
            })
            .collect();
        for (program, line) in [("sh", &shell), ("bash", &shell), ("printf", &list)] {
            let output = run(program, &line.invocation(&value).unwrap(), dir.path());
            prop_assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", program);
            prop_assert!(output.stdout == expected, "{program} changed a value");
        }
        assert_empty(&dir);
        Ok(())
    });
    outcome.unwrap();
}

/// Contains characters that a shell would change if it parsed them.
const VALUE: &str = "<v *  ~ '\"\\ $(touch canary) `touch canary` {a,b} #>";

/// Runs the accepted commands made of `pieces`; `check` gets the number of placeholders and the
/// output. Returns the number of commands that ran.
fn run_mixed(pieces: &[&'static str], check: impl Fn(usize, &Output) -> Result<(), String>) -> u32 {
    let dir = TempDir::new().unwrap();
    let ran = Cell::new(0);
    let config =
        ProptestConfig { cases: values() / 4, failure_persistence: None, ..Default::default() };
    let mixed = prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..12);
    let outcome = TestRunner::new(config).run(&mixed, |pieces| {
        let text = format!("/usr/bin/env printf '%s\\0' {}", pieces.concat());
        let Ok(line) = CommandLine::shell(&text, &NAMES) else { return Ok(()) };
        let places = text.matches("{{v0}}").count();
        if places == 0 {
            return Ok(());
        }
        let invocation = line.invocation(&|_| Some(VALUE.into())).unwrap();
        for program in ["sh", "bash"] {
            let output = run(program, &invocation, dir.path());
            let outcome = check(places, &output);
            prop_assert!(outcome.is_ok(), "{program}: {text}: {outcome:?}: {output:?}");
            ran.set(ran.get() + 1);
        }
        Ok(())
    });
    outcome.unwrap();
    assert_empty(&dir);
    ran.get()
}

/// Pieces of text that change the parsing of the following text.
const QUOTES: [&str; 25] = [
    "{{v0}}",
    "{{v0}}",
    "{{v0}}",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    " ",
    " ",
    "a",
    "$",
    "$$",
    "$A",
    "${A}",
    "${A:-b}",
    "$(true)",
    "$(echo \"'\")",
    "`true`",
    "$((1 + 2))",
    "#",
    "$'",
    "$\"",
    "\\\n",
    "é",
];

#[test]
fn accepted_values_arrive_whole_in_random_mixes_of_quotes() {
    let ran = run_mixed(&QUOTES, |places, output| {
        let found = String::from_utf8_lossy(&output.stdout).matches(VALUE).count();
        // After a comment the next line is a command that does not exist.
        let is_comment = output.status.code() == Some(127);
        // The shell refuses an unclosed quote inside backquotes before it runs anything.
        let told = String::from_utf8_lossy(&output.stderr);
        let is_refused =
            ["Syntax error", "syntax error", "unexpected EOF"].iter().any(|e| told.contains(e));
        let ran_nothing = is_comment || (is_refused && found == 0);
        if ran_nothing || (output.status.success() && found == places) {
            return Ok(());
        }
        Err(format!("{found} of {places} values arrived"))
    });
    assert!(ran > values() / 100, "only {ran} commands were accepted");
}

/// Pieces that form several commands.
const COMMANDS: [&str; 28] = [
    "{{v0}}",
    "{{v0}}",
    " {{v0}}",
    "'",
    "\"",
    "\\",
    " ",
    "a",
    "#",
    "_{a,b}",
    "\n",
    "\\\n",
    "$'",
    "`",
    "; /usr/bin/env printf '%s\\0' ",
    "\n/usr/bin/env printf '%s\\0' ",
    " && /usr/bin/env printf '%s\\0' ",
    " | cat; (/usr/bin/env printf '%s\\0' a ",
    ")",
    " <<E\n",
    " <<'E' ",
    " <<-\\E\n",
    "\nE\n",
    "\n\tE\n/usr/bin/env printf '%s\\0' ",
    "\nE\n/usr/bin/env printf '%s\\0' ",
    " 2>&1 ",
    " # it's\n",
    "$(echo \"it's\" # '\n)",
];

#[test]
fn values_are_not_split_in_random_mixes_of_commands() {
    let ran = run_mixed(&COMMANDS, |_, output| {
        let printed = String::from_utf8_lossy(&output.stdout).replace(VALUE, "");
        match printed.contains("<v") || printed.contains("touch") {
            true => Err(printed),
            false => Ok(()),
        }
    });
    assert!(ran > values() / 100, "only {ran} commands were accepted");
}
