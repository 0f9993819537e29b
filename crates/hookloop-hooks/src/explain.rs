//! The hooks that would run at a hook point, in order, each with the reason.

use hookloop_config::condition::{Condition, ConditionError};
use hookloop_core::builtin::Builtin;
use hookloop_core::hook::{Hook, HookRegistry, HookSource};
use hookloop_core::point::Point;
use hookloop_core::task::Task;

use crate::hook_context::HookContext;
use crate::hook_values;

/// A hook of a hook point.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedHook {
    pub hook: Hook,
    pub list: HookList,
    pub runs: RunForecast,
}

/// The origin of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookList {
    /// A policy.
    Operator,
    /// The user's own configuration.
    User,
    /// The task's type.
    Type(String),
    Project,
    /// The default of hookloop, because no configuration lists hooks for the point.
    Default,
}

/// Whether the hook would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunForecast {
    Yes,
    /// No, because it is disabled.
    Off,
    /// No, because its condition is false for the task.
    NotNow,
    /// Unknown, because its condition depends on the task.
    Depends,
    /// Unknown, because its condition cannot be evaluated.
    Unclear(ConditionError),
}

/// Returns the hooks at `point`, for a task if one is given.
pub fn explain(hooks: &HookRegistry, point: &Point, task: Option<&Task>) -> Vec<ExplainedHook> {
    let task_type = task.and_then(|task| task.spec.kind.as_deref());
    let mut everything = hooks.clone();
    let names: Vec<_> =
        hooks.list().iter().map(|h| (h.task_type.clone(), h.name.clone())).collect();
    for (scope, name) in names {
        if let Some(hook) = everything.get_mut_for(scope.as_deref(), &name) {
            hook.enabled = true;
        }
    }
    let list = match task_type {
        Some(name) if hooks.is_typed(point.name(), task_type) => HookList::Type(name.to_owned()),
        _ => HookList::Project,
    };
    let found = everything.resolve(point.name(), task_type);
    let is_own = |hook: &Hook| matches!(hook.source, HookSource::User | HookSource::Operator);
    let default = match list == HookList::Project && found.iter().all(|hook| is_own(hook)) {
        true => defaults(point),
        false => Vec::new(),
    };
    let explained = found.into_iter().map(|hook| {
        let list = match hook.source {
            HookSource::Operator => HookList::Operator,
            HookSource::User => HookList::User,
            HookSource::Builtin | HookSource::Project => list.clone(),
        };
        let is_on =
            hooks.get_for(hook.task_type.as_deref(), &hook.name).is_some_and(|hook| hook.enabled);
        let runs = if is_on { runs(hook, point, task) } else { RunForecast::Off };
        ExplainedHook { hook: Hook { enabled: is_on, ..hook.clone() }, list, runs }
    });
    explained.chain(default).collect()
}

/// Returns the default hooks of a point without a configuration.
fn defaults(point: &Point) -> Vec<ExplainedHook> {
    if *point != Point::BeforeSubmit {
        return Vec::new();
    }
    let explained = |builtin: Builtin| {
        let hook = Hook { points: vec![point.clone()], ..builtin.hook() };
        ExplainedHook { hook, list: HookList::Default, runs: RunForecast::Yes }
    };
    Builtin::SUBMISSION.into_iter().map(explained).collect()
}

fn runs(hook: &Hook, point: &Point, task: Option<&Task>) -> RunForecast {
    let Some(when) = &hook.options.when else { return RunForecast::Yes };
    let Some(task) = task else { return RunForecast::Depends };
    let condition = Condition::compile(when, point);
    let hook_context = HookContext { task: Some(task), ..HookContext::at(point) };
    let values = hook_values::for_condition(&hook_context, None);
    match condition.and_then(|condition| condition.holds(&values)) {
        Ok(true) => RunForecast::Yes,
        Ok(false) => RunForecast::NotNow,
        // Values such as the session and the branch are known only when the hook runs.
        Err(ConditionError::NoValue(_)) => RunForecast::Depends,
        Err(error) => RunForecast::Unclear(error),
    }
}
