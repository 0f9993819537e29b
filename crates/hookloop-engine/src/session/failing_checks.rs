//! The failing checks of a gate's run, for the comparison with a run on other files.

use std::collections::BTreeMap;

use hookloop_core::checks::CheckRecords;
use hookloop_core::hook_protocol::HookStatus;
use hookloop_hooks::hook_run::HookRun;

/// Sources whose names of checks are not unique, so that a name is not one check.
pub(super) const UNSTABLE: [&str; 1] = ["tap"];

/// The failing checks of a gate's run, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailingChecks {
    exit_code: Option<i32>,
    /// Whether something did not build, so that further checks did not run.
    is_broken: bool,
    names: BTreeMap<String, u64>,
}

impl FailingChecks {
    /// Returns the failing checks. None if they do not explain why the gate failed.
    pub(super) fn of(run: &HookRun) -> Option<FailingChecks> {
        let records: &CheckRecords = run.checks.as_ref()?;
        let mut names: BTreeMap<String, u64> = BTreeMap::new();
        for check in records.failing() {
            *names.entry(check.id.clone()).or_default() += 1;
        }
        let listed: u64 = names.values().sum();
        let is_known = listed > 0
            && listed == records.counts.failed
            && !UNSTABLE.contains(&records.source)
            && run.outcome.status == HookStatus::Failed;
        let (exit_code, is_broken) = (run.ran.as_ref()?.exit_code, records.is_broken);
        is_known.then_some(FailingChecks { exit_code, is_broken, names })
    }

    /// Whether each of these checks failed in the other run, too, and nothing else did.
    pub(super) fn is_within(&self, base: &FailingChecks) -> bool {
        self.exit_code == base.exit_code
            && (!self.is_broken || base.is_broken)
            && self.names.iter().all(|(name, count)| base.names.get(name) >= Some(count))
    }

    /// Returns the checks that failed in the other run, too.
    pub(super) fn also_in(&self, base: &FailingChecks) -> Vec<&str> {
        let names = self.names.keys().filter(|name| base.names.contains_key(*name));
        names.map(String::as_str).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }
}
