//! Errors of starting, resuming and controlling a session.

use std::path::PathBuf;

use hookloop_core::gate_ledger::GateChange;
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::session::SessionLimit;
use hookloop_hooks::exec_context::LockError;
use hookloop_hooks::frozen_hooks::FreezeError;

use super::checkout_holder::CheckoutHolder;
use super::prompt_template::PromptTemplateError;
use crate::error::EngineError;
use crate::gate_agreement;

pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

impl From<FreezeError> for StartError {
    fn from(error: FreezeError) -> StartError {
        match error {
            FreezeError::Untrusted(hooks) => StartError::Untrusted(hooks),
            FreezeError::OtherScripts { session, paths } => {
                StartError::OtherScripts { session, paths }
            }
            FreezeError::Io { path, source } => StartError::Io { path, source },
        }
    }
}

impl From<LockError> for StartError {
    fn from(LockError { path, source }: LockError) -> StartError {
        StartError::Io { path, source }
    }
}

/// The reason why a session cannot be started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("these hooks are not trusted: {}", .0.join(", "))]
    Untrusted(Vec<String>),
    #[error("{}", gate_agreement::weakened_words(.0))]
    WeakenedGates(Vec<GateChange>),
    #[error("there is no session `{0}`")]
    NoSuchSession(String),
    #[error("there is no unfinished session")]
    NothingToResume,
    #[error("session {0} is over: {1}")]
    Over(SessionId, String),
    #[error("session {0} ended because it needs a person: it continues if you answer or name it")]
    NeedsAnswer(SessionId),
    #[error("session {0} has not ended: its limits can be changed when it has")]
    NotOver(SessionId),
    #[error("session {0} belongs to worker {1}: a worker continues with its task")]
    OfWorker(SessionId, String),
    #[error("session {session} can't continue: {why}")]
    NothingLeft { session: SessionId, why: String, task: Option<TaskId> },
    #[error("`{0}` is the start of several sessions: {ids}", ids = ids(.1))]
    SeveralBegin(String, Vec<SessionId>),
    #[error("session {session} can't continue: {reached}")]
    AtLimit { session: SessionId, limit: SessionLimit, reached: String },
    #[error("session {0} is not running: {1}")]
    NotRunning(SessionId, String),
    #[error("no session runs in this directory")]
    NothingRuns,
    #[error("several sessions run in this directory: {}", ids(.0))]
    SeveralRun(Vec<SessionId>),
    #[error("session {0} is running")]
    Running(SessionId),
    #[error("session {0} is performed on {1}, as far as is known here")]
    Elsewhere(SessionId, String),
    #[error("the hooks are not those that session {0} began with")]
    OtherHooks(SessionId),
    #[error(
        "the scripts are not those that session {session} began with, and this machine has no copy of those: {}",
        paths.join(", ")
    )]
    OtherScripts { session: SessionId, paths: Vec<String> },
    #[error("session {0} is a review: the session under review starts its reviews")]
    Review(SessionId),
    #[error("session {0} is an external session: it continues in its own agent")]
    External(SessionId),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    CheckoutBusy(Box<CheckoutHolder>),
    #[error(
        "this command writes its output to {}, a file of the project: the file would count as the agent's work, \
         and gates would see it change while they run",
        _0.display()
    )]
    OutputInCheckout(PathBuf),
    #[error("an {0} in this directory did not finish")]
    RestoreUnfinished(String),
    #[error(transparent)]
    Template(#[from] PromptTemplateError),
    #[error("a message has at most {MESSAGE_BYTES_MAX} bytes, not {0}")]
    LongMessage(usize),
}

fn ids(sessions: &[SessionId]) -> String {
    sessions.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}
