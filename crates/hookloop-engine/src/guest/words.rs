//! Requests and answers of the tools for agents.

use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::promise::Promise;
use hookloop_core::refusal::Refusal;
pub use hookloop_core::remark::{Checkpoint, StopPreset};
use hookloop_core::session::StopDecision;
use hookloop_core::session::stop::ValidationResult;
use hookloop_core::task::{Task, TaskState};
use hookloop_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::error::EngineError;
use crate::session::StartError;

/// The session that started the agent, if one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub session: SessionId,
    /// Which start of it.
    pub run: u32,
}

/// Why an agent does not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error("{message}")]
    Refused {
        /// For programs: `no_such_task`, `not_allowed`, …
        code: &'static str,
        message: String,
        /// What the agent can do instead.
        next: String,
    },
    #[error(transparent)]
    Engine(EngineError),
}

impl From<EngineError> for DeskError {
    fn from(error: EngineError) -> DeskError {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            error => DeskError::Engine(error),
        }
    }
}

impl From<Refusal> for DeskError {
    fn from(refusal: Refusal) -> DeskError {
        let (code, next) = match &refusal {
            Refusal::NoSuchTask(_) => ("no_such_task", "call task_list to see which there are"),
            Refusal::Claimed { .. } => ("claimed", "leave it to whoever holds it"),
            Refusal::StaleClaim { .. } => ("stale_claim", "stop working on it: others have it"),
            Refusal::TooLong { .. } | Refusal::TooMany { .. } => ("too_much", "send less"),
            Refusal::OpenDependencies { .. } => ("not_ready", "complete what it waits for first"),
            _ => ("refused", "call task_get to see how the task stands"),
        };
        refused(code, refusal.to_string(), next)
    }
}

impl From<StartError> for DeskError {
    fn from(error: StartError) -> DeskError {
        let message = error.to_string();
        let (code, next) = match error {
            StartError::Engine(error) => return error.into(),
            StartError::Untrusted(_) => (
                "untrusted",
                "tell your user: only a person can trust hooks, and then start you again",
            ),
            StartError::WeakenedGates(_) => (
                "untrusted",
                "tell your user that the gates of this project are not those that they agreed to",
            ),
            StartError::Running(_) => ("busy", "another program is at it: try again later"),
            _ => ("refused", "call iteration_start"),
        };
        refused(code, message, next)
    }
}

/// A stop hook that is registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    pub id: String,
    pub task: TaskId,
    pub preset: StopPreset,
    pub enabled: bool,
    pub metadata: Map<String, Value>,
}

/// What the agent says of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub output: String,
    pub files_modified: Vec<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

/// What the stop hooks say.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// `default` where none is registered.
    pub hook: String,
    pub task: Option<TaskId>,
    pub iteration: u32,
    pub action: StopDecision,
    pub reason: String,
    pub next_prompt: Option<String>,
    pub checkpoint_created: bool,
    pub metadata: Map<String, Value>,
}

/// An iteration loop that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub task: String,
    /// None for what the project allows.
    pub max_iterations: Option<u32>,
    /// Those that the agent means to use.
    pub promises: Vec<Promise>,
    /// Iterations in a row without progress; none for what the project allows.
    pub circuit_breaker: Option<u32>,
}

/// Where an iteration loop stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    pub id: SessionId,
    pub task: Option<TaskId>,
    pub number: u32,
    pub max_iterations: u32,
    pub promises: Vec<Promise>,
    pub circuit_breaker: u32,
    pub started_at: Timestamp,
    /// What hooks and gates have for the agent.
    pub prompt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Continue,
    Complete,
    Blocked,
    Escalate,
}

/// What came of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub id: SessionId,
    pub number: u32,
    /// All rules and gates that ran passed.
    pub passed: bool,
    pub signal: Signal,
    pub promises: Vec<Promise>,
    /// What the agent should know, in order.
    pub feedback: Vec<String>,
    pub results: Vec<ValidationResult>,
    pub hook: Option<Evaluated>,
}

/// A loop that is over, or, where a session started the agent, a claim that is noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub id: SessionId,
    pub task: Option<TaskId>,
    pub at: Timestamp,
    pub iterations: u32,
    pub promise: Promise,
    /// Gates are held against it when the turn ends.
    pub is_claim: bool,
    /// What is left to say to the agent.
    pub prompt: Option<String>,
}

/// A checkpoint that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCheckpoint {
    pub id: String,
    pub task: TaskId,
    /// Which of the task's checkpoints it is, from 1.
    pub sequence: u64,
    pub at: Timestamp,
    pub checkpoint: Checkpoint,
}

/// A task with what was said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDetail {
    pub task: Task,
    pub depends_on: Vec<Task>,
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub at: Timestamp,
    pub by: String,
    pub text: String,
}

/// What becomes of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub state: Option<TaskState>,
    pub notes: Option<String>,
    pub blocked_reason: Option<String>,
}

/// What a resource is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// JSON.
    CurrentTask,
    /// The spec of the session that started the agent.
    Spec,
    /// The gates' last words.
    LastGates,
}

pub(super) fn refused(
    code: &'static str,
    message: impl Into<String>,
    next: impl Into<String>,
) -> DeskError {
    DeskError::Refused { code, message: message.into(), next: next.into() }
}
