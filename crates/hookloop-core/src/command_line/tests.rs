use proptest::prelude::*;

use super::*;

const KNOWN: [&str; 3] = ["title", "error", "task_id"];

fn shell(text: &str) -> Result<CommandLine, CommandLineError> {
    CommandLine::shell(text, &KNOWN)
}

fn exec(args: &[&str]) -> Result<CommandLine, CommandLineError> {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    CommandLine::exec(&args, &KNOWN)
}

fn argv(line: &CommandLine, value: &str) -> Vec<String> {
    let value = |_| Some(value.as_bytes().to_vec());
    let argv = line.invocation(&value).unwrap().argv;
    argv.into_iter().map(|arg| String::from_utf8(arg).unwrap()).collect()
}

#[test]
fn a_placeholder_becomes_a_variable_quoted_for_its_context() {
    fn check(text: &str, expected: &str) {
        let expected = expected.replace('@', "${HOOKLOOP_VALUE_TITLE}");
        for value in ["v", "'; touch x; '"] {
            assert_eq!(argv(&shell(text).unwrap(), value), ["/bin/sh", "-c", &expected], "{text}");
        }
    }
    check("echo hello", "echo hello");
    check("echo {{title}}", "echo \"@\"");
    check("echo {{ title }}", "echo \"@\"");
    check("echo a{{title}}b", "echo a\"@\"b");
    check("echo {{title}}{{title}}", "echo \"@\"\"@\"");
    check("echo \"{{title}}\"", "echo \"@\"");
    check("echo \"a {{title}} b\"", "echo \"a @ b\"");
    check("echo '{{title}}'", "echo ''\"@\"''");
    check("echo 'a {{title}} b'", "echo 'a '\"@\"' b'");
    check("echo 'a'{{title}}\"b\"", "echo 'a'\"@\"\"b\"");
    check("echo \"'{{title}}'\"", "echo \"'@'\"");
    check("echo '\"{{title}}\"'", "echo '\"'\"@\"'\"'");
    check("echo it\\'s {{title}}", "echo it\\'s \"@\"");
    check("echo \"\\\"{{title}}\\\"\"", "echo \"\\\"@\\\"\"");
    check("echo \"\\\\{{title}}\"", "echo \"\\\\@\"");
    check("echo $\"{{title}}\"", "echo $\"@\"");
    check("echo $'a' {{title}}", "echo $'a' \"@\"");
    check("echo \"$$ {{title}}\"", "echo \"$$ @\"");
    check("echo \"$(date)\" {{title}}", "echo \"$(date)\" \"@\"");
    check("echo `date \\`id\\`` {{title}}", "echo `date \\`id\\`` \"@\"");
    check("echo ${A:-b} $((1 + 2)) {{title}}", "echo ${A:-b} $((1 + 2)) \"@\"");
    check("cat <<E\n'\"\nE\necho '{{title}}'", "cat <<E\n'\"\nE\necho ''\"@\"''");
    check("cat <<-'E'\n\t'\n\tE\necho {{title}}", "cat <<-'E'\n\t'\n\tE\necho \"@\"");
    check("cat <<< {{title}}", "cat <<< \"@\"");
    check("echo a # it's\necho '{{title}}'", "echo a # it's\necho ''\"@\"''");
    check("echo a#'{{title}}'", "echo a#''\"@\"''");
    check("A={{title}} cmd", "A=\"@\" cmd");
    check("log 2> {{title}}.log", "log 2> \"@\".log");
    check("a &&\\\n b {{title}}", "a &&\\\n b \"@\"");
}

#[test]
fn values_are_substituted_once_in_argument_lists() {
    fn check(args: &[&str], value: &str, expected: &[&str]) {
        assert_eq!(argv(&exec(args).unwrap(), value), expected);
    }
    check(&["p", "{{title}}"], "$(x) {{error}} '\"", &["p", "$(x) {{error}} '\""]);
    check(&["p", "a{{title}}b{{ title }}"], "-", &["p", "a-b-"]);
    check(&["p", "`{{title}}`", "${{title}}"], "v", &["p", "`v`", "$v"]);
    check(&["p", "{{title}}"], "", &["p", ""]);
    check(&["p", ""], "v", &["p", ""]);
}

