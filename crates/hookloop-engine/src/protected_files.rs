//! Files that decide whether work is done: `hookloop.yaml`, and the scripts that gates run.
//!
//! Work that changes one of them is not merged before a person has approved exactly that commit.
//! Its own gates are no proof, because the work changed them.

use std::collections::BTreeSet;

use hookloop_config::paths::FILE_NAME;
use hookloop_core::excerpt::first_names;
use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::point::{Point, PointKind};
use hookloop_git::repo::CommitId;
use hookloop_git::step_error::StepError;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust::HookDefinition;

use crate::delivery_context::DeliveryTools;

/// Maximum files that a reason names. The others are counted.
const NAMED_MAX: usize = 10;

/// Returns why a person has to approve `head` before a merge, or none if it changes no protected
/// file.
pub(crate) fn why_consent(
    runner: &HookRunner,
    hooks: &HookRegistry,
    delivery_tools: &DeliveryTools<'_>,
    head: &CommitId,
) -> Result<Option<String>, StepError> {
    let base = delivery_tools.repo.newest_base()?;
    let changed = delivery_tools.repo.paths_changed_by(&base, head)?;
    let protected = files(runner, hooks);
    // A configuration in another directory would create another project there.
    let is_configuration = |path: &str| path.rsplit('/').next() == Some(FILE_NAME);
    let is_protected = |path: &String| protected.contains(path) || is_configuration(path);
    let touched: Vec<String> = changed.into_iter().filter(is_protected).collect();
    if touched.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "the work changes what decides whether work is done: {}; a person has to approve it",
        first_names(&touched, NAMED_MAX)
    )))
}

/// Returns the protected files, relative to the project's directory.
fn files(runner: &HookRunner, hooks: &HookRegistry) -> BTreeSet<String> {
    let is_gate = |hook: &&Hook| hook.points.iter().any(|point| point.kind() == PointKind::Gate);
    let gates = hooks.list().iter().filter(is_gate);
    let now = gates.flat_map(|hook| hookloop_hooks::trust::script_names(runner.home(), hook));
    let is_gate = |definition: &&HookDefinition| {
        let mut points = definition.points.iter().filter_map(|name| name.parse::<Point>().ok());
        points.any(|point| point.kind() == PointKind::Gate)
    };
    let agreed = runner.trust().agreed().iter().filter(is_gate);
    let agreed = agreed.flat_map(|definition| definition.scripts.keys().cloned());
    now.chain(agreed).chain([FILE_NAME.to_owned()]).collect()
}
