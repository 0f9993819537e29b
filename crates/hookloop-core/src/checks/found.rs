//! Collects the checks that a reader finds in the output of a runner.

use std::collections::HashMap;

use super::records::{CHECKS_MAX, CheckCounts, CheckIds, CheckOutcome, CheckRecords, CheckResult};
use super::{Check, FAILING_MAX, Report, clean_name};

/// The checks that a reader has found so far.
#[derive(Debug, Default)]
pub(super) struct FoundChecks {
    /// The failing checks, each name once, at most [`CHECKS_MAX`]. Only the first [`FAILING_MAX`] have a cause.
    pub(super) failing: Vec<Check>,
    /// The number of failing checks beyond these.
    pub(super) more: usize,
    pub(super) is_broken: bool,
    /// The run, if the output has a summary or a list that only this runner writes.
    pub(super) run: Option<KnownRun>,
    /// The position of each failing name. Names beyond the limit have none.
    places: HashMap<String, usize>,
    /// The checks with a line of their own, in the order of the output. Each takes a line, so their number is
    /// limited, too.
    listed: Vec<ListedCheck>,
    /// The position of each name that is listed only once.
    listed_places: HashMap<String, usize>,
}

/// A run of a runner that is known for certain.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownRun {
    /// The counts of the summary.
    pub(super) told: Option<CheckCounts>,
    /// Whether each check that ran or was skipped has a line of its own.
    pub(super) lists_all: bool,
}

/// A check with a line of its own, such as `test a ... ok`.
#[derive(Debug)]
pub(super) struct ListedCheck {
    /// The name in one line of limited length.
    pub(super) name: String,
    /// The binary that has the check, if names are unique only in a binary.
    pub(super) target: Option<String>,
    pub(super) outcome: CheckOutcome,
    pub(super) ms: Option<u64>,
    pub(super) cause: String,
}

impl ListedCheck {
    pub(super) fn new(name: &str, outcome: CheckOutcome, ms: Option<u64>) -> ListedCheck {
        ListedCheck { name: clean_name(name), target: None, outcome, ms, cause: String::new() }
    }
}

/// The lines of one name in a list.
#[derive(Clone, Copy)]
struct ListedName {
    first: usize,
    first_failed: Option<usize>,
    times: usize,
}

