//! Results of gates, and the files that the gates ran on.

use std::collections::BTreeMap;

use hookloop_core::excerpt::first_names;
use hookloop_core::session::facts::GateRoom;
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
    /// Gates that were proven before, by name.
    pub(super) reused: BTreeMap<String, ProvenGate>,
}

impl GateResults {
    /// Returns the room of a run, for its receipt.
    pub(super) fn room_of(&self, run: &HookRun) -> Option<GateRoom> {
        if run.in_room || self.reused.contains_key(&run.hook) {
            return self.room.clone();
        }
        let wrote = self.wrote.iter().take(WROTE_MAX).cloned().collect();
        Some(GateRoom { wrote, ..GateRoom::here() })
    }

    /// Returns why a person is needed if gates rewrite files of the project in the working directory.
    pub(super) fn rewriting_gates(&self, files: &str) -> Option<String> {
        self.is_here.then(|| {
            format!(
                "gates that run in the working directory change files each time: {files}. Add `room: clean` to \
                 hookloop.yaml, or let the gates write files that git ignores"
            )
        })
    }
}

/// A git tree and the digest of the files, as far as each is known.
pub(super) type FilesState = (Option<String>, Option<String>);

/// Returns the names of changed files for a message.
pub(super) fn named_files(changed: &[String]) -> String {
    if changed.is_empty() {
        return "files that git tracks or does not ignore".to_owned();
    }
    first_names(changed, FILES_NAMED_MAX)
}
