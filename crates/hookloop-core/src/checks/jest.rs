//! `jest`: a line for each file, then a block for each test of it that fails.

use super::{
    CheckCounts, CheckOutcome, FoundChecks, KnownRun, ListedCheck, NAME_MAX, cause, is_foreign,
    summary,
};

/// The title of a block about a file that could not be loaded.
const NOT_LOADED: &str = "Test suite failed to run";
/// The line above the actual error. Jest prints general advice above it.
const DETAILS: &str = "Details:";
/// Suites around a test. A list with more is not read.
const SUITES_MAX: usize = 32;

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let mut file = None;
    let mut listed = CheckCounts::default();
    for (at, line) in lines.iter().enumerate() {
        if let Some(result) = file_result(line) {
            file = (!result.is_passed).then_some(result.file);
            for check in listed_tests(result.file, &lines[at + 1..]) {
                listed.add(check.outcome);
                found.list(check);
            }
        }
        let (Some(file), Some(test)) = (file, block(line)) else { continue };
        if test == "Console" {
            continue;
        }
        let rest = &lines[at + 1..];
        let length = rest.iter().take_while(|line| !ends_block(line)).count();
        let body: Vec<&str> =
            rest[..length].iter().copied().filter(|line| !is_foreign(line)).collect();
        if test == NOT_LOADED {
            let details = body.iter().position(|line| line.trim() == DETAILS);
            found.is_broken = true;
            found.add(file, cause(body[details.map_or(0, |at| at + 1)..].iter().copied()));
        } else {
            found.add(&format!("{file} › {test}"), cause(body));
        }
    }
    if lines.iter().any(|line| line.starts_with("Test Suites: ")) {
        let told = lines.iter().filter_map(|line| counts(line)).reduce(summary::sum);
        let known = told.map(|_| KnownRun { told, lists_all: told == Some(listed) });
        found.run = known;
    }
}

/// A line about a file: `FAIL src/cart.test.js (5.2 s)`.
struct JestFileLine<'a> {
    file: &'a str,
    is_passed: bool,
}

fn file_result(line: &str) -> Option<JestFileLine<'_>> {
    let line = line.strip_prefix(' ').unwrap_or(line);
    let passed = line.strip_prefix("PASS ");
    let file = passed.or_else(|| line.strip_prefix("FAIL "))?.trim();
    let file = match file.rsplit_once(" (") {
        Some((file, time)) if time.ends_with("s)") => file,
        _ => file,
    };
    Some(JestFileLine { file, is_passed: passed.is_some() })
}

/// Returns the tests below a file's line, up to an empty line: `✓ adds (3 ms)` under the titles of its suites.
///
/// Returns none if a line is not part of such a list.
fn listed_tests(file: &str, lines: &[&str]) -> Vec<ListedCheck> {
    let mut tests = Vec::new();
    let mut suites: Vec<&str> = Vec::new();
    for line in lines.iter().take_while(|line| !line.is_empty() && file_result(line).is_none()) {
        let text = line.trim_start_matches(' ');
        let indentation = line.len() - text.len();
        let depth = indentation / 2;
        let is_part = indentation.is_multiple_of(2) && (1..=suites.len() + 1).contains(&depth);
        let is_small = depth <= SUITES_MAX && file.len() <= NAME_MAX && text.len() <= NAME_MAX;
        if !is_part || !is_small || text.starts_with(['●', '\t']) {
            return Vec::new();
        }
        suites.truncate(depth - 1);
        match listed_test(text) {
            Some((title, outcome, ms)) => {
                let path: Vec<&str> = suites.iter().copied().chain([title]).collect();
                let name = format!("{file} › {}", path.join(" › "));
                tests.push(ListedCheck::new(&name, outcome, ms));
            }
            None => suites.push(text),
        }
    }
    tests
}

/// Parses `✓ adds prices up (3 ms)`, `○ skipped later` or `✎ todo one day`.
fn listed_test(text: &str) -> Option<(&str, CheckOutcome, Option<u64>)> {
    let (mark, title) = text.split_once(' ')?;
    let outcome = match mark {
        "✓" | "√" => CheckOutcome::Passed,
        "✕" | "×" => CheckOutcome::Failed,
        "○" => return Some((title.strip_prefix("skipped ")?, CheckOutcome::Skipped, None)),
        "✎" => return Some((title.strip_prefix("todo ")?, CheckOutcome::Skipped, None)),
        _ => return None,
    };
    let timed = title.strip_suffix(')').and_then(|title| title.rsplit_once(" ("));
    match timed.map(|(title, time)| (title, summary::ms_of(time))) {
        Some((title, ms @ Some(_))) => Some((title, outcome, ms)),
        _ => Some((title, outcome, None)),
    }
}

/// Parses `Tests:       1 failed, 2 skipped, 4 passed, 7 total`.
fn counts(line: &str) -> Option<CheckCounts> {
    let counts = line.strip_prefix("Tests: ")?.trim();
    let (counts, total) = counts.strip_suffix(" total")?.rsplit_once(", ")?;
    let counts = summary::counts(counts.split(", "), &[])?;
    (total.parse() == Ok(counts.total())).then_some(counts)
}

/// Parses `  ● cart › total › adds prices up`.
fn block(line: &str) -> Option<&str> {
    line.strip_prefix("  ● ")
}

fn ends_block(line: &str) -> bool {
    block(line).is_some() || file_result(line).is_some() || line.starts_with("Test Suites: ")
}
