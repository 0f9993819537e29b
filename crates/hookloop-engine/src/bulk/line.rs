//! The JSON form of a task in an import or export.

use hookloop_core::event::{EventBody, TaskStarted, TaskSubmitted};
use hookloop_core::id::TaskId;
use hookloop_core::task::{Priority, Task, TaskObstacle, TaskOutcome, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A task as one line of JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    pub goal: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliverables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<TaskObstacle>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TaskOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl ImportLine {
    pub(super) fn into_spec(self) -> TaskSpec {
        TaskSpec {
            goal: self.goal,
            description: self.description,
            deliverables: self.deliverables,
            labels: self.labels,
            priority: self.priority,
            kind: self.kind,
            parent_task_id: self.parent,
            not_before: self.not_before,
            may_change: self.may_change,
        }
    }

    pub(super) fn of(task: Task, depends_on: Vec<TaskId>) -> ImportLine {
        ImportLine {
            id: Some(task.id),
            goal: task.spec.goal,
            description: task.spec.description,
            deliverables: task.spec.deliverables,
            labels: task.spec.labels,
            priority: task.spec.priority,
            kind: task.spec.kind,
            parent: task.spec.parent_task_id,
            depends_on,
            not_before: task.spec.not_before,
            may_change: task.spec.may_change,
            state: Some(task.state),
            blocked: task.obstacle,
            outcome: task.outcome,
            created_at: Some(task.created_at),
            started_at: task.started_at,
            completed_at: task.completed_at,
        }
    }
}

/// Returns the events that bring an imported task to the state in its line, with their times.
pub(super) fn past(line: &ImportLine) -> Vec<(Option<Timestamp>, EventBody)> {
    let started = (line.started_at, EventBody::TaskStarted(TaskStarted::default()));
    let was_started = match line.state {
        None | Some(TaskState::Created | TaskState::Ready) => false,
        Some(TaskState::Active | TaskState::Submitted) => true,
        Some(TaskState::Completed | TaskState::Blocked) => line.started_at.is_some(),
    };
    let last = match line.state {
        None | Some(TaskState::Created | TaskState::Ready | TaskState::Active) => None,
        Some(TaskState::Submitted) => {
            Some((None, EventBody::TaskSubmitted(TaskSubmitted::default())))
        }
        Some(TaskState::Completed) => {
            let completed = EventBody::TaskCompleted(line.outcome.clone().unwrap_or_default());
            Some((line.completed_at, completed))
        }
        Some(TaskState::Blocked) => {
            Some((None, EventBody::TaskBlocked(line.blocked.clone().unwrap_or_default())))
        }
    };
    was_started.then_some(started).into_iter().chain(last).collect()
}

/// Returns the text of a parse error, with the column only.
///
/// `serde_json` sees one line at a time, so its line number is always 1. The caller adds the number
/// in the input.
pub(super) fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what}, at column {}", error.column()),
        None => text,
    }
}
