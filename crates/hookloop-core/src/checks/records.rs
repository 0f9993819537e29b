//! Records of single checks: tests, findings of linters, places that do not compile.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, FAILING_MAX, NAME_MAX, Report, clean_name};
use crate::excerpt::clipped_bytes;

/// Maximum checks of one run. Further checks are only counted.
pub const CHECKS_MAX: usize = 50_000;
/// Bytes of the number after a name that occurs twice.
const NUMBER_MAX: usize = " #4294967295".len();

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed,
    Skipped,
}

impl CheckOutcome {
    pub fn name(self) -> &'static str {
        match self {
            CheckOutcome::Passed => "passed",
            CheckOutcome::Failed => "failed",
            CheckOutcome::Skipped => "skipped",
        }
    }
}

/// One check of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The name of the check, unique in its run and equal in later runs.
    pub id: String,
    pub outcome: CheckOutcome,
    /// The duration in milliseconds, if the source has it.
    pub ms: Option<u64>,
    /// The lines that give the cause of a failure, or empty.
    pub cause: String,
}

/// The number of checks of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckCounts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl CheckCounts {
    pub fn add(&mut self, outcome: CheckOutcome) {
        match outcome {
            CheckOutcome::Passed => self.passed += 1,
            CheckOutcome::Failed => self.failed += 1,
            CheckOutcome::Skipped => self.skipped += 1,
        }
    }

    pub fn total(self) -> u64 {
        self.passed + self.failed + self.skipped
    }
}

/// All known checks of one run of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRecords {
    /// The format of the report, or the runner whose output was read: `junit`, `pytest`, …
    pub source: &'static str,
    /// The checks in the order of the source, each id once, at most [`CHECKS_MAX`]. Checks from the output of a
    /// runner begin with the failing ones.
    pub checks: Vec<CheckResult>,
    /// The counts of all checks, also of those that are not listed.
    pub counts: CheckCounts,
    /// Whether passed and skipped checks are listed, too. Some output names only failures.
    pub is_complete: bool,
    /// Something did not build, load or finish, so checks that are not listed may not have run.
    pub is_broken: bool,
}

impl CheckRecords {
    pub fn failing(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| check.outcome == CheckOutcome::Failed)
    }

    /// Returns the failing checks for feedback, or `None` if no check failed.
    pub fn report(&self) -> Option<Report> {
        let mut failing: Vec<Check> = self
            .failing()
            .map(|check| Check { name: check.id.clone(), cause: check.cause.clone() })
            .collect();
        let all = usize::try_from(self.counts.failed).unwrap_or(usize::MAX).max(failing.len());
        failing.truncate(FAILING_MAX);
        let more = all - failing.len();
        (all > 0).then_some(Report {
            runner: self.source,
            failing,
            more,
            is_broken: self.is_broken,
        })
    }
}

/// Collects the checks of one run.
///
/// A name that occurs twice in a run gets a number: `a`, `a #2`. Names are in one line, and of limited length.
#[derive(Debug)]
pub struct RecordsBuilder {
    records: CheckRecords,
    ids: CheckIds,
}

impl RecordsBuilder {
    pub fn new(source: &'static str) -> RecordsBuilder {
        RecordsBuilder {
            records: CheckRecords {
                source,
                checks: Vec::new(),
                counts: CheckCounts::default(),
                is_complete: true,
                is_broken: false,
            },
            ids: CheckIds::default(),
        }
    }

    /// Adds a check. A check without a name is counted under the name `unnamed`.
    pub fn add(&mut self, name: &str, outcome: CheckOutcome, ms: Option<u64>, cause: String) {
        self.records.counts.add(outcome);
        if self.records.checks.len() >= CHECKS_MAX {
            self.records.is_complete = false;
            return;
        }
        let name = match clean_name(name) {
            name if name.is_empty() => "unnamed".to_owned(),
            name => name,
        };
        let id = self.ids.unique(&name);
        self.records.checks.push(CheckResult { id, outcome, ms, cause });
    }

    /// Records that something did not build, load or finish.
    pub fn set_broken(&mut self) {
        self.records.is_broken = true;
    }

    pub fn is_empty(&self) -> bool {
        self.records.counts.total() == 0
    }

    pub fn finish(self) -> CheckRecords {
        self.records
    }
}

/// Makes ids of names, each id once: `a`, `a #2`.
#[derive(Debug, Default)]
pub(super) struct CheckIds {
    ids: HashSet<String>,
    /// The last number that a name got, by the part of the name that leaves room for a number.
    numbers: HashMap<String, u32>,
}

impl CheckIds {
    /// Returns an id for a name of at most [`NAME_MAX`] bytes. The id has at most as many.
    pub(super) fn unique(&mut self, name: &str) -> String {
        if self.ids.insert(name.to_owned()) {
            return name.to_owned();
        }
        let stem = clipped_bytes(name, NAME_MAX - NUMBER_MAX);
        let number = self.numbers.entry(stem.clone().into_owned()).or_insert(1);
        // A check may have the name `a #2` itself. Numbers only grow, so each such name is met once.
        loop {
            *number += 1;
            let id = format!("{stem} #{number}");
            if self.ids.insert(id.clone()) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_occur_twice_get_a_number() {
        let mut builder = RecordsBuilder::new("tap");
        for _ in 0..3 {
            builder.add("a", CheckOutcome::Passed, None, String::new());
        }
        builder.add("b\nc", CheckOutcome::Failed, Some(3), "why".to_owned());
        let records = builder.finish();
        let ids: Vec<&str> = records.checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!(ids, ["a", "a #2", "a #3", "b c"]);
        assert_eq!(records.counts, CheckCounts { passed: 3, failed: 1, skipped: 0 });
        let report = records.report().unwrap();
        assert_eq!((report.failing.len(), report.more), (1, 0));
    }

    #[test]
    fn ids_are_unique_even_if_a_name_ends_with_a_number() {
        let check = |names: &[&str], expected: &[&str]| {
            let mut ids = CheckIds::default();
            let made: Vec<String> = names.iter().map(|name| ids.unique(name)).collect();
            assert_eq!(made, expected);
        };
        check(&["a #2", "a", "a", "a"], &["a #2", "a", "a #3", "a #4"]);
        check(&["a", "a", "a #2", "a #2"], &["a", "a #2", "a #2 #2", "a #2 #3"]);
        let long = "x".repeat(NAME_MAX);
        let mut ids = CheckIds::default();
        let made = [ids.unique(&long), ids.unique(&long), ids.unique(&long)];
        assert!(made.iter().all(|id| id.len() <= NAME_MAX), "{made:?}");
        assert!(made[0] != made[1] && made[1] != made[2] && made[0] != made[2], "{made:?}");
    }
}
