//! Actions that a hook may request: four of them, in the wire form `{type, payload}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::excerpt::first_chars;
use crate::id::TaskId;
use crate::payload::task::{AgentMetrics, DependencySatisfied};
use crate::task::Priority;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Action {
    CreateTask(CreateTask),
    UpdateTask(UpdateTask),
    ExecuteWorkflow(ExecuteWorkflow),
    Log(LogEntry),
    /// An action that cannot be read. It keeps its place among the others, which take effect.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    Unreadable(UnreadableAction),
}

/// The names of the actions, as answers and configurations spell them.
pub(crate) const ACTION_TYPES: [&str; 4] =
    ["create_task", "update_task", "execute_workflow", "log"];
/// The longest `type` of an unreadable action that is kept.
const TYPE_SHOWN_MAX: usize = 64;
/// The largest payload of an unreadable action that is kept, as JSON.
const PAYLOAD_KEPT_MAX: usize = 4 * 1024;

/// An entry of a list of actions that is not an action, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnreadableAction {
    pub action_type: String,
    pub error: String,
    pub payload: Value,
}

impl UnreadableAction {
    fn new(entry: Value, error: String) -> UnreadableAction {
        let word = |name: &str| entry.get(name).and_then(Value::as_str);
        let action_type = word("type").or(word("action")).unwrap_or("unknown");
        let action_type = first_chars(action_type, TYPE_SHOWN_MAX);
        let payload = entry.get("payload").cloned().unwrap_or(entry);
        let is_large = payload.to_string().len() > PAYLOAD_KEPT_MAX;
        let payload = if is_large { Value::Null } else { payload };
        UnreadableAction { action_type, error, payload }
    }
}

impl Action {
    /// Reads one entry of a list of actions. An entry that is not an action becomes
    /// [`Action::Unreadable`], so one mistake voids no other action.
    pub fn read(entry: Value) -> Action {
        let unreadable =
            |entry, error: String| Action::Unreadable(UnreadableAction::new(entry, error));
        let Some(name) = entry.get("type").and_then(Value::as_str) else {
            let error = "an action is an object with `type` and `payload`".to_owned();
            return unreadable(entry, error);
        };
        if !ACTION_TYPES.contains(&name) {
            let error =
                format!("there is no action `{name}`; actions are {}", ACTION_TYPES.join(", "));
            return unreadable(entry, error);
        }
        match Action::deserialize(&entry) {
            Ok(action) => action,
            Err(error) => unreadable(entry, error.to_string()),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Action::CreateTask(_) => "create_task",
            Action::UpdateTask(_) => "update_task",
            Action::ExecuteWorkflow(_) => "execute_workflow",
            Action::Log(_) => "log",
            Action::Unreadable(unreadable) => &unreadable.action_type,
        }
    }

    /// Returns only the payload, as `action_error` records it.
    pub fn payload(&self) -> Value {
        if let Action::Unreadable(unreadable) = self {
            return unreadable.payload.clone();
        }
        match serde_json::to_value(self) {
            Ok(Value::Object(mut object)) => object.remove("payload").unwrap_or(Value::Null),
            _ => Value::Null,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    pub goal: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default)]
    pub deliverables: Vec<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(alias = "parentTaskId", default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    #[serde(alias = "dependsOn", default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTask {
    #[serde(alias = "taskId")]
    pub task_id: TaskId,
    pub action: TaskChange,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<ChangePayload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskChange {
    TransitionToReady,
    Start,
    Submit,
    Complete,
    Block,
    Unblock,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(alias = "requiredKnowledge", default, skip_serializing_if = "Option::is_none")]
    pub required_knowledge: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecuteWorkflow {
    #[serde(alias = "workflowId")]
    pub workflow_id: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}

/// A record that a hook asks for.
///
/// Only built-in hooks build `Core`. An entry from outside is read as `Custom` and stored under the hook's own
/// namespace, so no hook can report that a task was completed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(with = "CustomLog")]
#[serde(untagged)]
pub enum LogEntry {
    Core(Box<CoreLog>),
    Custom(Box<CustomLog>),
}

/// An event that only a built-in hook writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CoreLog {
    DependencySatisfied(DependencySatisfied),
    AgentMetrics(AgentMetrics),
}

impl<'de> Deserialize<'de> for LogEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CustomLog::deserialize(deserializer).map(|entry| LogEntry::Custom(Box::new(entry)))
    }
}

/// An event that a hook writes.
///
/// The event's own time, actor and type prefix are those of the log: `timestamp` is read and not
/// stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomLog {
    /// The last part of the event's type; `log` if it is not given.
    #[serde(rename = "type", default = "default_log_type")]
    pub kind: String,
    #[serde(default)]
    pub data: Value,
    /// The task that the event is about, or `system`; the task of the hook's own event if it is not given.
    #[serde(alias = "nodeId", default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Stored as `metadata` in the data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Accepted and not stored: the log has its own clock.
    #[serde(default, skip_serializing)]
    pub timestamp: Option<Value>,
}

fn default_log_type() -> String {
    "log".to_owned()
}

impl CustomLog {
    /// Returns the data of the stored event, with the metadata in it.
    pub fn stored_data(&self) -> Value {
        if self.metadata.is_null() {
            return self.data.clone();
        }
        let mut fields = match &self.data {
            Value::Object(fields) => fields.clone(),
            Value::Null => serde_json::Map::new(),
            data => serde_json::Map::from_iter([("data".to_owned(), data.clone())]),
        };
        fields.entry("metadata").or_insert_with(|| self.metadata.clone());
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_action_is_kept_as_unreadable_with_its_reason() {
        for (entry, name, error) in [
            (json!({"type": "sudo", "payload": {"x": 1}}), "sudo", "there is no action `sudo`"),
            (json!({"type": "create_task", "payload": {}}), "create_task", "missing field `goal`"),
            (json!({"type": "create_task"}), "create_task", "missing field `payload`"),
            (json!(7), "unknown", "`type` and `payload`"),
            (json!({"action": "create_task"}), "create_task", "`type` and `payload`"),
        ] {
            let Action::Unreadable(unreadable) = Action::read(entry.clone()) else {
                panic!("{entry} is an action");
            };
            assert_eq!(unreadable.action_type, name);
            assert!(unreadable.error.contains(error), "{}", unreadable.error);
        }
        let large = json!({"type": "sudo", "payload": "x".repeat(PAYLOAD_KEPT_MAX)});
        assert_eq!(Action::read(large).payload(), Value::Null);
    }

    #[test]
    fn a_log_action_is_parsed_with_its_event_type_and_data() {
        let whole = json!({"type": "log", "payload": {
            "timestamp": "2026-01-17T12:00:00Z", "type": "agent_metrics", "nodeId": "task_5",
            "data": {"durationMs": 9}, "metadata": {"triggeredBy": "ada"},
        }});
        let Action::Log(LogEntry::Custom(entry)) = Action::read(whole) else {
            panic!("not a log action");
        };
        assert_eq!(
            (entry.kind.as_str(), entry.node_id.as_deref()),
            ("agent_metrics", Some("task_5"))
        );
        let data = json!({"durationMs": 9, "metadata": {"triggeredBy": "ada"}});
        assert_eq!(entry.stored_data(), data);
        let Action::Log(LogEntry::Custom(empty)) =
            Action::read(json!({"type": "log", "payload": {}}))
        else {
            panic!("not a log action");
        };
        assert_eq!((empty.kind.as_str(), empty.stored_data()), ("log", Value::Null));
    }
}
