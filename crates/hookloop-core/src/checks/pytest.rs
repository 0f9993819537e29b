//! `pytest`: the short summary, and the sections of errors and failures that come before it.

use std::collections::{HashMap, VecDeque};

use super::{CheckCounts, CheckOutcome, FoundChecks, KnownRun, ListedCheck, cause, summary};

/// A failure with its traceback.
struct PytestSection<'a> {
    /// `TestCart.test_sums`, or `ERROR at setup of test_orders`.
    title: &'a str,
    lines: &'a [&'a str],
}

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let sections = sections(lines);
    // A title can occur in several files. The summary lists them in the same order.
    let mut titled: HashMap<(EntryKind, String), VecDeque<&PytestSection<'_>>> = HashMap::new();
    for section in &sections {
        titled.entry(section.key()).or_default().push_back(section);
    }
    let summary = lines.iter().rposition(|line| banner(line) == Some("short test summary info"));
    let begin = summary.map_or(lines.len(), |at| at + 1);
    let entries = lines[begin..].iter().take_while(|line| banner(line).is_none());
    for SummaryEntry { kind, name, message } in entries.filter_map(|line| SummaryEntry::read(line))
    {
        let test = name.split_once("::").map_or(name, |(_, test)| test);
        let section = titled.get_mut(&(kind, dotted(test))).and_then(VecDeque::pop_front);
        let told = section.map(PytestSection::cause).filter(|told| !told.is_empty());
        found.add(name, told.unwrap_or_else(|| cause([message])));
    }
    if found.failing.is_empty() {
        for section in &sections {
            found.add(&section.name(), section.cause());
        }
        // Some styles name no failures, but all count them.
        let failed = lines.iter().rev().find_map(|line| total(line)).unwrap_or(0);
        found.more = found.more.max(failed.saturating_sub(found.failing.len()));
    }
    found.is_broken = sections.iter().any(|section| section.title.starts_with(COLLECTING));
    list(lines, found);
}

/// Lists the tests that `-v` prints, before the first section.
fn list(lines: &[&str], found: &mut FoundChecks) {
    let mut listed = CheckCounts::default();
    let list = lines.iter().take_while(|line| !banner(line).is_some_and(is_known));
    for (name, outcome) in list.filter_map(|line| listed_test(line)) {
        listed.add(outcome);
        found.list_once(ListedCheck::new(name, outcome, None));
    }
    let mut totals = lines.iter().filter_map(|line| counts(line));
    let told = totals.next_back();
    let is_begun = lines.iter().any(|line| banner(line) == Some("test session starts"));
    if told.is_some() || is_begun && listed.total() > 0 {
        // A test may print the output of another run.
        let is_only = totals.next().is_none();
        found.run = Some(KnownRun { told, lists_all: is_only && told == Some(listed) });
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum EntryKind {
    Failure,
    Error,
}

const COLLECTING: &str = "ERROR collecting ";

/// Returns the title in a line such as `=== FAILURES ===`.
fn banner(line: &str) -> Option<&str> {
    let title = line.strip_prefix('=')?.strip_suffix('=')?;
    let title = title.trim_matches('=').strip_prefix(' ')?.strip_suffix(' ')?;
    Some(title.trim()).filter(|title| !title.is_empty())
}

/// Whether a banner is one of pytest's own. A test may print text that looks like a banner.
fn is_known(title: &str) -> bool {
    let words = ["FAILURES", "ERRORS", "PASSES", "warnings summary", "short test summary info"];
    words.contains(&title) || total_in(title).is_some()
}

/// Returns the number of failures from the last line: `=== 3 failed, 4 passed in 0.06s ===`.
fn total(line: &str) -> Option<usize> {
    total_in(banner(line).unwrap_or(line))
}

fn total_in(title: &str) -> Option<usize> {
    let (counts, _) = title.split_once(" in ")?;
    let mut total = 0;
    for part in counts.split(", ") {
        let (count, what) = part.split_once(' ')?;
        let count: usize = count.parse().ok()?;
        if matches!(what, "failed" | "error" | "errors") {
            total = usize::saturating_add(total, count);
        }
    }
    Some(total)
}

/// Words of the last line that count no checks.
const OTHER_WORDS: [&str; 7] = [
    "deselected",
    "warning",
    "warnings",
    "rerun",
    "subtests passed",
    "subtests failed",
    "subtests skipped",
];

/// Returns all counts from the last line, which has a duration such as `in 65.12s (0:01:05)`.
fn counts(line: &str) -> Option<CheckCounts> {
    let (counts, time) = banner(line).unwrap_or(line).rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    summary::ms_of_seconds(seconds)?;
    match counts {
        "no tests ran" => Some(CheckCounts::default()),
        counts => summary::counts(counts.split(", "), &OTHER_WORDS),
    }
}

/// Parses `tests/test_cart.py::test_load[a b-2] PASSED   [ 50%]`, or `[gw0] [ 50%] PASSED tests/…` of xdist.
fn listed_test(line: &str) -> Option<(&str, CheckOutcome)> {
    let (name, word) = match line.strip_prefix("[gw").and_then(|rest| rest.split_once("] ")) {
        Some((_, rest)) => {
            let progress = rest.strip_prefix('[').and_then(|rest| rest.split_once("] "));
            let (word, name) = progress.map_or(rest, |(_, rest)| rest).split_once(' ')?;
            (name, word)
        }
        None => name_and_word(without_progress(line))?,
    };
    let (file, _) = name.split_once("::")?;
    let is_name = !file.is_empty() && !file.contains(char::is_whitespace);
    Some((name, outcome(word)?)).filter(|_| is_name)
}

/// Returns a line without `[ 50%]` or `[4/8]` at its end.
fn without_progress(line: &str) -> &str {
    let is_progress = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b' ' | b'%' | b'/'))
    };
    match line.strip_suffix(']').and_then(|line| line.rsplit_once(" [")) {
        Some((rest, progress)) if is_progress(progress) => rest.trim_end(),
        _ => line,
    }
}

