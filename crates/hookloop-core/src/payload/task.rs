//! The data of events about tasks and the edges between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::delivery::Submission;
use crate::claim::{Claim, ReleaseReason};
use crate::id::TaskId;
use crate::task::Priority;

/// Work began; with a claim, by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    #[serde(default)]
    pub context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The agent that missed its heartbeat, whose claim this one ended.
    #[serde(alias = "tookOver", default, skip_serializing_if = "Option::is_none")]
    pub took_over: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReleased {
    /// The epoch of the claim that ended.
    pub epoch: u64,
    pub reason: ReleaseReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The work is done; with a submission it waits to be merged and has no holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSubmitted {
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Submission>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskDeleted {
    #[serde(alias = "edgesRemoved")]
    pub edges_removed: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeType {
    DependsOn,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskDependency {
    /// The dependent task.
    #[serde(alias = "fromId")]
    pub from_id: TaskId,
    /// The task that has to be completed first.
    #[serde(alias = "toId")]
    pub to_id: TaskId,
    #[serde(alias = "edgeType")]
    pub edge_type: EdgeType,
}

impl TaskDependency {
    /// Creates a dependency: `from` cannot start before `to` is completed.
    pub fn new(from: TaskId, to: TaskId) -> TaskDependency {
        TaskDependency { from_id: from, to_id: to, edge_type: EdgeType::DependsOn }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedDependency {
    #[serde(alias = "edgeId")]
    pub edge_id: String,
    #[serde(alias = "fromId")]
    pub from_id: TaskId,
    #[serde(alias = "toId")]
    pub to_id: TaskId,
}

impl RemovedDependency {
    pub fn new(from: TaskId, to: TaskId) -> RemovedDependency {
        RemovedDependency { edge_id: format!("depends_on:{from}:{to}"), from_id: from, to_id: to }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DependencySatisfied {
    /// The task that is ready.
    #[serde(alias = "dependentTaskId")]
    pub dependent_task_id: TaskId,
    /// The last dependency of that task.
    #[serde(alias = "completedTaskId")]
    pub completed_task_id: TaskId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentMetrics {
    pub goal: String,
    pub labels: Vec<String>,
    pub priority: Priority,
    /// The duration from start to end; null if nobody started the task.
    #[serde(alias = "durationMs")]
    pub duration_ms: Option<i64>,
    pub deliverables: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WipPermitAcquired {
    #[serde(alias = "taskId")]
    pub task_id: TaskId,
}
