//! Decides commands: from a command and the facts it depends on to events, or a refusal.

mod claim;
mod deliver;
mod remark;
mod schedule;

use crate::claim::Fence;
use crate::command::{Command, DependentsOfDeleted};
use crate::event::{
    EventBody, HookSwitch, NoData, RemovedDependency, TaskDeleted, TaskDependency, TaskStarted,
    WipPermitAcquired,
};
use crate::id::{Subject, TaskId};
use crate::refusal::Refusal;
use crate::schedule::ScheduleStanding;
use crate::slots::WipPermit;
use crate::task::{Task, TaskObstacle, TaskSpec, TaskState};
use crate::time::Timestamp;

pub use claim::check_fence;

pub const GOAL_MAX_BYTES: usize = 4 * 1024;
/// The longest description, result, context or reason.
pub const TEXT_MAX_BYTES: usize = 64 * 1024;
/// Labels, deliverables or artifacts of one task, and the longest of them.
pub const LIST_MAX: usize = 64;
pub const WORD_MAX_BYTES: usize = 1024;
/// Dependencies named when a task is added.
pub const DEPENDENCIES_MAX: usize = 512;

/// The facts that a decision depends on, read from the view in one snapshot.
#[derive(Clone, Debug, Default)]
pub struct KnownFacts {
    /// The task the command is about.
    pub task: Option<Task>,
    /// The id belonged to a task that was deleted.
    pub deleted: bool,
    /// Tasks that the command names and that do not exist.
    pub missing: Vec<TaskId>,
    /// The edge that the command names exists.
    pub edge: bool,
    /// The path from the new dependency back to the task that would depend on it.
    pub path_back: Option<Vec<TaskId>>,
    /// Edges that end with the task.
    pub edges: u32,
    /// The first open tasks that depend on the task.
    pub waiting: Vec<TaskId>,
    /// More open tasks depend on the task than `waiting` holds.
    pub more_waiting: bool,
    /// Stop hooks that are registered for the task.
    pub stop_hooks: usize,
    /// The commit that the task has submitted.
    pub submitted_head: Option<String>,
    /// No session has worked on the task since the submission.
    pub submission_stands: bool,
    /// The WIP permit that the task needs before it can be claimed.
    pub slot: WipPermit,
    /// The schedule the command is about.
    pub schedule: Option<ScheduleStanding>,
    /// The last task that the schedule made, if that task is open.
    pub last_open: Option<TaskId>,
    /// The time of the decision.
    pub now: Timestamp,
}

/// An event to be stored: its subject and its body.
pub type Decided = (Subject, EventBody);

/// Decides a command. Without events, the wanted state holds already.
pub fn decide(command: &Command, facts: &KnownFacts) -> Result<Vec<Decided>, Refusal> {
    match command {
        Command::AddTask { id, spec, depends_on } => add_task(id, spec, depends_on, facts),
        Command::StartTask { id, context } => start(existing(id, facts)?, context, &facts.slot),
        Command::ClaimTask { id, agent, lease_ms } => {
            claim::claim(existing(id, facts)?, agent, *lease_ms, &facts.slot)
        }
        Command::TakeOverTask { id, agent, lease_ms, silent_epoch } => {
            claim::take_over(existing(id, facts)?, agent, *lease_ms, *silent_epoch)
        }
        Command::ReleaseTask { id, fence, reason, note } => {
            claim::release(existing(id, facts)?, *fence, *reason, note)
        }
        Command::SubmitTask { id, fence, submission } => {
            deliver::submit(existing(id, facts)?, *fence, submission)
        }
        Command::PlanPush { id, fence, head } => deliver::push(existing(id, facts)?, *fence, head),
        Command::RecordDelivery { id, fact } => deliver::record(existing(id, facts)?, fact, facts),
        Command::ApproveTask { id, head } => deliver::approve(existing(id, facts)?, head, facts),
        Command::ReturnTask { id, returned } => {
            deliver::give_back(existing(id, facts)?, returned, facts)
        }
        Command::CompleteTask { id, outcome, fence } => {
            bounded("result", outcome.result.as_deref(), TEXT_MAX_BYTES)?;
            words("artifacts", &outcome.artifacts)?;
            complete(existing(id, facts)?, *fence)?;
            Ok(vec![on_task(id, EventBody::TaskCompleted(outcome.clone()))])
        }
        Command::BlockTask { id, obstacle, fence } => block(existing(id, facts)?, obstacle, *fence),
        Command::UnblockTask { id } => unblock(existing(id, facts)?),
        Command::DeleteTask { id, dependents, force } => {
            delete(existing(id, facts)?, *dependents, *force, facts)
        }
        Command::AddDependency { task, on } => add_dependency(existing(task, facts)?, on, facts),
        Command::RemoveDependency { task, on } => {
            remove_dependency(existing(task, facts)?, on, facts)
        }
        Command::RemarkTask { id, remark, fence } => {
            remark::decide(existing(id, facts)?, remark, *fence, facts)
        }
        Command::ConfirmReady { id } => confirm_ready(existing(id, facts)?),
        Command::SwitchHook { name, enabled } => {
            let switch = HookSwitch { name: name.clone() };
            let body = if *enabled {
                EventBody::HookEnabled(switch)
            } else {
                EventBody::HookDisabled(switch)
            };
            Ok(vec![(Subject::Project, body)])
        }
        Command::Schedule { name, ask } => schedule::decide(name, ask, facts),
    }
}

