//! Reads failing checks from the output of test runners.
//!
//! Later runs are compared by the names of checks. So names hold no durations, addresses or ids, and line
//! numbers only if two compiler errors would have the same name. Output of an unknown runner has no checks:
//! nothing is guessed.

mod cargo;
mod go;
mod jest;
mod nextest;
mod pytest;
mod vitest;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::excerpt::clipped_bytes;

/// Only this many bytes at the end are read: runners report failures there.
pub(crate) const READ_MAX: usize = 2 * 1024 * 1024;
/// Only this many lines at the end are read.
pub(crate) const LINES_MAX: usize = 200_000;
/// Checks in a report. Further ones are only counted.
pub const FAILING_MAX: usize = 200;
/// Bytes of a check's name.
pub const NAME_MAX: usize = 300;
/// Lines of a check's cause.
pub(crate) const CAUSE_LINES_MAX: usize = 12;
/// Bytes of a line of a cause.
pub(crate) const CAUSE_LINE_MAX: usize = 240;

/// A failing test, or a place that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// The lines that give the cause, or empty if the output has none.
    pub cause: String,
}

/// The report of a test runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub runner: &'static str,
    /// The failing checks in order, each once, at most [`FAILING_MAX`].
    pub failing: Vec<Check>,
    /// The number of failing checks beyond these.
    pub more: usize,
    /// Something did not build, load or finish, so tests that are not listed may not have run.
    pub is_broken: bool,
}

/// A function that reads a runner's lines.
type RunnerReader = fn(&[&str], &mut FoundChecks);

/// The first reader that finds a check is right. Output of one runner contains output of another only below it
/// in this list.
const READERS: [(&str, RunnerReader); 6] = [
    ("cargo nextest", nextest::read),
    ("cargo test", cargo::read),
    ("pytest", pytest::read),
    ("vitest", vitest::read),
    ("jest", jest::read),
    ("go test", go::read),
];

/// Returns the failing checks, or `None` if no known runner wrote the output or all checks passed.
pub fn read(output: &str) -> Option<Report> {
    let text = plain(end_of(output));
    let mut lines: Vec<&str> = text.lines().rev().take(LINES_MAX).map(str::trim_end).collect();
    lines.reverse();
    READERS.iter().find_map(|(runner, read)| {
        let mut found = FoundChecks::default();
        read(&lines, &mut found);
        let FoundChecks { failing, more, is_broken, .. } = found;
        let is_any = !failing.is_empty();
        is_any.then_some(Report { runner, failing, more, is_broken })
    })
}

/// Returns the last lines that fit [`READ_MAX`].
fn end_of(output: &str) -> &str {
    if output.len() <= READ_MAX {
        return output;
    }
    let end = &output[output.ceil_char_boundary(output.len() - READ_MAX)..];
    end.split_once('\n').map_or(end, |(_, whole_lines)| whole_lines)
}

/// Returns a text without colours and other escape sequences.
pub fn plain(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    plain.push_str(first);
    parts.for_each(|part| plain.push_str(past_escape(part)));
    Cow::Owned(plain)
}

/// Returns the text after an escape sequence whose first byte is missing.
fn past_escape(part: &str) -> &str {
    let mut bytes = part.bytes();
    let length = match bytes.next() {
        Some(b'[') => bytes.position(|byte| (0x40..=0x7e).contains(&byte)).map(|at| at + 2),
        Some(b']') => bytes.position(|byte| byte == 0x07).map(|at| at + 2),
        Some(byte) if byte.is_ascii() => Some(1),
        _ => Some(0),
    };
    length.and_then(|length| part.get(length..)).unwrap_or_default()
}

/// The checks that a reader has found so far.
#[derive(Debug, Default)]
struct FoundChecks {
    failing: Vec<Check>,
    more: usize,
    is_broken: bool,
    /// The position of each name. Names beyond the limit have none.
    places: HashMap<String, usize>,
}

impl FoundChecks {
    fn has(&self, name: &str) -> bool {
        self.places.contains_key(&clean_name(name))
    }

    fn add(&mut self, name: &str, cause: String) {
        let name = clean_name(name);
        if name.is_empty() {
            return;
        }
        if let Some(place) = self.places.get(&name) {
            if let Some(check) = self.failing.get_mut(*place)
                && check.cause.is_empty()
            {
                check.cause = cause;
            }
            return;
        }
        if self.failing.len() == FAILING_MAX {
            self.more += 1;
            self.places.insert(name, FAILING_MAX);
            return;
        }
        self.places.insert(name.clone(), self.failing.len());
        self.failing.push(Check { name, cause });
    }
}

/// Returns a name in one line of limited length.
fn clean_name(name: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let spaced: String = name.chars().take(NAME_MAX).map(visible).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    clipped_bytes(&words.join(" "), NAME_MAX).into_owned()
}

/// Whether a line is a stack frame outside the project.
fn is_foreign(line: &str) -> bool {
    line.contains("node_modules/")
}

/// Returns the first lines that are not empty, without their common indentation.
fn cause<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut lines = lines.into_iter().filter(|line| !line.trim().is_empty());
    let kept: Vec<&str> = lines.by_ref().take(CAUSE_LINES_MAX).collect();
    let indentation = |line: &&str| line.bytes().take_while(u8::is_ascii_whitespace).count();
    let shared = kept.iter().map(indentation).min().unwrap_or(0);
    let mut cause: Vec<Cow<'_, str>> =
        kept.iter().map(|line| clipped_bytes(&line[shared..], CAUSE_LINE_MAX)).collect();
    if lines.next().is_some() {
        cause.push(Cow::Borrowed("…"));
    }
    cause.join("\n")
}

#[cfg(test)]
mod tests;