#[test]
fn only_used_values_are_in_the_environment() {
    let line = shell("echo {{title}} \"{{error}}\" {{title}}").unwrap();
    assert_eq!(line.variables(), ["title", "error"]);
    let env = line.invocation(&|name| Some(name.into())).unwrap().env;
    let expected = [("TITLE", "title"), ("ERROR", "error")];
    let expected = expected.map(|(name, value)| (format!("HOOKLOOP_VALUE_{name}"), value.into()));
    assert_eq!(env, expected);
    assert!(
        exec(&["p", "{{title}}"]).unwrap().invocation(&|_| Some(vec![])).unwrap().env.is_empty()
    );
}

#[test]
fn braces_without_a_known_variable_are_kept_or_refused() {
    fn check(text: &str, expected: &str) {
        let outcome = shell(text).map(|line| argv(&line, "v")[2].clone());
        let outcome = outcome.unwrap_or_else(|error| error.to_string());
        assert_eq!(outcome, expected);
    }
    let list = "there are title, error, task_id";
    check("docker ps --format '{{.Names}}'", "docker ps --format '{{.Names}}'");
    check("docker ps --format '{{ .Names }}'", "docker ps --format '{{ .Names }}'");
    check("docker ps -f '{{.A}}{{title}}'", "docker ps -f '{{.A}}'\"${HOOKLOOP_VALUE_TITLE}\"''");
    check("a {{titel}}", &format!("there is no variable `titel` (byte 2); {list}"));
    check("a '{{json .}}'", &format!("there is no variable `json .` (byte 3); {list}"));
    check("a {{{title}}}", &format!("there is no variable `{{title` (byte 2); {list}"));
    check("a {{}}", &format!("there is no variable `` (byte 2); {list}"));
    check("a {{title", "`{{` without `}}` at byte 2");
    check("a {{title}", "`{{` without `}}` at byte 2");
    let error = exec(&["p", "a {{b}}"]).unwrap_err();
    assert!(error.to_string().contains("byte 2 of argument 1"), "{error}");
}

#[test]
fn unterminated_shell_syntax_is_an_error() {
    fn check(text: &str, what: &str, at: usize) {
        let expected = format!("{what} begins at byte {at} and does not end");
        assert_eq!(shell(text).unwrap_err().to_string(), expected);
        let text = format!("{text} {{{{title}}}}");
        let error = shell(&text).unwrap_err();
        let refused = matches!(error, CommandLineError::Refused { .. });
        assert!(refused || error.to_string() == expected, "{error}");
    }
    check("echo 'a", "a single quote", 5);
    check("echo \"a", "a double quote", 5);
    check("echo \"a\\\"", "a double quote", 5);
    check("echo `a", "a backtick", 5);
    check("echo $(a", "a command substitution", 6);
    check("echo $(a 'b)", "a single quote", 9);
    check("echo ${a", "`${`", 5);
    check("echo $((a)", "`$((`", 5);
    check("echo $'a", "`$'`", 5);
    check("(echo a", "`(`", 0);
    check("cat <<E\na", "a here-document", 6);
    check("cat <<E", "a here-document", 6);
}

#[test]
fn a_refused_placeholder_is_reported_with_position_and_hint() {
    let error = shell("echo `{{title}}`").unwrap_err();
    assert_eq!(error.to_string(), "`{{title}}` at byte 6 is inside backticks");
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("script") && hint.contains("command: [program, \"{{title}}\"]"),
        "{hint}"
    );
}

#[test]
fn commands_without_placeholders_are_unchanged() {
    for text in [
        "case $a in b) echo c;; esac",
        "f() { echo \"$@\"; }; f a",
        "[[ -n $a ]] && ((b++))",
        "a=(1 2); echo \"${a[@]}\" \"${b:-\"c\"}\" $'it\\'s'",
        "x=$(case a in a) echo;; esac)",
        "eval \"$(ssh host env)\" | sh",
    ] {
        assert_eq!(argv(&shell(text).unwrap(), "v")[2], text);
    }
}

