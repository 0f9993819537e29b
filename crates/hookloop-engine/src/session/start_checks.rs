//! Checks of hooks and gates before a session starts.

use hookloop_core::gate_ledger::GateChange;
use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::point::Point;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust::HookStanding;

use super::start_error::StartError;
use crate::gate_agreement;
use crate::project::Project;

/// Fails unless every hook of the session may run. A gate that may not run would never pass.
pub(super) fn check_trust(runner: &HookRunner, hooks: &HookRegistry) -> Result<(), StartError> {
    check_standing(runner, hooks, HookStanding::may_run)
}

/// Fails if a hook of a resumed session is untrusted.
///
/// A hook that changed since it was trusted is allowed: the session has its own copy.
pub(super) fn check_known(runner: &HookRunner, hooks: &HookRegistry) -> Result<(), StartError> {
    check_standing(runner, hooks, |standing| standing != HookStanding::Untrusted)
}

fn check_standing(
    runner: &HookRunner,
    hooks: &HookRegistry,
    is_enough: impl Fn(HookStanding) -> bool,
) -> Result<(), StartError> {
    let is_of_session = |hook: &&Hook| {
        hook.enabled && hook.points.iter().any(|point| !matches!(point, Point::Event(_)))
    };
    let may_not_run = |hook: &&Hook| !is_enough(runner.standing(hook));
    let of_session = hooks.list().iter().filter(is_of_session);
    let untrusted: Vec<String> =
        of_session.filter(may_not_run).map(|hook| hook.name.clone()).collect();
    match untrusted.is_empty() {
        true => Ok(()),
        false => Err(StartError::Untrusted(untrusted)),
    }
}

/// Fails if a hook may not run, or if the gates are fewer or weaker than a person agreed to.
pub fn check_gates(
    project: &Project,
    runner: &HookRunner,
    hooks: &HookRegistry,
) -> Result<(), StartError> {
    check_trust(runner, hooks)?;
    check_agreement(gate_agreement::check(project, runner)?)
}

pub(super) fn check_agreement(weakened: Vec<GateChange>) -> Result<(), StartError> {
    if weakened.is_empty() { Ok(()) } else { Err(StartError::WeakenedGates(weakened)) }
}
