//! What test runners print about what fails.
//!
//! Names are what a later run is compared by, so they hold no durations, addresses or ids, and line
//! numbers only where nothing else tells two errors of a compiler apart. A text that no runner printed
//! has no checks: nothing is guessed.

mod cargo;
mod go;
mod jest;
mod nextest;
mod pytest;
mod vitest;

use std::borrow::Cow;
use std::collections::HashMap;

/// Of longer output the end is read: there runners say what failed.
pub const READ_MAX: usize = 2 * 1024 * 1024;
/// Nor are more lines read than this.
pub const LINES_MAX: usize = 200_000;
/// Checks in a report; more are counted.
pub const FAILING_MAX: usize = 200;
/// Bytes of a check's name.
pub const NAME_MAX: usize = 300;
/// Lines of a check's cause.
pub const CAUSE_LINES_MAX: usize = 12;
/// Bytes of a line of a cause.
pub const CAUSE_LINE_MAX: usize = 240;

/// Something that fails: a test, or a place that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// The few lines that tell why; empty if the output does not.
    pub cause: String,
}

/// What a runner reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub runner: &'static str,
    /// In order, distinct, at most [`FAILING_MAX`].
    pub failing: Vec<Check>,
    /// How many beyond these.
    pub more: usize,
    /// Something did not build, load or come to its end: tests that are not listed may not have run.
    pub is_broken: bool,
}

/// How to read a runner's lines.
type Reader = fn(&[&str], &mut Found);

/// The first that finds something is right: one runner's output holds another's only where that
/// stands before it.
const READERS: [(&str, Reader); 6] = [
    ("cargo nextest", nextest::read),
    ("cargo test", cargo::read),
    ("pytest", pytest::read),
    ("vitest", vitest::read),
    ("jest", jest::read),
    ("go test", go::read),
];

/// What fails; nothing if that is the output of no known runner, or if all passed.
pub fn read(output: &str) -> Option<Report> {
    let text = plain(end_of(output));
    let mut lines: Vec<&str> = text.lines().rev().take(LINES_MAX).map(str::trim_end).collect();
    lines.reverse();
    READERS.iter().find_map(|(runner, read)| {
        let mut found = Found::default();
        read(&lines, &mut found);
        let Found { failing, more, is_broken, .. } = found;
        let is_any = !failing.is_empty();
        is_any.then_some(Report { runner, failing, more, is_broken })
    })
}

/// The last lines that fit [`READ_MAX`].
fn end_of(output: &str) -> &str {
    if output.len() <= READ_MAX {
        return output;
    }
    let end = &output[output.ceil_char_boundary(output.len() - READ_MAX)..];
    end.split_once('\n').map_or(end, |(_, whole_lines)| whole_lines)
}

/// A text without colours and other escape sequences.
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

/// What stands behind an escape sequence whose first byte is gone.
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

/// What a reader has found so far.
#[derive(Debug, Default)]
struct Found {
    failing: Vec<Check>,
    more: usize,
    is_broken: bool,
    /// Where each name is; those behind the limit are nowhere.
    places: HashMap<String, usize>,
}

impl Found {
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

/// A name on one line, of a length that a reader can take in.
fn clean_name(name: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let spaced: String = name.chars().take(NAME_MAX).map(visible).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    clipped(&words.join(" "), NAME_MAX).into_owned()
}

/// A text of at most `max` bytes, which are enough for the sign that something is missing.
fn clipped(text: &str, max: usize) -> Cow<'_, str> {
    const SIGN: &str = "…";
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max.saturating_sub(SIGN.len()));
    Cow::Owned(format!("{}{SIGN}", &text[..end]))
}

/// A place in a stack that is not the project's.
fn is_foreign(line: &str) -> bool {
    line.contains("node_modules/")
}

/// The first lines that say something, without the indentation that they share.
fn cause<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut lines = lines.into_iter().filter(|line| !line.trim().is_empty());
    let kept: Vec<&str> = lines.by_ref().take(CAUSE_LINES_MAX).collect();
    let indentation = |line: &&str| line.bytes().take_while(u8::is_ascii_whitespace).count();
    let shared = kept.iter().map(indentation).min().unwrap_or(0);
    let mut cause: Vec<Cow<'_, str>> =
        kept.iter().map(|line| clipped(&line[shared..], CAUSE_LINE_MAX)).collect();
    if lines.next().is_some() {
        cause.push(Cow::Borrowed("…"));
    }
    cause.join("\n")
}

#[cfg(test)]
mod tests;