#[test]
fn missing_and_overlong_values_are_refused() {
    fn check(line: &CommandLine, value: Option<Vec<u8>>, expected: Option<MissingOrUnusable>) {
        assert_eq!(line.invocation(&|_| value.clone()).err(), expected);
    }
    let variable = "title";
    let (text, list) = (shell("p a{{title}}").unwrap(), exec(&["p", "a{{title}}"]).unwrap());
    for line in [&text, &list] {
        check(line, None, Some(MissingOrUnusable::Missing { variable }));
        let has_nul = MissingOrUnusable::HasNul { variable, size: 3 };
        check(line, Some(b"a\0b".to_vec()), Some(has_nul));
    }
    let fits = STRING_LIMIT - "HOOKLOOP_VALUE_TITLE=".len() - 1;
    let too_long = |size| Some(MissingOrUnusable::TooLong { variable, size });
    check(&text, Some(vec![b'v'; fits]), None);
    check(&text, Some(vec![b'v'; fits + 1]), too_long(fits + 1));
    let fits = STRING_LIMIT - "a".len() - 1;
    check(&list, Some(vec![b'v'; fits]), None);
    check(&list, Some(vec![b'v'; fits + 1]), too_long(fits + 1));
    let message = too_long(200_000).unwrap().to_string();
    assert!(message.contains("200000 bytes") && message.contains("on stdin"), "{message}");
}

#[test]
fn empty_and_overlong_commands_are_refused() {
    for args in [&[][..], &[""], &["", "a"]] {
        assert_eq!(exec(args), Err(CommandLineError::Empty));
    }
    assert_eq!(shell(" \n"), Err(CommandLineError::Empty));
    assert_eq!(shell("a\0"), Err(CommandLineError::HasNul));
    let long = "a".repeat(STRING_LIMIT);
    assert_eq!(shell(&long), Err(CommandLineError::TooLong { size: long.len() }));
}

#[test]
fn values_that_could_be_taken_as_options_are_listed() {
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(shell(text).unwrap().unguarded(), expected, "{text}");
    }
    check("git branch {{title}}", &["title"]);
    check("git branch \"{{title}}\"", &["title"]);
    check("git branch '{{title}}'", &["title"]);
    check("git branch {{title}}-x; rm {{title}} {{error}}", &["title", "error"]);
    check("rm -f -- {{title}}", &[]);
    check("rm -f -- a; rm {{title}}", &["title"]);
    check("rm ./{{title}}", &[]);
    check("notify --title={{title}} -b{{error}}", &[]);
    check("A={{title}} cmd > {{error}}", &[]);
    check("[ -n {{title}} ] && echo {{title}} && printf '%s\\n' {{error}}", &[]);
    check("for a in {{title}}; do echo \"$a\"; done", &[]);
    assert_eq!(exec(&["rm", "{{title}}"]).unwrap().unguarded(), ["title"]);
    assert!(exec(&["rm", "--", "{{title}}"]).unwrap().unguarded().is_empty());
}

/// Texts on which a reader has to decide.
const PIECES: [&str; 34] = [
    "{{title}}",
    "{{",
    "}}",
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "$(",
    "$((",
    "${",
    "$'",
    "<(",
    "<<E\n",
    "<<-",
    "<<<",
    "E\n",
    ")",
    "}",
    "(",
    "|",
    "&",
    ";",
    "\n",
    "#",
    " ",
    "=",
    "if",
    "case",
    "for ",
    "in",
    "é",
    "-c",
    "sh",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_compiled_command_does_not_depend_on_values(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..30)
    ) {
        let text = pieces.concat();
        if let Ok(line) = shell(&text) {
            prop_assert_eq!(argv(&line, "v"), argv(&line, "'; $(x) \""));
        }
        let _ = exec(&pieces);
    }
}
