//! Commands with placeholders for values: a shell never parses a value.
//!
//! Input: a byte that selects the form (bit 0: a list, one line for each argument; bit 1: `bash`
//! instead of `sh`), then the command, then, after NULs, the values of `{{x}}` and `{{y}}`.
//!
//! An accepted command of harmless words is also run, with values that create a file if a shell
//! parses them.

#![no_main]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use hookloop_core::command_line::{CommandLine, Invocation, MissingOrUnusable, env_name};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const KNOWN: [&str; 2] = ["x", "y"];

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(3, |byte| *byte == 0);
    let Ok(text) = std::str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let (x, y) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if choice & 1 == 1 {
        let args: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if let Ok(command) = CommandLine::exec(&args, &KNOWN) {
            check_list(&command, &args, x, y);
        }
    } else if let Ok(command) = CommandLine::shell(text, &KNOWN) {
        check_line(&command, text, x, y);
        if !command.variables().is_empty() && is_harmless(text) {
            let shell = if choice & 2 == 0 { "sh" } else { "bash" };
            check_run(&command, text, shell);
        }
    }
});

fn invoke(command: &CommandLine, x: &[u8], y: &[u8]) -> Result<Invocation, MissingOrUnusable> {
    command.invocation(&|name| Some(if name == "x" { x.to_vec() } else { y.to_vec() }))
}

/// Checks that a shell parses only the author's text, which does not depend on the values.
fn check_line(command: &CommandLine, text: &str, x: &[u8], y: &[u8]) {
    let Ok(bare) = invoke(command, b"", b"") else { panic!("empty values fit") };
    let [sh, c, compiled] = bare.argv.as_slice() else { panic!("{:?}", bare.argv) };
    assert_eq!((sh.as_slice(), c.as_slice()), (b"/bin/sh".as_slice(), b"-c".as_slice()));
    let compiled = String::from_utf8_lossy(compiled).into_owned();
    if command.variables().is_empty() {
        assert_eq!(compiled, text);
    }
    let pieces = pieces(text);
    assert!(is_made_of(&compiled, &pieces), "{text} -> {compiled}");
    match invoke(command, x, y) {
        Err(_) => assert!(x.contains(&0) || y.contains(&0) || x.len() + y.len() > 100_000),
        Ok(Invocation { argv, env }) => {
            assert_eq!(argv, bare.argv, "a value became part of the command");
            assert_eq!(env.len(), command.variables().len());
            for (name, value) in env {
                let expected = if name == env_name("x") { x } else { y };
                assert_eq!(value, expected, "{name}");
            }
        }
    }
}

/// Returns the pieces of the author's text, each with the variable of the placeholder after it.
fn pieces(text: &str) -> Vec<(&str, Option<&'static str>)> {
    let mut pieces = Vec::new();
    let (mut from, mut searched) = (0, 0);
    while let Some(at) = text[searched..].find("{{").map(|at| searched + at) {
        searched = at + 2;
        let Some(end) = text[searched..].find("}}").map(|end| searched + end) else { continue };
        let name = text[searched..end].trim();
        if let Some(known) = KNOWN.into_iter().find(|known| *known == name) {
            pieces.push((&text[from..at], Some(known)));
            (from, searched) = (end + 2, end + 2);
        }
    }
    pieces.push((&text[from..], None));
    pieces
}

/// Returns whether `compiled` is the author's text with references to the environment as
/// placeholders.
fn is_made_of(compiled: &str, pieces: &[(&str, Option<&'static str>)]) -> bool {
    let Some(((text, variable), left)) = pieces.split_first() else { return compiled.is_empty() };
    let Some(rest) = compiled.strip_prefix(text) else { return false };
    let Some(variable) = variable else { return rest.is_empty() };
    let reference = format!("${{{}}}", env_name(variable));
    let forms = [reference.clone(), format!("\"{reference}\""), format!("'\"{reference}\"'")];
    forms.iter().filter_map(|form| rest.strip_prefix(form)).any(|rest| is_made_of(rest, left))
}

/// Checks that each argument is filled in once and verbatim, and that their number is unchanged.
fn check_list(command: &CommandLine, args: &[String], x: &[u8], y: &[u8]) {
    let Ok(filled) = invoke(command, x, y) else { return };
    assert_eq!((filled.argv.len(), filled.env.len()), (args.len(), 0));
    // Texts of arguments have no NUL; values have none either.
    let Ok(seen) = invoke(command, b"\x01x\x01", b"\x01y\x01") else { return };
    if args.iter().any(|arg| arg.contains('\x01')) {
        return;
    }
    for (filled, seen) in filled.argv.iter().zip(&seen.argv) {
        let mut expected = Vec::new();
        for (number, part) in seen.split(|byte| *byte == 1).enumerate() {
            expected.extend_from_slice(match (number % 2, part) {
                (0, text) => text,
                (_, b"x") => x,
                (_, _) => y,
            });
        }
        assert_eq!(*filled, expected);
    }
}

/// Returns whether a text is safe to run in any shell: it runs no program, has
/// no endless loop, writes no file and defines no function.
fn is_harmless(text: &str) -> bool {
    const WORDS: [&str; 20] = [
        "a", "b", "x", "y", "s", "n", "echo", "printf", "true", "false", "if", "then", "else",
        "fi", "for", "in", "do", "done", "eval", "export",
    ];
    let is_plain = |c: char| c == '\n' || c == '\t' || (' '..='}').contains(&c);
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    text.chars().all(|c| is_plain(c) && !"/>~".contains(c))
        && words.into_iter().all(|word| WORDS.contains(&word))
        && text.match_indices('(').all(|(at, _)| text[..at].ends_with(['$', '(']))
        && !text.contains("&")
}

/// Directory of the file that is created only if a shell parses a value.
static CANARY: LazyLock<TempDir> = LazyLock::new(|| match tempfile::tempdir() {
    Ok(place) => place,
    Err(error) => panic!("{error}"),
});

fn check_run(command: &CommandLine, text: &str, shell: &str) {
    let canary = CANARY.path().join("made");
    for value in hostile(&canary) {
        let Ok(Invocation { argv, env }) = invoke(command, value.as_bytes(), value.as_bytes())
        else {
            return;
        };
        let Ok(line) = std::str::from_utf8(&argv[2]) else { return };
        let env = env
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8(value).unwrap_or_default()));
        let ran = Command::new(format!("/bin/{shell}"))
            .args(["-c", line])
            .env_clear()
            .env("PATH", "/nonexistent")
            .envs(env)
            .current_dir(CANARY.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(ran.is_ok(), "{shell} did not start");
        assert!(!canary.exists(), "{shell} ran a value in: {text}");
    }
}

/// Returns values that create a file if a shell parses them, each for different contexts.
fn hostile(canary: &Path) -> [String; 2] {
    let make = format!(": >{}", canary.display());
    [
        format!("a;{make};$({make})`{make}`\n{make}\n"),
        format!("'\"';{make};#\"$({make})\"'$({make})';a[$({make})]\n}};{make}\n)\n{make}\n"),
    ]
}