fn existing<'a>(id: &TaskId, facts: &'a KnownFacts) -> Result<&'a Task, Refusal> {
    facts.task.as_ref().ok_or_else(|| Refusal::NoSuchTask(id.clone()))
}

fn on_task(id: &TaskId, body: EventBody) -> Decided {
    (Subject::Task(id.clone()), body)
}

fn add_task(
    id: &TaskId,
    spec: &TaskSpec,
    depends_on: &[TaskId],
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    if facts.deleted {
        return Err(Refusal::IdUsed(id.clone()));
    }
    if facts.task.is_some() {
        return Err(Refusal::TaskExists(id.clone()));
    }
    check_spec(spec)?;
    if let Some(missing) = facts.missing.first() {
        return Err(Refusal::NoSuchTask(missing.clone()));
    }
    if depends_on.len() > DEPENDENCIES_MAX {
        let len = depends_on.len();
        return Err(Refusal::TooMany { what: "dependencies", len, max: DEPENDENCIES_MAX });
    }
    let mut events = vec![on_task(id, EventBody::TaskCreated(spec.clone()))];
    for (i, on) in depends_on.iter().enumerate() {
        if on == id {
            return Err(Refusal::SelfDependency(id.clone()));
        }
        if depends_on[..i].contains(on) {
            return Err(Refusal::DependencyExists { task: id.clone(), on: on.clone() });
        }
        let edge = TaskDependency::new(id.clone(), on.clone());
        events.push(on_task(id, EventBody::DependencyAdded(edge)));
    }
    Ok(events)
}

/// Checks the sizes of a new task.
pub fn check_spec(spec: &TaskSpec) -> Result<(), Refusal> {
    if spec.goal.trim().is_empty() {
        return Err(Refusal::EmptyGoal);
    }
    bounded("goal", Some(&spec.goal), GOAL_MAX_BYTES)?;
    bounded("description", Some(&spec.description), TEXT_MAX_BYTES)?;
    bounded("type", spec.kind.as_deref(), WORD_MAX_BYTES)?;
    words("labels", &spec.labels)?;
    words("deliverables", &spec.deliverables)?;
    words("may_change", &spec.may_change)
}

fn bounded(what: &'static str, text: Option<&str>, max: usize) -> Result<(), Refusal> {
    match text.map_or(0, str::len) {
        len if len > max => Err(Refusal::TooLong { what, len, max }),
        _ => Ok(()),
    }
}

fn words(what: &'static str, list: &[String]) -> Result<(), Refusal> {
    if list.len() > LIST_MAX {
        return Err(Refusal::TooMany { what, len: list.len(), max: LIST_MAX });
    }
    list.iter().try_for_each(|word| bounded(what, Some(word), WORD_MAX_BYTES))
}

fn start(task: &Task, context: &Option<String>, slot: &WipPermit) -> Result<Vec<Decided>, Refusal> {
    bounded("context", context.as_deref(), TEXT_MAX_BYTES)?;
    match task.state {
        TaskState::Ready => {
            let started = TaskStarted { context: context.clone(), ..TaskStarted::default() };
            begun(task, started, slot)
        }
        _ => Err(not_from(task, "started", TaskState::Active)),
    }
}

/// Starts a task. If a WIP limit applies, the subject of the permits moves too, so that concurrent claims are
/// decided one after the other. Releasing a task need not move it: a view that lags counts too many claimed
/// tasks, never too few.
fn begun(task: &Task, started: TaskStarted, slot: &WipPermit) -> Result<Vec<Decided>, Refusal> {
    let mut events = vec![on_task(&task.id, EventBody::TaskStarted(started))];
    match slot {
        WipPermit::Unbound => {}
        WipPermit::Free => {
            let taken = WipPermitAcquired { task_id: task.id.clone() };
            events.push((Subject::Slots, EventBody::WipPermitAcquired(taken)));
        }
        WipPermit::Full(full) => {
            return Err(Refusal::NoSlot { id: task.id.clone(), full: full.clone() });
        }
    }
    Ok(events)
}

/// Decides a completion. A ready task can be completed without being started.
///
/// A person may have done the work elsewhere, perhaps before the task's start time.
fn complete(task: &Task, fence: Fence) -> Result<(), Refusal> {
    check_fence(task, fence, "complete")?;
    match task.state {
        TaskState::Ready | TaskState::Active | TaskState::Submitted => Ok(()),
        _ if task.waits_until().is_some() => Ok(()),
        _ => Err(not_from(task, "completed", TaskState::Completed)),
    }
}

