//! Results of gates, and the files that the gates ran on.

use hookloop_core::excerpt::first_names;
use hookloop_hooks::hook_run::HookRun;

/// Maximum files in a message about files that changed while gates ran.
const FILES_NAMED_MAX: usize = 5;

/// The runs of gates, and the files that they ran on.
#[derive(Clone, Debug)]
pub(super) struct GateResults {
    pub(super) tree: Option<String>,
    pub(super) files: Option<String>,
    pub(super) runs: Vec<HookRun>,
    /// Whether no file changed while they ran.
    pub(super) is_stable: bool,
    /// Files that changed while they ran, as far as they are known.
    pub(super) changed: Vec<String>,
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
