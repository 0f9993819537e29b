//! Refusals: reasons why a command was not accepted, with hints.

use std::fmt;

use crate::claim::{LEASE_MAX_MS, LEASE_MIN_MS};
use crate::id::TaskId;
use crate::schedule::{BadTimetable, ScheduleName};
use crate::slots::WipLimitReached;
use crate::task::TaskState;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no task `{0}`")]
    NoSuchTask(TaskId),
    #[error("task `{0}` exists already")]
    TaskExists(TaskId),
    #[error("`{0}` was the id of a task that is deleted; ids are not used twice")]
    IdUsed(TaskId),
    #[error("a task needs a goal")]
    EmptyGoal,
    #[error("`{what}` is too long: {len} bytes, at most {max}")]
    TooLong { what: &'static str, len: usize, max: usize },
    #[error("{len} {what} are too many: at most {max}")]
    TooMany { what: &'static str, len: usize, max: usize },
    #[error("task `{id}` is {state}; it can't be {wanted}")]
    WrongState { id: TaskId, state: TaskState, wanted: &'static str },
    #[error("task `{id}` still waits for {open} of its dependencies")]
    OpenDependencies { id: TaskId, open: u32 },
    #[error("task `{id}` can't be started before {}", not_before.brief())]
    TooEarly { id: TaskId, not_before: Timestamp },
    #[error("task `{id}` can't be taken: {full}")]
    NoSlot { id: TaskId, full: WipLimitReached },
    #[error("there is no schedule `{0}`")]
    NoSuchSchedule(ScheduleName),
    #[error("schedule `{0}` exists already")]
    ScheduleExists(ScheduleName),
    #[error(transparent)]
    Timetable(#[from] BadTimetable),
    #[error("task `{id}` is already {state}")]
    AlreadyThere { id: TaskId, state: TaskState },
    #[error("task `{id}` is claimed by `{agent}`, epoch {epoch}{}", way_in(verb))]
    Claimed { id: TaskId, agent: String, epoch: u64, verb: &'static str },
    #[error("claim {yours} of task `{id}` is over: {now}")]
    StaleClaim { id: TaskId, yours: u64, now: ClaimStanding },
    #[error("nobody has claimed task `{0}`")]
    NotClaimed(TaskId),
    #[error("task `{id}` has not submitted {head}")]
    NotSubmitted { id: TaskId, head: String },
    #[error("there is no problem `{0}` any more: it was dealt with")]
    NoSuchProblem(String),
    #[error("agent `{agent}` does not work on tasks of type `{kind}`: its agents are {}", agents.join(", "))]
    NotItsType { agent: String, kind: String, agents: Vec<String> },
    #[error("a claim needs the name of an agent")]
    NoAgent,
    #[error(
        "a lease of {ms} ms is out of range: {min} s to {max} h",
        min = LEASE_MIN_MS / 1_000,
        max = LEASE_MAX_MS / 3_600_000
    )]
    LeaseRange { ms: u64 },
    #[error("a task can't depend on itself: `{0}`")]
    SelfDependency(TaskId),
    #[error("`{task}` depends on `{on}` already")]
    DependencyExists { task: TaskId, on: TaskId },
    #[error("`{task}` does not depend on `{on}`")]
    NoSuchDependency { task: TaskId, on: TaskId },
    #[error("that would be a cycle: {}", path(.0))]
    Cycle(Vec<TaskId>),
}

fn way_in(verb: &str) -> &'static str {
    match verb {
        "claim" => "",
        "release" => "; if that is you, name the epoch",
        _ => "; if that is you, name the epoch, else it takes --force",
    }
}

/// Formats a path as `a → b → a`, and leaves out the middle of a long one.
fn path(ids: &[TaskId]) -> String {
    const ENDS: usize = 5;
    let names = |ids: &[TaskId]| ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" → ");
    if ids.len() <= 2 * ENDS + 1 {
        return names(ids);
    }
    let (head, tail) = (&ids[..ENDS], &ids[ids.len() - ENDS..]);
    let between = ids.len() - 2 * ENDS;
    format!("{} → … {between} more … → {}", names(head), names(tail))
}

impl Refusal {
    /// Returns the command that helps next, if there is an obvious one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Refusal::NoSuchTask(_) => Some("hookloop task list".to_owned()),
            Refusal::NoSuchProblem(_) => Some("hookloop inbox list".to_owned()),
            Refusal::OpenDependencies { id, .. } => Some(format!("hookloop task show {id}")),
            Refusal::TooEarly { id, .. } => Some(format!("hookloop task show {id}")),
            Refusal::NoSlot { .. } => Some("hookloop task list --state active".to_owned()),
            Refusal::NoSuchSchedule(_) => Some("hookloop schedule list".to_owned()),
            Refusal::ScheduleExists(name) => Some(format!("hookloop schedule remove {name}")),
            Refusal::Cycle(path) => path.first().map(|id| format!("hookloop task graph {id}")),
            Refusal::WrongState { id, state: TaskState::Blocked, .. } => {
                Some(format!("hookloop task unblock {id}"))
            }
            Refusal::WrongState {
                id,
                state: TaskState::Active | TaskState::Submitted,
                wanted: "deleted",
            } => Some(format!("hookloop task delete {id} --force")),
            Refusal::Claimed { id, verb: "claim", .. } => {
                Some(format!("hookloop task take-over {id}"))
            }
            Refusal::Claimed { verb: "submit" | "note" | "approve", .. } => None,
            Refusal::Claimed { id, epoch, verb, .. } => {
                Some(format!("hookloop task {verb} {id} --epoch {epoch}"))
            }
            Refusal::StaleClaim { id, .. } => Some(format!("hookloop task show {id}")),
            Refusal::NotClaimed(id) => Some(format!("hookloop task requeue {id} --force")),
            _ => None,
        }
    }
}

/// The claim of a task after the claim of the caller has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimStanding {
    Held { agent: String, epoch: u64 },
    Unclaimed(TaskState),
}

impl fmt::Display for ClaimStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimStanding::Held { agent, epoch } => {
                write!(f, "`{agent}` holds it now, epoch {epoch}")
            }
            ClaimStanding::Unclaimed(state) => write!(f, "it is {state}, and nobody holds it"),
        }
    }
}
