//! Reads counts and durations from the lines of test runners.

use std::time::Duration;

use super::{CheckCounts, CheckOutcome};

/// Returns the counts of parts such as `3 failed` and `4 passed`.
///
/// `others` are the words of the runner that count no checks. A part with another word is not a count, so the
/// line is not a summary.
pub(super) fn counts<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    others: &[&str],
) -> Option<CheckCounts> {
    let mut counts = CheckCounts::default();
    for part in parts {
        let (number, word) = part.trim().split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match outcome(word) {
            Some(CheckOutcome::Passed) => counts.passed = counts.passed.checked_add(number)?,
            Some(CheckOutcome::Failed) => counts.failed = counts.failed.checked_add(number)?,
            Some(CheckOutcome::Skipped) => counts.skipped = counts.skipped.checked_add(number)?,
            None if others.contains(&word) => {}
            None => return None,
        }
    }
    Some(counts)
}

/// Returns the outcome that a word in a summary stands for.
///
/// pytest's own JUnit report has tests that are expected to fail as skipped.
fn outcome(word: &str) -> Option<CheckOutcome> {
    Some(match word {
        "passed" | "measured" | "xpassed" => CheckOutcome::Passed,
        "failed" | "error" | "errors" | "timed out" | "exec failed" => CheckOutcome::Failed,
        "skipped" | "ignored" | "todo" | "xfailed" => CheckOutcome::Skipped,
        _ => return None,
    })
}

/// Returns the sum of two counts.
pub(super) fn sum(one: CheckCounts, other: CheckCounts) -> CheckCounts {
    CheckCounts {
        passed: one.passed.saturating_add(other.passed),
        failed: one.failed.saturating_add(other.failed),
        skipped: one.skipped.saturating_add(other.skipped),
    }
}

/// Returns a text without its parts in parentheses: `5 passed (1 slow), 1 failed`.
pub(super) fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    let is_outside = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    text.chars().filter(is_outside).collect()
}

/// Returns a duration such as `0.12` or ` 3` in milliseconds.
pub(super) fn ms_of_seconds(seconds: &str) -> Option<u64> {
    let duration = Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()?;
    u64::try_from(duration.as_micros().saturating_add(500) / 1_000).ok()
}

/// Returns a duration such as `12ms`, `12 ms`, `1.2s` or `1.2 s` in milliseconds.
pub(super) fn ms_of(duration: &str) -> Option<u64> {
    let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match duration.strip_suffix("ms").map(str::trim_end) {
        Some(number) => number.parse().ok(),
        None => {
            let number = duration.strip_suffix('s').map(str::trim_end)?;
            is_number(number).then(|| ms_of_seconds(number))?
        }
    }
}
