//! Checks that failed before the work began.
//!
//! With `known_failures: allow`, a gate passes if each of its failing checks failed there, too. The gate runs on the
//! files of the base when its checks fail first. A check counts by its name, so a gate without a report of its checks,
//! or with another exit code than on the base, is judged as always.

use hookloop_core::excerpt::first_names;
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_core::options::KnownFailures;
use hookloop_hooks::hook_run::HookRun;

use super::super::drive::SessionDriver;
use super::super::failing_checks::FailingChecks;
use super::super::gate_results::GateResults;
use super::super::world::SessionWorld;
use super::NAMED_MAX;
use crate::error::EngineError;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Lets gates pass whose failing checks failed before the work began, if their option allows it.
    ///
    /// If others fail too, the agent is told which ones are not due to its work.
    pub(in super::super) fn excuse_known_failures(
        &mut self,
        gates: &[Hook],
        results: &mut GateResults,
    ) -> Result<(), EngineError> {
        for gate in gates {
            let rules = gate.options.base_tests.as_ref();
            if rules.is_none_or(|rules| rules.known_failures != KnownFailures::Allow) {
                continue;
            }
            let failed =
                results.runs.iter().enumerate().filter(|(_, run)| run.hook == gate.name).find_map(
                    |(position, run)| FailingChecks::of(run).map(|failing| (position, failing)),
                );
            let Some((position, failing)) = failed else { continue };
            if self.is_stopping() {
                return Ok(());
            }
            let base = match self.failing_before(gate)? {
                Ok(base) => base,
                Err(why) => {
                    let reason =
                        format!("the checks that failed before the work are unknown: {why}");
                    tracing::warn!(gate = gate.name, reason);
                    let outcome = &mut results.runs[position].outcome;
                    outcome.reason = Some(with_reason(outcome, reason));
                    continue;
                }
            };
            let known = base.as_ref().map(|base| failing.also_in(base)).unwrap_or_default();
            let outcome = &mut results.runs[position].outcome;
            if base.as_ref().is_some_and(|base| failing.is_within(base)) {
                let count = known.len() as u64;
                let reason = format!("{count} failing checks failed before the work, too");
                *outcome =
                    HookOutcome { reason: Some(reason), ..HookOutcome::of(HookStatus::Passed) };
                results.known_failures.insert(gate.name.clone(), count);
            } else if !known.is_empty() {
                let names = first_names(&known, NAMED_MAX);
                let reason = format!("these failed before you began: {names}");
                outcome.reason = Some(with_reason(outcome, reason));
            }
        }
        Ok(())
    }

    /// Returns the checks of a gate that fail on the files of the base; none if they explain no failure. The inner error
    /// is for a person.
    fn failing_before(
        &mut self,
        gate: &Hook,
    ) -> Result<Result<Option<FailingChecks>, String>, EngineError> {
        if let Some(known) = self.failing_before.get(&gate.name) {
            return Ok(Ok(known.clone()));
        }
        let tree = match self.world.baseline_tree() {
            Ok(tree) => tree,
            Err(why) => return Ok(Err(why)),
        };
        let run = match self.run_on(gate, &tree)? {
            Ok(run) => run,
            Err(why) => return Ok(Err(why)),
        };
        let failing = FailingChecks::of(&run);
        self.failing_before.insert(gate.name.clone(), failing.clone());
        Ok(Ok(failing))
    }

    /// Whether a run with the tests of the base fails only where the gate failed before the work began.
    pub(super) fn fails_as_before(&self, gate: &Hook, run: &HookRun) -> bool {
        let base = self.failing_before.get(&gate.name).and_then(Option::as_ref);
        let failing = FailingChecks::of(run);
        base.zip(failing).is_some_and(|(base, failing)| failing.is_within(base))
    }

    /// Returns the names of the checks that failed before the work began, as far as a gate asked for them.
    pub(super) fn names_before(&self, gate: &Hook) -> Vec<String> {
        let known = self.failing_before.get(&gate.name).and_then(Option::as_ref);
        known.map(|known| known.names().map(str::to_owned).collect()).unwrap_or_default()
    }
}

fn with_reason(outcome: &HookOutcome, reason: String) -> String {
    let said = match &outcome.verdict {
        HookVerdict::Block { .. } => None,
        _ => outcome.reason.as_deref(),
    };
    said.map(|said| format!("{said}; {reason}")).unwrap_or(reason)
}
