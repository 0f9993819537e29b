//! What a hook may ask for: four actions, in the wire form `{type, payload}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::Fence;
use crate::command::Command;
use crate::event::EventBody;
use crate::id::TaskId;
use crate::task::{Obstacle, Outcome, Priority, TaskSpec};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Action {
    CreateTask(CreateTask),
    UpdateTask(UpdateTask),
    ExecuteWorkflow(ExecuteWorkflow),
    Log(LogEntry),
}

impl Action {
    pub fn name(&self) -> &'static str {
        match self {
            Action::CreateTask(_) => "create_task",
            Action::UpdateTask(_) => "update_task",
            Action::ExecuteWorkflow(_) => "execute_workflow",
            Action::Log(_) => "log",
        }
    }

    /// The payload alone, as `action_error` records it.
    pub fn payload(&self) -> Value {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut object)) => object.remove("payload").unwrap_or(Value::Null),
            _ => Value::Null,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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
    #[serde(default, alias = "parent_task_id", skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    #[serde(default, alias = "depends_on", skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
}

impl CreateTask {
    pub fn into_command(self, id: TaskId) -> Command {
        Command::AddTask {
            id,
            spec: TaskSpec {
                goal: self.goal,
                description: self.description,
                deliverables: self.deliverables,
                labels: self.labels,
                priority: self.priority,
                kind: self.kind,
                parent_task_id: self.parent_task_id,
                not_before: None,
            },
            depends_on: self.depends_on,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateTask {
    #[serde(alias = "task_id")]
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangePayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, alias = "required_knowledge", skip_serializing_if = "Option::is_none")]
    pub required_knowledge: Option<String>,
}

impl UpdateTask {
    /// The command that this asks for, by right of `fence`.
    pub fn into_command(self, fence: Fence) -> Command {
        let id = self.task_id;
        let payload = self.payload.unwrap_or_default();
        match self.action {
            TaskChange::TransitionToReady => Command::ConfirmReady { id },
            TaskChange::Start => Command::StartTask { id, context: payload.context },
            TaskChange::Submit => Command::SubmitTask { id, fence, submission: None },
            TaskChange::Complete => Command::CompleteTask {
                id,
                outcome: Outcome {
                    result: payload.result,
                    artifacts: payload.artifacts,
                    proven: false,
                },
                fence,
            },
            TaskChange::Block => Command::BlockTask {
                id,
                obstacle: Obstacle {
                    reason: payload.reason.unwrap_or_default(),
                    required_knowledge: payload.required_knowledge,
                },
                fence,
            },
            TaskChange::Unblock => Command::UnblockTask { id },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteWorkflow {
    #[serde(alias = "workflow_id")]
    pub workflow_id: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}

/// A record that a hook asks for.
///
/// Only the product's own hooks can build `Core`: what comes from outside is read as `Custom` and
/// stored under the hook's own namespace, so no hook can claim that a task was completed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(with = "CustomLog")]
#[serde(untagged)]
pub enum LogEntry {
    Core(Box<EventBody>),
    Custom(CustomLog),
}

impl<'de> Deserialize<'de> for LogEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CustomLog::deserialize(deserializer).map(LogEntry::Custom)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomLog {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub data: Value,
}
