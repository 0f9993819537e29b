//! Built-in hooks, and the actions that they request.

use crate::action::{Action, CoreLog, CreateTask, LogEntry, TaskChange, UpdateTask};
use crate::event::{AgentMetrics, DependencySatisfied, EventBody};
use crate::id::TaskId;
use crate::point::Point;
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
    RebaseOnMain,
    RunTests,
    CreatePr,
    Merge,
}

impl Builtin {
    pub const ALL: [Builtin; 7] = [
        Builtin::AutoCreateReviewTask,
        Builtin::CheckDependencySatisfaction,
        Builtin::TrackAgentTaskLifecycle,
        Builtin::RebaseOnMain,
        Builtin::RunTests,
        Builtin::CreatePr,
        Builtin::Merge,
    ];

    /// Hooks that follow a task's events. They are enabled unless the configuration disables them.
    pub const REACTIONS: [Builtin; 3] = [
        Builtin::AutoCreateReviewTask,
        Builtin::CheckDependencySatisfaction,
        Builtin::TrackAgentTaskLifecycle,
    ];

    /// The steps of a submission, unless the configuration lists hooks for `before_submit`.
    pub const SUBMISSION: [Builtin; 2] = [Builtin::RebaseOnMain, Builtin::CreatePr];

    pub fn name(self) -> &'static str {
        match self {
            Builtin::AutoCreateReviewTask => "auto-create-review-task",
            Builtin::CheckDependencySatisfaction => "check-dependency-satisfaction",
            Builtin::TrackAgentTaskLifecycle => "track-agent-task-lifecycle",
            Builtin::RebaseOnMain => "rebase_on_main",
            Builtin::RunTests => "run_tests",
            Builtin::CreatePr => "create_pr",
            Builtin::Merge => "merge",
        }
    }

    pub fn is_reaction(self) -> bool {
        Builtin::REACTIONS.contains(&self)
    }

    /// Whether the hook can do something at a point.
    pub fn fits(self, point: &Point) -> bool {
        match (self, point) {
            (_, Point::Event(_)) => self.is_reaction(),
            (Builtin::RunTests, _) => true,
            (Builtin::RebaseOnMain | Builtin::CreatePr, Point::BeforeSubmit) => true,
            // The merge happens between before_merge and after_merge. This hook requests it.
            (Builtin::Merge, Point::AfterSubmit) => true,
            _ => false,
        }
    }

    /// Whether the hook acts on events of a type. Metrics are recorded only when a task completes.
    pub fn acts_on(self, kind: &str) -> bool {
        match self {
            Builtin::TrackAgentTaskLifecycle => kind == "task_completed",
            _ => self.is_reaction(),
        }
    }
}

/// Returns a review of an agent's completed task. A review is not reviewed.
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

/// Returns the actions for `dependent` after `completed` was completed.
///
/// There are none unless that was the last open dependency and no announcement was made. The
/// announcement is also due if the task was started meanwhile.
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
    let satisfied = DependencySatisfied {
        dependent_task_id: dependent.id.clone(),
        completed_task_id: completed.clone(),
    };
    let announced = Action::Log(LogEntry::Core(Box::new(CoreLog::DependencySatisfied(satisfied))));
    match is_begun {
        true => vec![announced],
        false => vec![Action::UpdateTask(ready), announced],
    }
}

/// Returns the metrics of an agent's task once it is completed.
pub fn metrics(body: &EventBody, task: &Task) -> Option<Action> {
    if !task.spec.has_label(AGENT) || !matches!(body, EventBody::TaskCompleted(_)) {
        return None;
    }
    Some(Action::Log(LogEntry::Core(Box::new(CoreLog::AgentMetrics(AgentMetrics {
        goal: task.spec.goal.clone(),
        labels: task.spec.labels.clone(),
        priority: task.spec.priority,
        duration_ms: task.duration_ms(),
        deliverables: task.spec.deliverables.clone(),
    })))))
}
