//! Commands: the requests that [`crate::decide`] accepts or refuses.

use crate::action::{CreateTask, TaskChange, UpdateTask};
use crate::claim::{Fence, ReleaseReason};
use crate::id::TaskId;
use crate::payload::delivery::{DeliveryFact, Submission, TaskReturned};
use crate::remark::TaskRemark;
use crate::schedule::{ScheduleCommand, ScheduleName};
use crate::task::{TaskObstacle, TaskOutcome, TaskSpec};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    AddTask {
        id: TaskId,
        spec: TaskSpec,
        depends_on: Vec<TaskId>,
    },
    StartTask {
        id: TaskId,
        context: Option<String>,
    },
    /// Claims a ready task for an agent.
    ClaimTask {
        id: TaskId,
        agent: String,
        lease_ms: u64,
    },
    /// Takes over a claimed task, if its claim still has the epoch that missed its heartbeat.
    TakeOverTask {
        id: TaskId,
        agent: String,
        lease_ms: u64,
        silent_epoch: u64,
    },
    /// Makes a started task ready again.
    ReleaseTask {
        id: TaskId,
        fence: Fence,
        reason: ReleaseReason,
        note: Option<String>,
    },
    /// Submits a task. A submission ends the claim: others merge it.
    SubmitTask {
        id: TaskId,
        fence: Fence,
        submission: Option<Submission>,
    },
    /// Records the commit that is about to be pushed to the task's branch.
    PlanPush {
        id: TaskId,
        fence: Fence,
        head: String,
    },
    /// Records an event of a submission.
    RecordDelivery {
        id: TaskId,
        fact: DeliveryFact,
    },
    /// Approves the submitted commit of a task, so that it waits to be merged again.
    ApproveTask {
        id: TaskId,
        head: String,
    },
    /// Makes a submitted task ready again.
    ReturnTask {
        id: TaskId,
        returned: TaskReturned,
    },
    CompleteTask {
        id: TaskId,
        outcome: TaskOutcome,
        fence: Fence,
    },
    BlockTask {
        id: TaskId,
        obstacle: TaskObstacle,
        fence: Fence,
    },
    UnblockTask {
        id: TaskId,
    },
    DeleteTask {
        id: TaskId,
        dependents: DependentsOfDeleted,
        force: bool,
    },
    /// `task` waits for `on` from now on.
    AddDependency {
        task: TaskId,
        on: TaskId,
    },
    RemoveDependency {
        task: TaskId,
        on: TaskId,
    },
    /// Adds a remark to a task.
    RemarkTask {
        id: TaskId,
        remark: TaskRemark,
        fence: Fence,
    },
    /// Confirms that a task is ready. Readiness follows from the graph; the command only checks it.
    ConfirmReady {
        id: TaskId,
    },
    SwitchHook {
        name: String,
        enabled: bool,
    },
    Schedule {
        name: ScheduleName,
        ask: ScheduleCommand,
    },
}

/// The effect of a deletion on open tasks that depend on the deleted task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DependentsOfDeleted {
    /// The tasks are blocked with the deletion as the reason, so that a person decides.
    #[default]
    Block,
    /// The tasks no longer depend on it.
    Release,
}

impl Command {
    /// Returns the task that the command is about.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Command::AddTask { id, .. }
            | Command::StartTask { id, .. }
            | Command::ClaimTask { id, .. }
            | Command::TakeOverTask { id, .. }
            | Command::ReleaseTask { id, .. }
            | Command::SubmitTask { id, .. }
            | Command::PlanPush { id, .. }
            | Command::RecordDelivery { id, .. }
            | Command::ApproveTask { id, .. }
            | Command::ReturnTask { id, .. }
            | Command::CompleteTask { id, .. }
            | Command::BlockTask { id, .. }
            | Command::UnblockTask { id }
            | Command::DeleteTask { id, .. }
            | Command::RemarkTask { id, .. }
            | Command::ConfirmReady { id } => Some(id),
            Command::AddDependency { task, .. } | Command::RemoveDependency { task, .. } => {
                Some(task)
            }
            Command::Schedule { ask, .. } => ask.task(),
            Command::SwitchHook { .. } => None,
        }
    }
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
                may_change: Vec::new(),
            },
            depends_on: self.depends_on,
        }
    }
}

impl UpdateTask {
    /// Returns the requested command, with the right of `fence`.
    pub fn into_command(self, fence: Fence) -> Command {
        let id = self.task_id;
        let payload = self.payload.unwrap_or_default();
        match self.action {
            TaskChange::TransitionToReady => Command::ConfirmReady { id },
            TaskChange::Start => Command::StartTask { id, context: payload.context },
            TaskChange::Submit => Command::SubmitTask { id, fence, submission: None },
            TaskChange::Complete => Command::CompleteTask {
                id,
                outcome: TaskOutcome {
                    result: payload.result,
                    artifacts: payload.artifacts,
                    proven: false,
                },
                fence,
            },
            TaskChange::Block => Command::BlockTask {
                id,
                obstacle: TaskObstacle {
                    reason: payload.reason.unwrap_or_default(),
                    required_knowledge: payload.required_knowledge,
                },
                fence,
            },
            TaskChange::Unblock => Command::UnblockTask { id },
        }
    }
}