fn block(task: &Task, obstacle: &TaskObstacle, fence: Fence) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, fence, "block")?;
    bounded("reason", Some(&obstacle.reason), TEXT_MAX_BYTES)?;
    bounded("required knowledge", obstacle.required_knowledge.as_deref(), TEXT_MAX_BYTES)?;
    match task.state {
        TaskState::Completed | TaskState::Blocked => {
            Err(not_from(task, "blocked", TaskState::Blocked))
        }
        _ => Ok(vec![on_task(&task.id, EventBody::TaskBlocked(obstacle.clone()))]),
    }
}

fn unblock(task: &Task) -> Result<Vec<Decided>, Refusal> {
    match task.state {
        TaskState::Blocked => Ok(vec![on_task(&task.id, EventBody::TaskUnblocked(NoData {}))]),
        state => Err(Refusal::WrongState { id: task.id.clone(), state, wanted: "unblocked" }),
    }
}

/// Returns why `task` can't become `wanted`, which would have made its state `target`.
fn not_from(task: &Task, wanted: &'static str, target: TaskState) -> Refusal {
    let id = task.id.clone();
    if let Some(not_before) = task.waits_until() {
        return Refusal::TooEarly { id, not_before };
    }
    match task.state {
        state if state == target => Refusal::AlreadyThere { id, state },
        TaskState::Created => Refusal::OpenDependencies { id, open: task.open_dependencies },
        state => Refusal::WrongState { id, state, wanted },
    }
}

fn confirm_ready(task: &Task) -> Result<Vec<Decided>, Refusal> {
    match task.state {
        TaskState::Ready => Ok(vec![]),
        // The dependencies are completed, which is all that hooks confirm.
        _ if task.waits_until().is_some() => Ok(vec![]),
        _ => Err(not_from(task, "ready", TaskState::Ready)),
    }
}

/// Deletes a task. Its open dependents are blocked with the reason, or released. If there are more than one
/// batch holds, the decision covers the first ones and the caller asks again.
fn delete(
    task: &Task,
    dependents: DependentsOfDeleted,
    force: bool,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    if (task.state == TaskState::Active || task.claim.is_some()) && !force {
        let id = task.id.clone();
        return Err(Refusal::WrongState { id, state: task.state, wanted: "deleted" });
    }
    let freed = |dependent: &TaskId| match dependents {
        DependentsOfDeleted::Block => EventBody::TaskBlocked(TaskObstacle {
            reason: format!("depends on `{}`, which was deleted", task.id),
            required_knowledge: None,
        }),
        DependentsOfDeleted::Release => {
            let edge = RemovedDependency::new(dependent.clone(), task.id.clone());
            EventBody::DependencyRemoved(edge)
        }
    };
    let mut events: Vec<Decided> = facts.waiting.iter().map(|id| on_task(id, freed(id))).collect();
    if !facts.more_waiting {
        let removed = match dependents {
            DependentsOfDeleted::Block => 0,
            DependentsOfDeleted::Release => facts.waiting.len() as u32,
        };
        let deleted = TaskDeleted { edges_removed: facts.edges.saturating_sub(removed) };
        events.push(on_task(&task.id, EventBody::TaskDeleted(deleted)));
    }
    Ok(events)
}

/// Adds an edge between existing tasks. The subject of the graph moves too, so that two edges that close a
/// cycle together are decided one after the other. Edges of a new task need no such order: nothing leads to
/// that task yet.
fn add_dependency(task: &Task, on: &TaskId, facts: &KnownFacts) -> Result<Vec<Decided>, Refusal> {
    if facts.missing.contains(on) {
        return Err(Refusal::NoSuchTask(on.clone()));
    }
    if *on == task.id {
        return Err(Refusal::SelfDependency(on.clone()));
    }
    if facts.edge {
        return Err(Refusal::DependencyExists { task: task.id.clone(), on: on.clone() });
    }
    if let Some(path) = &facts.path_back {
        let mut cycle = vec![task.id.clone()];
        cycle.extend(path.iter().cloned());
        return Err(Refusal::Cycle(cycle));
    }
    if !matches!(task.state, TaskState::Created | TaskState::Ready | TaskState::Blocked) {
        let id = task.id.clone();
        return Err(Refusal::WrongState { id, state: task.state, wanted: "made to wait" });
    }
    let edge = TaskDependency::new(task.id.clone(), on.clone());
    Ok(vec![
        on_task(&task.id, EventBody::DependencyAdded(edge)),
        (Subject::Graph, EventBody::GraphAdvanced(NoData {})),
    ])
}

fn remove_dependency(
    task: &Task,
    on: &TaskId,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    if !facts.edge {
        return Err(Refusal::NoSuchDependency { task: task.id.clone(), on: on.clone() });
    }
    let edge = RemovedDependency::new(task.id.clone(), on.clone());
    Ok(vec![on_task(&task.id, EventBody::DependencyRemoved(edge))])
}
