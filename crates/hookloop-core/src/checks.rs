//! Reads checks from the output of test runners.
//!
//! Later runs are compared by the names of checks. So names hold no durations, addresses or ids, and line
//! numbers only if two compiler errors would have the same name. Output of an unknown runner has no checks:
//! nothing is guessed.

mod cargo;
mod found;
mod go;
mod jest;
mod nextest;
mod pytest;
mod records;
mod summary;
mod vitest;

use std::borrow::Cow;

use crate::excerpt::clipped_bytes;
use found::{FoundChecks, KnownRun, ListedCheck};

pub use records::{
    CHECKS_MAX, CheckCounts, CheckOutcome, CheckRecords, CheckResult, RecordsBuilder,
};

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
    let lines = last_lines(&text);
    READERS.iter().find_map(|(runner, read)| found_by(*read, &lines).report(runner))
}

/// Returns all checks that the output names, or `None` if no known runner wrote the output.
///
/// The failing checks are those of [`read`], except that a name that occurs in several binaries gets its target.
/// A run that passed is known by the runner's summary or by its list. The records are complete only if the output
/// is whole, if one runner wrote it, and if it lists as many checks as the runner counts.
pub fn records(output: &str) -> Option<CheckRecords> {
    let text = plain(end_of(output));
    let lines = last_lines(&text);
    let known: Vec<(&'static str, FoundChecks)> = READERS
        .iter()
        .map(|(runner, read)| (*runner, found_by(*read, &lines)))
        .filter(|(_, found)| found.is_known())
        .collect();
    let failed = known.iter().position(|(_, found)| !found.failing.is_empty());
    let is_cut = output.len() > READ_MAX
        || text.lines().nth(LINES_MAX).is_some()
        || lines.iter().any(|line| is_left_out(line));
    let is_whole = !is_cut && known.len() == 1;
    let (runner, found) = known.into_iter().nth(failed.unwrap_or(0))?;
    Some(found.records(runner, is_whole))
}

fn found_by(read: RunnerReader, lines: &[&str]) -> FoundChecks {
    let mut found = FoundChecks::default();
    read(lines, &mut found);
    found
}

fn last_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().rev().take(LINES_MAX).map(str::trim_end).collect();
    lines.reverse();
    lines
}

/// Whether a line is the note of an excerpt: `[… 1,234 bytes (5 lines) left out …]`.
fn is_left_out(line: &str) -> bool {
    line.starts_with("[… ") && line.ends_with(" left out …]")
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
pub fn cause<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
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
