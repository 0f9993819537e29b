//! The three hooks that come with the product.

use crate::action::{Action, CreateTask, LogEntry, TaskChange, UpdateTask};
use crate::event::{AgentMetrics, EventBody, Satisfied};
use crate::hook::{Handler, Hook, Metadata};
use crate::id::TaskId;
use crate::task::{Task, TaskState};

/// Tasks with this label are an agent's work.
const AGENT: &str = "agent";
/// Tasks with this label review another.
const REVIEW: &str = "review";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    AutoCreateReviewTask,
    CheckDependencySatisfaction,
    TrackAgentTaskLifecycle,
}

impl Builtin {
    pub const ALL: [Builtin; 3] = [
        Builtin::AutoCreateReviewTask,
        Builtin::CheckDependencySatisfaction,
        Builtin::TrackAgentTaskLifecycle,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Builtin::AutoCreateReviewTask => "auto-create-review-task",
            Builtin::CheckDependencySatisfaction => "check-dependency-satisfaction",
            Builtin::TrackAgentTaskLifecycle => "track-agent-task-lifecycle",
        }
    }

    /// Whether it ever does something about events of this type. Metrics are taken at the end of a
    /// task alone.
    pub fn acts_on(self, kind: &str) -> bool {
        match self {
            Builtin::TrackAgentTaskLifecycle => kind == "task_completed",
            Builtin::AutoCreateReviewTask | Builtin::CheckDependencySatisfaction => true,
        }
    }

    /// The hook as it is registered when nothing is configured.
    pub fn hook(self) -> Hook {
        let (priority, events, description): (_, &[&str], _) = match self {
            Builtin::AutoCreateReviewTask => {
                (10, &["task_completed"], "Adds a review task when an agent's task completes")
            }
            Builtin::CheckDependencySatisfaction => {
                (20, &["task_completed"], "Announces tasks whose last dependency completed")
            }
            Builtin::TrackAgentTaskLifecycle => (
                50,
                &["task_created", "task_started", "task_completed"],
                "Records how long agents' tasks took",
            ),
        };
        Hook {
            name: self.name().to_owned(),
            events: events.iter().map(ToString::to_string).collect(),
            priority,
            enabled: true,
            metadata: Metadata {
                description: Some(description.to_owned()),
                author: Some("hookloop".to_owned()),
                version: Some("1".to_owned()),
            },
            handler: Handler::Builtin(self),
        }
    }
}

/// A review of an agent's completed task. Reviews are not reviewed.
pub fn review(task: &Task) -> Option<Action> {
    if !task.spec.has_label(AGENT) || task.spec.has_label(REVIEW) {
        return None;
    }
    let mut labels = vec![REVIEW.to_owned()];
    labels.extend(task.spec.labels.iter().cloned());
    Some(Action::CreateTask(CreateTask {
        goal: format!("Review: {}", task.spec.goal),
        deliverables: vec!["Review completed".to_owned(), "Feedback provided".to_owned()],
        labels,
        priority: task.spec.priority,
        parent_task_id: Some(task.id.clone()),
        ..CreateTask::default()
    }))
}

/// What follows for `dependent` from the completion of `completed`: nothing, unless that was the
/// last dependency it waited for and no one has said so yet. Where reactions come later, it may have
/// been started meanwhile, which makes the announcement no less due.
pub fn satisfaction(completed: &TaskId, dependent: &Task) -> Vec<Action> {
    let is_begun = match dependent.state {
        TaskState::Ready => false,
        TaskState::Active | TaskState::Submitted | TaskState::Completed => true,
        TaskState::Created | TaskState::Blocked => return vec![],
    };
    if dependent.open_dependencies > 0 || dependent.satisfaction_announced {
        return vec![];
    }
    let ready = UpdateTask {
        task_id: dependent.id.clone(),
        action: TaskChange::TransitionToReady,
        payload: None,
    };
    let satisfied =
        Satisfied { dependent_task_id: dependent.id.clone(), completed_task_id: completed.clone() };
    let announced = Action::Log(LogEntry::Core(EventBody::DependencySatisfied(satisfied)));
    match is_begun {
        true => vec![announced],
        false => vec![Action::UpdateTask(ready), announced],
    }
}

/// The figures of an agent's task, once it is completed.
pub fn metrics(body: &EventBody, task: &Task) -> Option<Action> {
    if !task.spec.has_label(AGENT) || !matches!(body, EventBody::TaskCompleted(_)) {
        return None;
    }
    Some(Action::Log(LogEntry::Core(EventBody::AgentMetrics(AgentMetrics {
        goal: task.spec.goal.clone(),
        labels: task.spec.labels.clone(),
        priority: task.spec.priority,
        duration_ms: task.duration_ms(),
        deliverables: task.spec.deliverables.clone(),
    }))))
}
