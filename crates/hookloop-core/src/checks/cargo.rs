//! `cargo test`: errors of the compiler, and the output of libtest for any number of binaries.

use super::{FoundChecks, cause};

/// The number of lines below an error's message that may hold its place.
const PLACE_LINES_MAX: usize = 5;

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at + 1..];
        let mut taken = 0;
        if let Some(name) = section(line) {
            taken = rest.iter().take_while(|line| !ends_section(line)).count();
            found.add(test_name(name), cause_of_test(&rest[..taken]));
        } else if let Some(name) = failed_test(line) {
            found.add(test_name(name), String::new());
        } else if let Some(error) = compile_error(line, rest) {
            taken = rest.iter().take_while(|line| !line.is_empty()).count();
            let why = std::iter::once(*line).chain(rest[..taken].iter().copied());
            found.is_broken = true;
            found.add(&error, cause(why));
        } else if let Some((target, why)) = crashed_target(line, rest) {
            found.is_broken = true;
            found.add(target, cause([why]));
        }
        at += 1 + taken;
    }
}

/// Parses `---- name stdout ----`.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

fn ends_section(line: &str) -> bool {
    section(line).is_some() || line == "failures:" || line.starts_with("test result: ")
}

/// Parses `test name ... FAILED`, or `name --- FAILED` in quiet mode.
fn failed_test(line: &str) -> Option<&str> {
    match line.strip_prefix("test ") {
        Some(test) => test.strip_suffix(" ... FAILED"),
        None => line.strip_suffix(" --- FAILED"),
    }
}

/// Returns a test's name without the text after it.
///
/// The line of a doctest is left out, because edits above it change the line.
fn test_name(name: &str) -> &str {
    let kinds = [" - should panic", " - compile fail", " - compile"];
    let name = kinds.iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(name);
    let is_line = |line: &&str| line.strip_suffix(')').is_some_and(is_number);
    match name.rsplit_once(" (line ") {
        Some((item, line)) if is_line(&line) => item,
        _ => name,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `error[E0308] src/a.rs:3` if `line` is a message and a line below it has the place.
fn compile_error(line: &str, rest: &[&str]) -> Option<String> {
    let kind = match line.strip_prefix("error[") {
        Some(coded) => &line[..coded.find(']')? + "error[".len() + 1],
        None => line.starts_with("error: ").then_some("error")?,
    };
    let below = rest.iter().take(PLACE_LINES_MAX).take_while(|line| !line.is_empty());
    let place = below.filter_map(|line| line.trim_start().strip_prefix("--> ")).next()?;
    let mut parts = place.rsplitn(2, ':');
    let column = parts.next().filter(|column| is_number(column));
    let place = if column.is_some() { parts.next()? } else { place };
    Some(format!("{kind} {place}"))
}

/// Returns the target whose process crashed, and how. No test is named then.
fn crashed_target<'a>(line: &'a str, rest: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let target = line.strip_prefix("error: test failed, to rerun pass `")?.strip_suffix('`')?;
    match rest {
        ["", "Caused by:", why, ..] => Some((target, why)),
        _ => None,
    }
}

/// Returns the output of a failed test from its cause on, without the stack.
pub(super) fn cause_of_test(lines: &[&str]) -> String {
    let is_panic = |line: &&str| line.contains("panicked at ") || line.starts_with("Error: ");
    let begin = lines.iter().position(is_panic).unwrap_or(0);
    let is_stack = |line: &&str| {
        let line = line.trim_start();
        line == "stack backtrace:" || line.starts_with("note: run with `RUST_BACKTRACE=")
    };
    let why = lines[begin..].iter().take_while(|line| !is_stack(line));
    cause(why.copied())
}
