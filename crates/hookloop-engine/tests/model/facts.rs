//! Changes in terms that the model and the log share.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{RunId, Subject, TaskId};

use crate::tasks::{NOWHERE, Spec};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    Task(usize),
    Project,
    Run(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    TaskCreated(Option<usize>, Spec),
    TaskStarted,
    TaskSubmitted,
    TaskCompleted(Option<String>),
    TaskBlocked,
    TaskUnblocked,
    /// The number of remaining edges.
    TaskDeleted(usize),
    DependencyAdded(usize),
    DependencyRemoved(usize),
    /// The completed task.
    DependencySatisfied(usize),
    /// Whether there was a start to measure from.
    AgentMetrics(bool),
    HookError,
    ActionError(String),
    CascadeLimitReached(String, u32),
    HookSwitched(String, bool),
    WorkflowRequested(String),
    WorkflowStepCompleted(usize),
    WorkflowFailed(usize),
    WorkflowCompleted,
    Note {
        kind: String,
        about: Option<usize>,
        event: String,
        result: Option<String>,
    },
}

pub(crate) type Fact = (About, What);

/// A fact, and the hook that caused it with its depth in the cascade.
pub(crate) type Caused = (Fact, Option<(String, u32)>);

impl What {
    /// Returns the event type that hooks follow.
    pub(crate) fn kind(&self) -> &str {
        match self {
            What::TaskCreated(..) => "task_created",
            What::TaskStarted => "task_started",
            What::TaskCompleted(_) => "task_completed",
            What::TaskBlocked => "task_blocked",
            What::TaskDeleted(_) => "task_deleted",
            What::DependencyAdded(_) => "dependency_added",
            What::DependencyRemoved(_) => "dependency_removed",
            What::DependencySatisfied(_) => "dependency_satisfied",
            What::WorkflowStepCompleted(_) => "workflow_step_completed",
            What::Note { kind, .. } => kind,
            _ => "",
        }
    }
}

/// The ids that the log assigned to the tasks and runs of the model, in its order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) tasks: Vec<TaskId>,
    runs: Vec<RunId>,
}

impl Names {
    pub(crate) fn number(&self, id: &TaskId) -> usize {
        self.tasks.iter().position(|known| known == id).unwrap_or(NOWHERE)
    }

    pub(crate) fn id(&self, task: usize) -> TaskId {
        self.tasks.get(task).cloned().unwrap_or_else(|| "nowhere".parse().unwrap())
    }

    /// Returns the fact of a stored event; `None` for internal events.
    pub(crate) fn read(&mut self, event: &Event) -> Option<Caused> {
        self.learn(event);
        if event.body.is_bookkeeping() {
            return None;
        }
        let about = match &event.subject {
            Subject::Task(id) => About::Task(self.number(id)),
            Subject::Workflow(run) => About::Run(self.runs.iter().position(|r| r == run).unwrap()),
            _ => About::Project,
        };
        let cause = event.cause.as_ref().map(|cause| (cause.hook.clone(), cause.depth));
        Some(((about, self.what(event)), cause))
    }

    fn learn(&mut self, event: &Event) {
        match (&event.subject, &event.body) {
            (Subject::Task(id), EventBody::TaskCreated(_)) => self.tasks.push(id.clone()),
            (Subject::Workflow(run), EventBody::WorkflowRequested(_)) => {
                self.runs.push(run.clone());
            }
            _ => {}
        }
    }

    fn what(&self, event: &Event) -> What {
        match &event.body {
            EventBody::TaskCreated(spec) => {
                let id = event.node_id();
                let name = id.strip_prefix('t').filter(|_| event.cause.is_none());
                let spec = Spec {
                    goal: spec.goal.clone(),
                    labels: spec.labels.clone(),
                    priority: spec.priority.get(),
                    parent: spec.parent_task_id.as_ref().map(|id| self.number(id)),
                };
                What::TaskCreated(name.map(|n| n.parse().unwrap()), spec)
            }
            EventBody::TaskStarted(_) => What::TaskStarted,
            EventBody::TaskSubmitted(_) => What::TaskSubmitted,
            EventBody::TaskCompleted(outcome) => What::TaskCompleted(outcome.result.clone()),
            EventBody::TaskBlocked(_) => What::TaskBlocked,
            EventBody::TaskUnblocked(_) => What::TaskUnblocked,
            EventBody::TaskDeleted(deleted) => What::TaskDeleted(deleted.edges_removed as usize),
            EventBody::DependencyAdded(edge) => What::DependencyAdded(self.number(&edge.to_id)),
            EventBody::DependencyRemoved(edge) => What::DependencyRemoved(self.number(&edge.to_id)),
            EventBody::DependencySatisfied(satisfied) => {
                What::DependencySatisfied(self.number(&satisfied.completed_task_id))
            }
            EventBody::Other(other) => {
                let text = |field: &str| Some(other.data.get(field)?.as_str()?.to_owned());
                What::Note {
                    kind: other.kind.clone(),
                    about: text("about").map(|id| self.number(&id.parse().unwrap())),
                    event: text("event").unwrap(),
                    result: text("result"),
                }
            }
            body => reaction(body),
        }
    }
}

/// Returns the fact of an event that hooks or workflows wrote.
fn reaction(body: &EventBody) -> What {
    match body {
        EventBody::AgentMetrics(metrics) => What::AgentMetrics(metrics.duration_ms.is_some()),
        EventBody::HookError(_) => What::HookError,
        EventBody::ActionError(error) => What::ActionError(error.action_type.clone()),
        EventBody::CascadeLimitReached(cut) => {
            What::CascadeLimitReached(format!("{:?}", cut.limit), cut.dropped)
        }
        EventBody::HookEnabled(hook) => What::HookSwitched(hook.name.clone(), true),
        EventBody::HookDisabled(hook) => What::HookSwitched(hook.name.clone(), false),
        EventBody::WorkflowRequested(request) => What::WorkflowRequested(request.workflow.clone()),
        EventBody::WorkflowStepCompleted(step) => What::WorkflowStepCompleted(step.step),
        EventBody::WorkflowFailed(failed) => What::WorkflowFailed(failed.step),
        EventBody::WorkflowCompleted(_) => What::WorkflowCompleted,
        body => panic!("unexpected: {body:?}"),
    }
}
