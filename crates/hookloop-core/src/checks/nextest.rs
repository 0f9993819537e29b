//! `cargo nextest`: a status line for each test, with its output below.

use super::cargo::cause_of_test;
use super::{FoundChecks, cause};

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
    let name = match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((_, name)) => name,
        None => rest,
    };
    (is_duration && is_status).then_some((status, name.trim()))
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