/// Splits `name PASSED` or `name SKIPPED (reason)`.
fn name_and_word(line: &str) -> Option<(&str, &str)> {
    let (name, word) = line.rsplit_once(' ')?;
    if outcome(word).is_some() {
        return Some((name, word));
    }
    let words = ["SKIPPED", "XFAIL", "XPASS"];
    let at = |word: &str| line.find(&format!(" {word} ("));
    let (at, word) = words.iter().filter_map(|word| Some((at(word)?, *word))).min()?;
    line.ends_with(')').then(|| (&line[..at], word))
}

fn outcome(word: &str) -> Option<CheckOutcome> {
    Some(match word {
        "PASSED" | "XPASS" => CheckOutcome::Passed,
        "FAILED" | "ERROR" => CheckOutcome::Failed,
        // pytest's own JUnit report has tests that are expected to fail as skipped.
        "SKIPPED" | "XFAIL" => CheckOutcome::Skipped,
        _ => return None,
    })
}

/// A line of the summary: `FAILED tests/test_cart.py::test_load[a b-2] - ValueError: no`.
struct SummaryEntry<'a> {
    kind: EntryKind,
    name: &'a str,
    message: &'a str,
}

impl<'a> SummaryEntry<'a> {
    fn read(line: &'a str) -> Option<SummaryEntry<'a>> {
        let (word, rest) = line.split_once(' ')?;
        let (kind, rest) = match word {
            "FAILED" => (EntryKind::Failure, rest),
            "ERROR" => (EntryKind::Error, rest),
            // The name of a subtest is in brackets.
            word if word.starts_with("SUBFAILED") => {
                (EntryKind::Failure, line.split_once("] ").map_or(rest, |(_, rest)| rest))
            }
            _ => return None,
        };
        let (name, message) = parted(rest);
        Some(SummaryEntry { kind, name, message })
    }
}

/// Splits a name from the message after it.
fn parted(entry: &str) -> (&str, &str) {
    let Some((name, message)) = entry.split_once(" - ") else { return (entry, "") };
    if !name.contains('[') || name.ends_with(']') {
        return (name, message);
    }
    match entry.find("] - ") {
        Some(end) => (&entry[..end + 1], &entry[end + "] - ".len()..]),
        None if entry.ends_with(']') => (entry, ""),
        None => (name, message),
    }
}

fn sections<'a>(lines: &'a [&'a str]) -> Vec<PytestSection<'a>> {
    let mut sections = Vec::new();
    let mut is_inside = false;
    let mut open: Option<(&str, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let banner = banner(line).filter(|title| is_known(title));
        let title = section_title(line).filter(|_| is_inside);
        if banner.is_none() && title.is_none() {
            continue;
        }
        if let Some((title, begin)) = open.take() {
            sections.push(PytestSection { title, lines: &lines[begin..at] });
        }
        if let Some(banner) = banner {
            is_inside = matches!(banner, "FAILURES" | "ERRORS");
        }
        open = title.map(|title| (title, at + 1));
    }
    if let Some((title, begin)) = open {
        sections.push(PytestSection { title, lines: &lines[begin..] });
    }
    sections
}

/// Returns the title in a line such as `____ test_sums ____`. `_ _ _` separates parts of a section.
fn section_title(line: &str) -> Option<&str> {
    if !line.starts_with('_') || !line.ends_with('_') {
        return None;
    }
    let title = line.trim_start_matches('_').strip_prefix(' ')?;
    let (title, underscores) = title.rsplit_once(' ')?;
    let is_title = underscores.bytes().all(|byte| byte == b'_') && !title.starts_with("_ ");
    is_title.then_some(title).filter(|title| !title.is_empty() && *title != "_")
}

/// Spells `TestCart::test_sums[a::b]` like a title: `TestCart.test_sums[a::b]`.
fn dotted(test: &str) -> String {
    let (function, parameters) = test.split_at(test.find('[').unwrap_or(test.len()));
    function.replace("::", ".") + parameters
}

impl PytestSection<'_> {
    fn key(&self) -> (EntryKind, String) {
        let kind =
            if self.title.starts_with("ERROR ") { EntryKind::Error } else { EntryKind::Failure };
        (kind, self.test().to_owned())
    }

    /// Returns the subject of the title: a test, or the file that was not collected.
    fn test(&self) -> &str {
        if let Some(file) = self.title.strip_prefix(COLLECTING) {
            return file;
        }
        let error = self.title.strip_prefix("ERROR at ").and_then(|error| error.split_once(" of "));
        error.map_or(self.title, |(_, test)| test)
    }

    /// Returns the name as the summary spells it.
    fn name(&self) -> String {
        let test = self.test();
        if self.title.starts_with(COLLECTING) {
            return test.to_owned();
        }
        let (function, parameters) = test.split_at(test.find('[').unwrap_or(test.len()));
        let test = function.replace('.', "::") + parameters;
        match self.lines.iter().find_map(|line| file_of(line)) {
            Some(file) => format!("{file}::{test}"),
            None => test,
        }
    }

    /// Returns the lines that pytest marks and the place of the error, else the last lines.
    fn cause(&self) -> String {
        let is_captured = |line: &&&str| line.starts_with("---") && line.contains(" Captured ");
        let lines: Vec<&str> =
            self.lines.iter().take_while(|line| !is_captured(line)).copied().collect();
        let is_marked = |line: &&&str| {
            let mark = line.split(' ').next().unwrap_or_default();
            (mark == ">" || mark == "E") && line.len() > 1
        };
        let marked: Vec<&str> = lines.iter().filter(is_marked).copied().collect();
        if marked.is_empty() {
            let begin = lines.len().saturating_sub(super::CAUSE_LINES_MAX);
            return cause(lines[begin..].iter().copied());
        }
        let place = lines.iter().rfind(|line| file_of(line).is_some()).copied();
        // The last error is the one that was not caught.
        let begin = marked.len().saturating_sub(super::CAUSE_LINES_MAX - 1);
        cause(marked[begin..].iter().copied().chain(place))
    }
}

/// Returns the file in a line such as `tests/test_cart.py:11: AssertionError`.
fn file_of(line: &str) -> Option<&str> {
    let (file, rest) = line.split_once(".py:")?;
    let (number, _) = rest.split_once(':')?;
    let is_place = !file.contains(' ') && number.bytes().all(|byte| byte.is_ascii_digit());
    is_place.then(|| &line[..file.len() + ".py".len()])
}
