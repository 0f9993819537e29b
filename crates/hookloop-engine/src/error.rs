//! Errors of commands.

use std::path::PathBuf;

use hookloop_config::ConfigError;
use hookloop_config::paths::PlaceError;
use hookloop_config::policy::PolicyRefusal;
use hookloop_config::user::UnlistedStore;
use hookloop_core::authority::ControlledAction;
use hookloop_core::cascade::CascadeLimit;
use hookloop_core::refusal::Refusal;
use hookloop_hooks::trust::TrustError;
use hookloop_process::HiddenAncestry;
use hookloop_store::log::LogError;
use hookloop_store::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    SessionTaken(#[from] SessionTakenOver),
    #[error("there is no hook `{0}`")]
    NoSuchHook(String),
    #[error(transparent)]
    UnknownWorker(#[from] UnknownWorker),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Forbidden(#[from] PolicyRefusal),
    #[error(transparent)]
    Unauthorized(#[from] UnauthorizedAction),
    #[error(transparent)]
    Unlisted(#[from] UnlistedStore),
    #[error("hook `{hook}` reached the cascade limit `{limit}`: its command was refused")]
    CascadeLimit { hook: String, limit: CascadeLimit },
    #[error("HOOKLOOP_CAUSE: `{0}` is not the cause of a hook's command")]
    BadCause(String),
    #[error("{}: {what} is not that of the hook or agent that started this program: another log would be opened", project.display())]
    OtherLog { project: PathBuf, what: &'static str },
    #[error("{}: a project on a shared store needs a name that every machine uses for it", path.display())]
    NoProjectName { path: PathBuf },
}

impl From<LogError> for EngineError {
    fn from(error: LogError) -> EngineError {
        EngineError::Store(error.into())
    }
}

/// The error that another process continues the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another program has taken the session on")]
pub struct SessionTakenOver;

/// The error for a worker name that is unknown in the fleet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no worker `{name}`: {}", listed(known))]
pub struct UnknownWorker {
    pub name: String,
    /// Up to 20 workers that the fleet knows, running ones first.
    pub known: Vec<String>,
}

fn listed(known: &[String]) -> String {
    match known.is_empty() {
        true => "the fleet has not seen any worker yet".to_owned(),
        false => format!("known workers are {}", known.join(", ")),
    }
}

/// The reason why an actor is not a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPerson {
    #[error("a hook or an agent of hookloop started this command")]
    Kept,
    #[error("HOOKLOOP_SESSION is set: an agent's session started this command")]
    Session,
    #[error("the agent `{agent}` (process {pid}) started this command")]
    External { agent: String, pid: u32 },
    #[error("it is not known what started this command: {0}")]
    Hidden(HiddenAncestry),
    #[error("this is the agent's own way in")]
    Agent,
    #[error("it is a service")]
    Service,
}

/// The error for a decision that this actor may not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only a person can {action}: {why}")]
pub struct UnauthorizedAction {
    pub action: ControlledAction,
    pub why: NotPerson,
}
