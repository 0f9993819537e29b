//! A node of the graph and its states.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::id::TaskId;
use crate::time::Timestamp;

/// The state of a task.
///
/// `Created` and `Ready` are one stored state. The number of open dependencies and the time tell them apart, so
/// a task becomes ready without any process acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task waits for a dependency, or for its time.
    Created,
    /// Every dependency is completed and the time has come, so the task may be started.
    Ready,
    Active,
    Submitted,
    Completed,
    Blocked,
}

impl TaskState {
    pub const ALL: [TaskState; 6] = [
        TaskState::Created,
        TaskState::Ready,
        TaskState::Active,
        TaskState::Submitted,
        TaskState::Completed,
        TaskState::Blocked,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TaskState::Created => "created",
            TaskState::Ready => "ready",
            TaskState::Active => "active",
            TaskState::Submitted => "submitted",
            TaskState::Completed => "completed",
            TaskState::Blocked => "blocked",
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TaskState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        TaskState::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
            let names = TaskState::ALL.map(TaskState::name).join(", ");
            format!("no such state: `{text}` (one of {names})")
        })
    }
}

/// The priority of a task: 0 before 1 before 2 …
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    pub const MAX: u8 = 9;

    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Priority(2)
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        if value <= Priority::MAX {
            Ok(Priority(value))
        } else {
            Err(format!("priority {value} is out of range: 0 (first) to {}", Priority::MAX))
        }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<u8>()
            .map_err(|_| format!("`{text}` is not a priority: 0 (first) to {}", Priority::MAX))?
            .try_into()
    }
}

/// The definition of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSpec {
    pub goal: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The results that the task should produce.
    #[serde(default)]
    pub deliverables: Vec<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    /// 0 is the most urgent, 9 the last.
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The task whose completion led to this one: its `spawned_by` edge.
    #[serde(alias = "parentTaskId", default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// The time before which the task is not ready.
    #[serde(alias = "notBefore", default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Patterns of tests that the work may change, from the top of the repository. Only a person sets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
}

impl TaskSpec {
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|l| l == label)
    }
}

/// The reason why a task is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskObstacle {
    pub reason: String,
    /// The knowledge that is missing.
    #[serde(alias = "requiredKnowledge", default)]
    pub required_knowledge: Option<String>,
}

/// The result of a completed task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOutcome {
    #[serde(default)]
    pub result: Option<String>,
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Whether gates passed on the work. Completion by a person is no proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub spec: TaskSpec,
    pub state: TaskState,
    /// Dependencies that are not completed.
    pub open_dependencies: u32,
    /// Whether `dependency_satisfied` was recorded since a dependency was last open.
    pub satisfaction_announced: bool,
    /// The number of claims so far: the epoch of the last one.
    pub epoch: u64,
    /// The current claim.
    pub claim: Option<Claim>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub obstacle: Option<TaskObstacle>,
    pub outcome: Option<TaskOutcome>,
}

impl Task {
    /// Returns the time since which the task could be started, apart from its dependencies.
    pub fn due_since(&self) -> Timestamp {
        self.spec.not_before.map_or(self.created_at, |time| time.max(self.created_at))
    }

    /// Returns the time that the task waits for, if it waits for nothing else.
    pub fn waits_until(&self) -> Option<Timestamp> {
        let is_early = self.state == TaskState::Created && self.open_dependencies == 0;
        self.spec.not_before.filter(|_| is_early)
    }

    /// Returns the duration of the work in milliseconds, if both ends are known.
    pub fn duration_ms(&self) -> Option<i64> {
        Some(self.completed_at?.millis_since(self.started_at?))
    }
}
