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
pub struct BoundSession {
    pub session: SessionId,
    /// The run of the session. Each start or resume is a run.
    pub run: u32,
}

/// The reason why a request of an agent fails.
#[derive(Debug, thiserror::Error)]
pub enum AgentToolError {
    #[error("{message}")]
    Refused {
        /// A code for programs: `no_such_task`, `not_allowed`, …
        code: &'static str,
        message: String,
        /// The next step for the agent.
        next: String,
    },
    #[error(transparent)]
    Engine(EngineError),
}

impl From<EngineError> for AgentToolError {
    fn from(error: EngineError) -> AgentToolError {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            error => AgentToolError::Engine(error),
        }
    }
}

impl From<Refusal> for AgentToolError {
    fn from(refusal: Refusal) -> AgentToolError {
        let (code, next) = match &refusal {
            Refusal::NoSuchTask(_) => ("no_such_task", "call task_list to see the tasks"),
            Refusal::Claimed { .. } => ("claimed", "leave the task to its holder"),
            Refusal::StaleClaim { .. } => {
                ("stale_claim", "stop working on the task: another agent claimed it")
            }
            Refusal::TooLong { .. } | Refusal::TooMany { .. } => ("too_much", "send less"),
            Refusal::OpenDependencies { .. } => ("not_ready", "complete its dependencies first"),
            _ => ("refused", "call task_get to see the state of the task"),
        };
        refused(code, refusal.to_string(), next)
    }
}

impl From<StartError> for AgentToolError {
    fn from(error: StartError) -> AgentToolError {
        let message = error.to_string();
        let (code, next) = match error {
            StartError::Engine(error) => return error.into(),
            StartError::Untrusted(_) => (
                "untrusted",
                "tell your user: only a person can trust hooks, and then start you again",
            ),
            StartError::WeakenedGates(_) => (
                "untrusted",
                "tell your user that the gates of this project changed since they were trusted",
            ),
            StartError::Running(_) => {
                ("busy", "another process runs this session: try again later")
            }
            _ => ("refused", "call iteration_start"),
        };
        refused(code, message, next)
    }
}

/// A registered stop hook.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredStopHook {
    pub id: String,
    pub task: TaskId,
    pub preset: StopPreset,
    pub enabled: bool,
    pub metadata: Map<String, Value>,
}

/// The agent's report of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationReport {
    pub output: String,
    pub files_modified: Vec<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

/// The decision of the stop hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct StopEvaluation {
    /// The hook that decided, or `default` if none is registered.
    pub hook: String,
    pub task: Option<TaskId>,
    pub iteration: u32,
    pub action: StopDecision,
    pub reason: String,
    pub next_prompt: Option<String>,
    pub checkpoint_created: bool,
    pub metadata: Map<String, Value>,
}

/// A request for an iteration loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopStart {
    pub task: String,
    /// None for the project's limit.
    pub max_iterations: Option<u32>,
    /// The promises that the agent intends to use.
    pub promises: Vec<Promise>,
    /// Iterations in a row without progress. None for the project's limit.
    pub circuit_breaker: Option<u32>,
}

/// The state of an iteration loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopState {
    pub id: SessionId,
    pub task: Option<TaskId>,
    pub number: u32,
    pub max_iterations: u32,
    pub promises: Vec<Promise>,
    pub circuit_breaker: u32,
    pub started_at: Timestamp,
    /// The output of hooks and gates for the agent.
    pub prompt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopSignal {
    Continue,
    Complete,
    Blocked,
    Escalate,
}

/// The result of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationReport {
    pub id: SessionId,
    pub number: u32,
    /// Whether all rules and gates that ran passed.
    pub passed: bool,
    pub signal: LoopSignal,
    pub promises: Vec<Promise>,
    /// Feedback for the agent, in order.
    pub feedback: Vec<String>,
    pub results: Vec<ValidationResult>,
    pub hook: Option<StopEvaluation>,
}

/// The end of a loop, or a recorded completion claim if a session started the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopCompletion {
    pub id: SessionId,
    pub task: Option<TaskId>,
    pub at: Timestamp,
    pub iterations: u32,
    pub promise: Promise,
    /// Whether this is a claim only. The gates run at the end of the turn.
    pub is_claim: bool,
    /// The remaining output for the agent.
    pub prompt: Option<String>,
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCheckpoint {
    pub id: String,
    pub task: TaskId,
    /// The number of the checkpoint within the task, from 1.
    pub sequence: u64,
    pub at: Timestamp,
    pub checkpoint: Checkpoint,
}

/// A task with its dependencies and notes.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDetail {
    pub task: Task,
    pub depends_on: Vec<Task>,
    pub notes: Vec<NoteRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRequest {
    pub at: Timestamp,
    pub by: String,
    pub text: String,
}

/// A requested change of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedChange {
    pub state: Option<TaskState>,
    pub notes: Option<String>,
    pub blocked_reason: Option<String>,
}

/// The topic of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// The current task as JSON.
    CurrentTask,
    /// The spec of the session that started the agent.
    Spec,
    /// The receipts and output of the last gates.
    LastGates,
}

pub(super) fn refused(
    code: &'static str,
    message: impl Into<String>,
    next: impl Into<String>,
) -> AgentToolError {
    AgentToolError::Refused { code, message: message.into(), next: next.into() }
}
