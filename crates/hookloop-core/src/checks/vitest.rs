//! `vitest`: all failures at the end, each between lines.

use super::{
    CheckCounts, CheckOutcome, FoundChecks, KnownRun, ListedCheck, cause, is_foreign, summary,
};

pub(super) fn read(lines: &[&str], found: &mut FoundChecks) {
    let is_vitest = |line: &&str| {
        line.starts_with(" Test Files  ") || line.starts_with(RULE) && line.contains(" Failed ")
    };
    if !lines.iter().any(is_vitest) {
        return;
    }
    let mut at = 0;
    while at < lines.len() {
        // Tests that fail for the same reason share one block.
        let names = lines[at..].iter().map_while(|line| failed(line)).count();
        let rest = &lines[at + names..];
        let length = rest.iter().take_while(|line| !ends_failure(line)).count();
        let why = rest[..length].iter().copied().filter(|line| !is_foreign(line));
        let why = if names > 0 { cause(why) } else { String::new() };
        for name in lines[at..at + names].iter().filter_map(|line| failed(line)) {
            let file = suite(name);
            found.is_broken |= file.is_some();
            found.add(file.unwrap_or(name), why.clone());
        }
        at += (names + length).max(1);
    }
    list(lines, found);
}

/// Lists the tests that the verbose reporter prints. Other reporters leave the names of suites out.
fn list(lines: &[&str], found: &mut FoundChecks) {
    let mut listed = CheckCounts::default();
    for check in lines.iter().filter_map(|line| listed_test(line)) {
        listed.add(check.outcome);
        found.list(check);
    }
    let told = lines.iter().filter_map(|line| counts(line)).reduce(summary::sum);
    if told.is_some() {
        found.run = Some(KnownRun { told, lists_all: told == Some(listed) });
    }
}

/// Parses ` ✓ src/cart.test.js > cart > is empty 4ms`. Failed tests have `×`, and tests that do not run `↓` or `□`.
fn listed_test(line: &str) -> Option<ListedCheck> {
    let (mark, name) = line.strip_prefix(' ')?.split_once(' ')?;
    let outcome = match mark {
        "✓" => CheckOutcome::Passed,
        "×" => CheckOutcome::Failed,
        "↓" | "□" => CheckOutcome::Skipped,
        _ => return None,
    };
    name.split_once(" > ")?;
    let name = match name.rsplit_once(" (") {
        Some((name, times)) if times.starts_with("retry x") || times.starts_with("repeat x") => {
            name
        }
        _ => name,
    };
    let (name, ms) = match name.rsplit_once(' ').map(|(name, time)| (name, summary::ms_of(time))) {
        Some((name, ms @ Some(_))) if outcome != CheckOutcome::Skipped => (name, ms),
        _ => (name, None),
    };
    Some(ListedCheck::new(name, outcome, ms))
}

/// Parses `      Tests  3 failed | 3 passed | 1 todo (7)`.
fn counts(line: &str) -> Option<CheckCounts> {
    let counts = line.trim_start().strip_prefix("Tests  ")?;
    let (counts, total) = counts.strip_suffix(')')?.rsplit_once(" (")?;
    let counts = summary::counts(counts.split(" | "), &[])?;
    (total.parse() == Ok(counts.total())).then_some(counts)
}

fn ends_failure(line: &str) -> bool {
    line.starts_with(RULE) || failed(line).is_some()
}

const RULE: &str = "⎯⎯⎯";

/// Parses ` FAIL  src/cart.test.js > cart > adds prices up`.
fn failed(line: &str) -> Option<&str> {
    line.strip_prefix(" FAIL  ")
}

/// Returns the file that could not be loaded: `src/a.test.js [ src/a.test.js ]`.
fn suite(name: &str) -> Option<&str> {
    let (file, path) = name.strip_suffix(" ]")?.split_once(" [ ")?;
    file.ends_with(path).then_some(file)
}