impl FoundChecks {
    /// Whether a check of this name fails.
    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(&clean_name(name))
    }

    /// Whether a listed check is among the failing ones.
    pub(super) fn has_listed(&self, check: &ListedCheck) -> bool {
        self.places.contains_key(&check.name)
    }

    /// Adds a failing check. A name that is known keeps its first cause.
    pub(super) fn add(&mut self, name: &str, cause: String) {
        let name = clean_name(name);
        if name.is_empty() {
            return;
        }
        if let Some(place) = self.places.get(&name) {
            if let Some(check) = self.failing.get_mut(*place)
                && *place < FAILING_MAX
                && check.cause.is_empty()
            {
                check.cause = cause;
            }
            return;
        }
        let place = self.failing.len();
        self.places.insert(name.clone(), place);
        if place == CHECKS_MAX {
            self.more += 1;
            return;
        }
        let cause = if place < FAILING_MAX { cause } else { String::new() };
        self.failing.push(Check { name, cause });
    }

    /// Adds a check that has a line of its own. Another check may have the same name.
    pub(super) fn list(&mut self, check: ListedCheck) {
        if !check.name.is_empty() {
            self.listed.push(check);
        }
    }

    /// Adds a check that may have several lines. The last line has the final outcome.
    pub(super) fn list_once(&mut self, check: ListedCheck) {
        match self.listed_places.get(&check.name).and_then(|place| self.listed.get_mut(*place)) {
            Some(listed) => *listed = check,
            None if check.name.is_empty() => {}
            None => {
                self.listed_places.insert(check.name.clone(), self.listed.len());
                self.listed.push(check);
            }
        }
    }

    /// Returns the counts of the names that fail or are listed.
    pub(super) fn counts(&self) -> CheckCounts {
        let failed = self.failing.len().saturating_add(self.more);
        let mut counts = CheckCounts { failed: failed as u64, ..CheckCounts::default() };
        let others = self.listed.iter().filter(|check| !self.has_listed(check));
        others.for_each(|check| counts.add(check.outcome));
        counts
    }

    /// Whether the runner of the reader wrote the output.
    pub(super) fn is_known(&self) -> bool {
        !self.failing.is_empty() || self.run.is_some()
    }

    /// Returns the failing checks, or `None` if no check failed.
    pub(super) fn report(self, runner: &'static str) -> Option<Report> {
        let FoundChecks { mut failing, mut more, is_broken, .. } = self;
        more += failing.len().saturating_sub(FAILING_MAX);
        failing.truncate(FAILING_MAX);
        let is_any = !failing.is_empty();
        is_any.then_some(Report { runner, failing, more, is_broken })
    }

    /// Returns all checks, failing ones first. `is_whole` states whether the output has all lines of the run.
    pub(super) fn records(mut self, source: &'static str, is_whole: bool) -> CheckRecords {
        let mut names = self.listed_names();
        self.settle_failing(&mut names);
        let mut checks = self.results(&names);
        let mut counts = CheckCounts::default();
        checks.iter().for_each(|check| counts.add(check.outcome));
        counts.failed = counts.failed.saturating_add(self.more as u64);
        let lists_all = self.run.is_some_and(|run| run.lists_all) && self.more == 0;
        let is_complete = lists_all && is_whole && checks.len() <= CHECKS_MAX;
        if let Some(told) = self.run.and_then(|run| run.told).filter(|_| !is_complete) {
            counts.passed = counts.passed.max(told.passed);
            counts.failed = counts.failed.max(told.failed);
            counts.skipped = counts.skipped.max(told.skipped);
        }
        checks.truncate(CHECKS_MAX);
        CheckRecords { source, checks, counts, is_complete, is_broken: self.is_broken }
    }

    fn listed_names(&self) -> HashMap<String, ListedName> {
        let mut names: HashMap<String, ListedName> = HashMap::new();
        for (at, check) in self.listed.iter().enumerate() {
            let new = ListedName { first: at, first_failed: None, times: 0 };
            let name = names.entry(check.name.clone()).or_insert(new);
            name.times += 1;
            if check.outcome == CheckOutcome::Failed {
                name.first_failed.get_or_insert(at);
            }
        }
        names
    }

    /// Gives each failing check its cause, and a place in the list if it has none.
    fn settle_failing(&mut self, names: &mut HashMap<String, ListedName>) {
        for check in &self.failing {
            let known = names.get(&check.name);
            let place = known.and_then(|known| match known.first_failed {
                None => (known.times == 1).then_some(known.first),
                failed => failed,
            });
            if let Some(listed) = place.and_then(|place| self.listed.get_mut(place)) {
                listed.outcome = CheckOutcome::Failed;
                if listed.cause.is_empty() {
                    listed.cause.clone_from(&check.cause);
                }
            } else {
                let new = ListedName { first: self.listed.len(), first_failed: None, times: 1 };
                names.entry(check.name.clone()).or_insert(new);
                let cause = check.cause.clone();
                let listed = ListedCheck::new(&check.name, CheckOutcome::Failed, None);
                self.listed.push(ListedCheck { cause, ..listed });
            }
        }
    }

    /// Returns the results of the listed checks with unique ids, failing ones first.
    ///
    /// Binaries run in the same order each time, and after a failure the rest does not run. So the first check
    /// keeps its name, and those of later binaries begin with their target.
    fn results(&mut self, names: &HashMap<String, ListedName>) -> Vec<CheckResult> {
        let targets: HashMap<&str, Option<String>> = names
            .iter()
            .filter(|(_, name)| name.times > 1)
            .map(|(text, name)| {
                (text.as_str(), self.listed.get(name.first).and_then(|check| check.target.clone()))
            })
            .collect();
        let mut ids = CheckIds::default();
        let mut ranked: Vec<(usize, CheckResult)> = Vec::with_capacity(self.listed.len());
        for check in std::mem::take(&mut self.listed) {
            let ListedCheck { name, target, outcome, ms, cause } = check;
            let rank = match outcome {
                CheckOutcome::Failed => self.places.get(&name).copied().unwrap_or(CHECKS_MAX),
                CheckOutcome::Passed | CheckOutcome::Skipped => usize::MAX,
            };
            let first = targets.get(name.as_str());
            let id = match (target, first) {
                (Some(target), Some(first)) if first.as_ref() != Some(&target) => {
                    ids.unique(&clean_name(&format!("{target} {name}")))
                }
                _ => ids.unique(&name),
            };
            ranked.push((rank, CheckResult { id, outcome, ms, cause }));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, check)| check).collect()
    }
}
