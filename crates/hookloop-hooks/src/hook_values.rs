//! The values of hook variables, taken from the context of a run.

use std::collections::BTreeMap;
use std::path::Path;

use hookloop_core::hook_vars::HookVariable;
use hookloop_core::point::Point;
use hookloop_core::task::Task;
use serde_json::{Map, Value, json};

use crate::hook_context::HookContext;

/// Returns the values for a command of the point's hooks, as text. A variable without a value is empty.
pub(crate) fn for_command(
    hook_context: &HookContext<'_>,
    root: &Path,
) -> BTreeMap<&'static str, String> {
    let used = HookVariable::ALL.iter().filter(|name| name.is_in_commands(hook_context.point));
    let text = |variable: HookVariable| value(variable, hook_context, Some(root)).map(as_text);
    used.map(|variable| (variable.name(), text(*variable).unwrap_or_default())).collect()
}

/// Returns the values for a condition of the point's hooks. A variable without a value is left out, so that a
/// condition which needs it fails.
pub(crate) fn for_condition(hook_context: &HookContext<'_>, root: Option<&Path>) -> Value {
    let used = HookVariable::ALL.iter().filter(|name| name.is_in_conditions(hook_context.point));
    let values: Map<String, Value> = used
        .filter_map(|variable| {
            Some((variable.name().to_owned(), value(*variable, hook_context, root)?))
        })
        .collect();
    Value::Object(values)
}

/// Returns the value of a variable, if the run has one.
fn value(
    variable: HookVariable,
    hook_context: &HookContext<'_>,
    root: Option<&Path>,
) -> Option<Value> {
    let task = hook_context.task;
    let call = || hook_context.session.map(|session| session.call);
    let delivery = hook_context.delivery;
    let branch = |name: &str| (!name.is_empty()).then(|| json!(name));
    match variable {
        HookVariable::Session => {
            let name = call().map(|call| call.session.plan.name.clone());
            name.or_else(|| hook_context.session_id()).map(Value::from)
        }
        HookVariable::Event => match hook_context.point {
            Point::Event(kind) => Some(json!(kind)),
            _ => None,
        },
        HookVariable::Iteration => call().map(|call| json!(call.iteration())),
        HookVariable::StopHookActive => call().map(|call| json!(call.session.was_sent_back)),
        HookVariable::Error => call()?.error.map(Value::from),
        // A condition may ask whether there is a task.
        HookVariable::Task => Some(json!(task.map(task_value))),
        HookVariable::TaskId => hook_context.task_id().map(|id| json!(id)),
        HookVariable::TaskContent => task.map(|task| json!(task.spec.goal)),
        HookVariable::Description => task.map(|task| json!(task.spec.description)),
        HookVariable::TaskType => task?.spec.kind.as_ref().map(|kind| json!(kind)),
        HookVariable::Priority => task.map(|task| json!(task.spec.priority.get())),
        HookVariable::Labels => task.map(|task| json!(task.spec.labels)),
        HookVariable::Result => task?.outcome.as_ref()?.result.as_ref().map(|result| json!(result)),
        HookVariable::Reason => task?.obstacle.as_ref().map(|obstacle| json!(obstacle.reason)),
        HookVariable::Branch => hook_context.branches.and_then(|(name, _)| branch(name)),
        HookVariable::BaseBranch => hook_context.branches.and_then(|(_, base)| branch(base)),
        HookVariable::PrUrl => delivery?.url.as_ref().map(|url| json!(url)),
        HookVariable::Agent => delivery?.agent.as_ref().map(|agent| json!(agent)),
        HookVariable::Commits => delivery?.commits.map(Value::from),
        HookVariable::Point => Some(json!(hook_context.point.name())),
        HookVariable::Project => root.map(|root| json!(root.display().to_string())),
    }
}

