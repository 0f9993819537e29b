//! The hooks and agents that this process runs below, and the cause that they pass to their commands.

use std::ffi::OsString;
use std::path::Path;

use hookloop_core::cascade::EventCause;
use hookloop_hooks::ancestry::{KeeperOwner, ancestry};
use hookloop_hooks::hook_context::CAUSE_VARIABLE;

use crate::command_outcome::ReactionsLeft;
use crate::error::EngineError;

/// Returns the projects whose hooks or agents run this process.
///
/// An entry is none if its keeper names no project.
pub(crate) fn owners_above() -> &'static [Option<KeeperOwner>] {
    ancestry().as_ref().map_or(&[], |above| &above.keepers)
}

/// Returns why this process must not run the hooks of the project at `root`, if it must not.
///
/// That is the case below a hook or an agent of the project, and where the ancestors are hidden.
pub(crate) fn left_to_above(root: &Path, state: &Path) -> Option<ReactionsLeft> {
    let is_ours = |owner: &Option<KeeperOwner>| match owner {
        Some(owner) => owner.project == root || owner.state == state,
        None => true,
    };
    match ancestry() {
        Ok(above) => above.keepers.iter().any(is_ours).then_some(ReactionsLeft::Above),
        Err(hidden) => Some(ReactionsLeft::Hidden(*hidden)),
    }
}

/// Parses the cause that hookloop puts into the environment of a hook's commands.
pub(crate) fn cause_of(
    environment: &[(OsString, OsString)],
) -> Result<Option<EventCause>, EngineError> {
    let Some((_, value)) = environment.iter().find(|(name, _)| name == CAUSE_VARIABLE) else {
        return Ok(None);
    };
    let cause = value.to_str().and_then(|text| serde_json::from_str(text).ok());
    cause.map(Some).ok_or_else(|| EngineError::BadCause(value.to_string_lossy().into_owned()))
}
