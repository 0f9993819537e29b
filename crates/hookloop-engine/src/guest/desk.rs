//! What an agent can ask for by tools. It may claim, report and ask; it can't register commands, change trust,
//! loosen a gate, raise a limit, or complete what is not proven.

use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::promise::Promise;
use hookloop_core::session::Decision;
use hookloop_core::session::stop::Validated;
use hookloop_core::task::{Task, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::project::{EngineError, Project};

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
    Engine(#[from] EngineError),
}

/// A way to stop that can be registered for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Default,
    Validation,
    Promise,
}

/// A stop hook that is registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    pub id: String,
    pub task: TaskId,
    pub preset: Preset,
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
    pub action: Decision,
    pub reason: String,
    pub next_prompt: Option<String>,
    pub checkpoint_created: bool,
    pub metadata: Map<String, Value>,
}

/// An iteration loop that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub results: Vec<Validated>,
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
}

/// What an agent wants to find again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    pub trigger: Option<String>,
    pub phase: Option<String>,
    pub step: Option<u32>,
    pub context: Option<Map<String, Value>>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
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

/// Answers one agent.
#[derive(Clone, Debug)]
pub struct Desk {
    project: Project,
    bound: Option<Bound>,
}

fn not_yet<T>() -> Result<T, DeskError> {
    let (message, next) = ("this is not built yet".to_owned(), String::new());
    Err(DeskError::Refused { code: "not_built", message, next })
}

impl Desk {
    pub fn new(project: Project, bound: Option<Bound>) -> Desk {
        Desk { project, bound }
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    pub fn bound(&self) -> Option<&Bound> {
        self.bound.as_ref()
    }

    pub fn register(
        &self,
        _task: &str,
        _preset: Preset,
        _metadata: Map<String, Value>,
    ) -> Result<Registered, DeskError> {
        not_yet()
    }

    pub fn hooks(&self, _task: &str) -> Result<Vec<Registered>, DeskError> {
        not_yet()
    }

    /// Answers how many there were.
    pub fn clear(&self, _task: &str) -> Result<u64, DeskError> {
        not_yet()
    }

    pub fn evaluate(&self, _iteration: &str, _said: &Said) -> Result<Evaluated, DeskError> {
        not_yet()
    }

    pub fn start(&self, _wish: &Start) -> Result<Iteration, DeskError> {
        not_yet()
    }

    pub fn validate(&self, _iteration: &str, _output: &str) -> Result<Judged, DeskError> {
        not_yet()
    }

    pub fn next(&self, _iteration: &str) -> Result<Iteration, DeskError> {
        not_yet()
    }

    pub fn complete(&self, _iteration: &str, _promise: Promise) -> Result<Completed, DeskError> {
        not_yet()
    }

    pub fn checkpoint(
        &self,
        _task: &str,
        _checkpoint: Checkpoint,
    ) -> Result<KeptCheckpoint, DeskError> {
        not_yet()
    }

    /// The checkpoint of that id, else the last one.
    pub fn recall(&self, _task: &str, _id: Option<&str>) -> Result<KeptCheckpoint, DeskError> {
        not_yet()
    }

    pub fn task(&self, _id: &str) -> Result<TaskDetail, DeskError> {
        not_yet()
    }

    /// The newest first.
    pub fn tasks(
        &self,
        _state: Option<TaskState>,
        _label: Option<&str>,
        _limit: usize,
    ) -> Result<Vec<Task>, DeskError> {
        not_yet()
    }

    pub fn add(&self, _spec: TaskSpec, _depends_on: &[String]) -> Result<Task, DeskError> {
        not_yet()
    }

    pub fn update(&self, _id: &str, _change: Change) -> Result<Task, DeskError> {
        not_yet()
    }

    /// None if there is no such thing now.
    pub fn read(&self, _document: Document) -> Result<Option<String>, DeskError> {
        not_yet()
    }
}
