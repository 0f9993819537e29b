//! `cargo nextest`: a status line for each test, with its output below.

use super::cargo::cause_of_test;
use super::{CheckCounts, CheckOutcome, FoundChecks, KnownRun, ListedCheck, cause, summary};

/// The width of the column that statuses are aligned in. Output of tests can contain statuses, too.
const STATUS_WIDTH: usize = 12;

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    if !lines.iter().any(|line| is_begin(line) || is_summary(line)) {
        return;
    }
    // A retried test may have passed at last. The summary has the final result.
    let (runs, last) = match lines.iter().rposition(|line| is_summary(line)) {
        Some(summary) => lines.split_at(summary),
        None => (lines, lines),
    };
    for failed in last.iter().filter_map(|line| failed_test(line)) {
        found.add(failed, String::new());
    }
    for (at, line) in runs.iter().enumerate() {
        if let Some(name) = failed_test(line)
            && found.has(name)
        {
            let rest = &runs[at + 1..];
            let length = rest.iter().take_while(|line| !ends_section(line)).count();
            found.add(name, cause_of_section(&rest[..length]));
        }
    }
    list(lines, found);
}

/// Lists the tests that have a final status.
fn list(lines: &[&str], found: &mut FoundChecks) {
    let mut is_any = false;
    for check in lines.iter().filter_map(|line| listed_test(line)) {
        is_any = true;
        // Only the summary knows whether a failure was final.
        if check.outcome != CheckOutcome::Failed || found.has_listed(&check) {
            found.list_once(check);
        }
    }
    let mut summaries = lines.iter().filter_map(|line| told(line));
    let told = summaries.next_back();
    let is_only = summaries.next().is_none();
    if told.is_some() || is_any && lines.iter().any(|line| is_begin(line)) {
        let told = told.flatten();
        let lists_all = is_only && told == Some(found.counts());
        found.run = Some(KnownRun { told, lists_all });
    }
}

/// Parses `PASS [   0.006s] (1/6) binary name`, `TRY 2 PASS [...`, `FLAKY 2/3 [...` or `SKIP [         ] ...`.
fn listed_test(line: &str) -> Option<ListedCheck> {
    if line.find(" [") != Some(STATUS_WIDTH) {
        return None;
    }
    if let Some(rest) = line.trim_start().strip_prefix("SKIP [") {
        let (blank, rest) = rest.split_once("] ")?;
        let is_blank = blank.trim().is_empty();
        return is_blank.then(|| ListedCheck::new(name_of(rest), CheckOutcome::Skipped, None));
    }
    let (status, name) = status(line)?;
    let last = status.rsplit(' ').next()?;
    let is_passed = matches!(last, "PASS" | "LEAK" | "TMPASS") || status.starts_with("FLAKY ");
    let outcome = if failed_test(line).is_some() {
        CheckOutcome::Failed
    } else if is_passed && !status.starts_with("SETUP ") {
        CheckOutcome::Passed
    } else {
        return None;
    };
    let seconds = line.get(STATUS_WIDTH + " [".len()..)?.split("s] ").next()?;
    Some(ListedCheck::new(name, outcome, summary::ms_of_seconds(seconds)))
}

/// Parses `Summary [   0.359s] 6 tests run: 5 passed (1 flaky), 1 failed, 2 skipped`. The counts are `None` if
/// one has an unknown word.
fn told(line: &str) -> Option<Option<CheckCounts>> {
    let (tests, counts) = line.trim_start().strip_prefix("Summary [")?.split_once(" run: ")?;
    let is_tests = tests.ends_with(" test") || tests.ends_with(" tests");
    is_tests.then(|| summary::counts(summary::without_parentheses(counts).split(','), &[]))
}

fn is_begin(line: &str) -> bool {
    line.trim_start().starts_with("Nextest run ID ")
}

fn is_summary(line: &str) -> bool {
    line.trim_start().starts_with("Summary [")
}

/// Returns the status of a test and its name: `FAIL [   0.010s] (2/6) binary name`.
fn status(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let (seconds, rest) = rest.split_once("s] ")?;
    let is_duration = seconds.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b' ' | b'>'));
    let is_status = status.starts_with(|c: char| c.is_ascii_uppercase());
    (is_duration && is_status).then_some((status, name_of(rest)))
}

/// Returns the name in `(2/6) binary name`.
fn name_of(rest: &str) -> &str {
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((_, name)) => name.trim(),
        None => rest.trim(),
    }
}

fn failed_test(line: &str) -> Option<&str> {
    let (status, name) = status(line)?;
    // `TRY 2 FAIL` is the final result of a retried test.
    let last = status.rsplit(' ').next()?;
    let is_failed = status.contains("FAIL")
        || matches!(last, "TIMEOUT" | "TMT" | "ABORT" | "ABRT" | "SEGV")
        || last.starts_with("SIG");
    is_failed.then_some(name)
}

fn ends_section(line: &str) -> bool {
    let is_rule = line.starts_with("────") || line == "------------";
    status(line).is_some() || is_rule || is_summary(line)
}

/// Returns the cause from a test's output, which is indented and surrounded by lines of libtest.
fn cause_of_section(lines: &[&str]) -> String {
    let mut is_list = false;
    let is_telling = |line: &&str| {
        if *line == "failures:" {
            is_list = true;
        } else if line.starts_with("---- ") || is_stream(line) || line.starts_with("test result: ")
        {
            is_list = false;
        } else {
            let is_status = line.starts_with("test ") && line.ends_with(" ... FAILED");
            return !is_list && !is_status && *line != "running 1 test";
        }
        false
    };
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .filter(is_telling)
        .collect();
    match cause_of_test(&lines) {
        told if told.is_empty() => cause(lines),
        told => told,
    }
}

/// `stdout ───`, or the line that older versions print.
fn is_stream(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("stdout ─") || line.starts_with("stderr ─") || line.starts_with("--- STD")
}
