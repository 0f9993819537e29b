//! Results of gates, and the files that the gates ran on.

use std::collections::BTreeMap;

use hookloop_core::excerpt::first_names;
use hookloop_core::gates::{GateResult, GatesVerdict};
use hookloop_core::hook_protocol::HookVerdict;
use hookloop_core::session::facts::{BaseTests, GateRoom, TestStrength};
use hookloop_hooks::hook_run::HookRun;

use super::proven::ProvenGate;

/// Maximum files in a message about files that changed while gates ran.
const FILES_NAMED_MAX: usize = 5;
/// Maximum files of a gate that a receipt names.
const WROTE_MAX: usize = 20;

/// The runs of gates, and the files that they ran on.
#[derive(Clone, Debug, Default)]
pub(super) struct GateResults {
    /// The tree that the gates ran on.
    pub(super) tree: Option<String>,
    /// The digest of the files after the run.
    pub(super) files: Option<String>,
    pub(super) runs: Vec<HookRun>,
    /// Whether the gates judged the files as they are now.
    pub(super) is_stable: bool,
    /// Files that changed while they ran, as far as they are known.
    pub(super) changed: Vec<String>,
    /// The clean room, if gates ran in one.
    pub(super) room: Option<GateRoom>,
    /// New files that gates wrote into the working directory.
    pub(super) wrote: Vec<String>,
    /// Whether a gate ran in the working directory.
    pub(super) is_here: bool,
    /// The tests of the base that ran beside gates, by gate.
    pub(super) base_tests: BTreeMap<String, BaseTests>,
    /// The strength of the tests of gates, by gate.
    pub(super) strength: BTreeMap<String, TestStrength>,
    /// The number of failing checks of gates that pass because these checks failed before the work, too.
    pub(super) known_failures: BTreeMap<String, u64>,
    /// Gates that were proven before, by name.
    pub(super) reused: BTreeMap<String, ProvenGate>,
    /// Gates that used the working directory although they ran in a room, with the reason for a person.
    pub(super) leaks: BTreeMap<String, String>,
}

impl GateResults {
    /// Returns the room of a run, for its receipt.
    pub(super) fn room_of(&self, run: &HookRun) -> Option<GateRoom> {
        if let Some(proof) = self.reused.get(&run.hook) {
            return self.room.clone().map(|room| GateRoom { build: Some(proof.build), ..room });
        }
        if run.in_room {
            return self.room.clone();
        }
        let wrote = self.wrote.iter().take(WROTE_MAX).cloned().collect();
        Some(GateRoom { wrote, ..GateRoom::here() })
    }

    /// Returns the blocking runs that the agent is told of.
    pub(super) fn blocked(&self, judged: &GatesVerdict) -> Vec<&HookRun> {
        let runs = self.runs.iter().zip(&judged.results);
        let blocked = runs.filter(|(_, result)| **result == GateResult::Blocked);
        // Only a person can answer these.
        let is_for_person = |run: &HookRun| {
            let is_escalated = matches!(run.outcome.verdict, HookVerdict::Escalate { .. });
            self.leaks.contains_key(&run.hook)
                || is_escalated && self.base_tests.contains_key(&run.hook)
                || is_escalated && self.strength.contains_key(&run.hook)
        };
        blocked.map(|(run, _)| run).filter(|run| !is_for_person(run)).collect()
    }

    /// Returns why a person is needed if gates rewrite files of the project in the working directory.
    pub(super) fn rewriting_gates(&self, files: &str) -> Option<String> {
        self.is_here.then(|| {
            format!(
                "gates that run in the working directory change files each time: {files}. Remove `room: here` from \
                 hookloop.yaml, or let the gates write files that git ignores"
            )
        })
    }
}

/// The beginning of the reason for gates that did not run because of their setup.
pub(super) const SETUP_FAILED: &str = "setup_failed: ";

/// A git tree and the digest of the files, as far as each is known.
pub(super) type FilesState = (Option<String>, Option<String>);

/// Returns the names of changed files for a message.
pub(super) fn named_files(changed: &[String]) -> String {
    if changed.is_empty() {
        return "files that git tracks or does not ignore".to_owned();
    }
    first_names(changed, FILES_NAMED_MAX)
}