/// Returns a value as the text that commands get: a list with commas, no quotes around a text.
fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(values) => values.into_iter().map(as_text).collect::<Vec<_>>().join(","),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// Returns a task as conditions and the input of hooks have it.
pub(crate) fn task_value(task: &Task) -> Value {
    let result = task.outcome.as_ref().and_then(|outcome| outcome.result.clone());
    json!({
        "id": task.id,
        "type": task.spec.kind.clone().unwrap_or_default(),
        "goal": task.spec.goal,
        "description": task.spec.description,
        "labels": task.spec.labels,
        "priority": task.spec.priority.get(),
        "state": task.state.to_string(),
        "result": result.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use hookloop_core::id::SessionId;
    use hookloop_core::session::{Session, SessionPlan};
    use hookloop_core::task::{TaskObstacle, TaskOutcome, TaskSpec, TaskState};
    use hookloop_core::time::Timestamp;

    use crate::hook_context::{DeliveryFacts, SessionCall, SessionContext};

    fn full_task() -> Task {
        let spec = TaskSpec {
            goal: "parse, then print".to_owned(),
            description: "all of it".to_owned(),
            kind: Some("fix".to_owned()),
            labels: vec!["a".to_owned(), "b".to_owned()],
            ..TaskSpec::default()
        };
        Task {
            id: "parse".parse().unwrap(),
            spec,
            state: TaskState::Active,
            open_dependencies: 0,
            satisfaction_announced: false,
            epoch: 1,
            claim: None,
            created_at: Timestamp(0),
            started_at: None,
            completed_at: None,
            obstacle: Some(TaskObstacle { reason: "no key".to_owned(), ..Default::default() }),
            outcome: Some(TaskOutcome { result: Some("done".to_owned()), ..Default::default() }),
        }
    }

    fn plan() -> SessionPlan {
        serde_json::from_value(json!({
            "name": "night", "work": { "prompt": "p" }, "agent": "claude",
            "stop_when": ["default"], "at_retry_limit": "needs_human", "hooks": "h", "fence": "f",
            "machine": "m",
            "limits": {
                "max_iterations": 10, "max_duration_ms": 1, "turn_timeout_ms": 1, "max_errors": 1, "gate_retries": 2,
                "max_no_progress": 1, "max_tokens": 1, "max_cost_micros": 1,
            },
        }))
        .unwrap()
    }

    /// Runs `check` with a context that has everything that the point can have.
    fn with_context(point: &Point, check: impl FnOnce(&HookContext<'_>)) {
        let task = full_task();
        let id: SessionId = "s1".parse().unwrap();
        let session = Session::new(plan());
        let delivery = DeliveryFacts {
            url: Some("https://example.org/pull/1".to_owned()),
            commits: Some(2),
            agent: Some("claude".to_owned()),
            ..DeliveryFacts::default()
        };
        let error = Some("exit code 1");
        let call = SessionCall {
            id: &id,
            session: &session,
            point,
            task: Some(&task),
            error,
            validated: &[],
            delivery: Some(&delivery),
        };
        let root = Path::new("/project");
        let context = SessionContext { call: &call, transcript: None, root, trace_parent: None };
        check(&HookContext {
            task: Some(&task),
            session: Some(&context),
            branches: Some(("hookloop/parse", "main")),
            delivery: Some(&delivery),
            ..HookContext::at(point)
        });
    }

    #[test]
    fn every_variable_of_every_point_has_a_value() {
        for name in Point::names() {
            let point: Point = name.parse().unwrap();
            with_context(&point, |hook_context| {
                let root = Path::new("/project");
                for (variable, value) in for_command(hook_context, root) {
                    assert!(!value.is_empty(), "{point}: {variable}");
                }
                let values = for_condition(hook_context, Some(root));
                for variable in point.condition_names() {
                    assert!(!values[variable].is_null(), "{point}: {variable}");
                }
            });
        }
    }

    #[test]
    fn commands_get_text_and_conditions_get_typed_values() {
        let point: Point = "task_completed".parse().unwrap();
        with_context(&point, |hook_context| {
            let texts = for_command(hook_context, Path::new("/project"));
            assert_eq!((texts["labels"].as_str(), texts["priority"].as_str()), ("a,b", "2"));
            assert_eq!(texts["task_content"], "parse, then print");
            let values = for_condition(hook_context, None);
            assert_eq!(values["task"]["labels"], json!(["a", "b"]));
            assert_eq!(values.get("project"), None);
        });
    }
}
