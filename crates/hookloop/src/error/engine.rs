//! Errors of the engine as a user sees them: the kind of failure, and the next command to type.

use hookloop_agents::BadAgent;
use hookloop_agents::repo_consent::AgentRefusal;
use hookloop_config::ConfigError;
use hookloop_config::paths::PlaceError;
use hookloop_engine::bulk::ImportError;
use hookloop_engine::delivery::train::TrainError;
use hookloop_engine::error::{EngineError, NotPerson};
use hookloop_engine::store::Refusal;
use hookloop_fleet::worker::WorkerError;
use hookloop_hooks::trust::TrustError;

use super::{CliError, FailureKind};

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> CliError {
        match &refusal {
            Refusal::Timetable(bad) => CliError::usage(bad).advice(bad.advice()),
            _ => CliError::refused(&refusal).maybe_hint(refusal.hint()),
        }
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> CliError {
        let message = error.to_string();
        match error {
            PlaceError::NoProject(_) => CliError::usage(message).hint("hookloop init"),
            PlaceError::NoHome => CliError::usage(message).hint("export HOME=/home/you"),
            PlaceError::Exposed(path) => {
                CliError::system(message).hint(format!("chmod 700 {}", path.display()))
            }
            PlaceError::Foreign(path) => {
                CliError::system(message).hint(format!("ls -ld {}", path.display()))
            }
            PlaceError::NotText(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                CliError::usage(message).advice(format!(
                    "rename the directory, such as `mv -- \"$PWD\" \"../{}\"`",
                    name.replace('\u{fffd}', "_")
                ))
            }
            PlaceError::Io { .. } => CliError::system(message),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        let line = error.line.map_or(String::new(), |line| format!(", line {line}"));
        CliError::usage(&error).advice(format!("edit {}{line}", error.path.display()))
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> CliError {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Place(error) => error.into(),
            EngineError::Config(error) => error.into(),
            EngineError::Store(error) => error.into(),
            EngineError::SessionTaken(_) => CliError::refused(error).hint("hookloop sessions list"),
            EngineError::NoSuchHook(_) => CliError::refused(error).hint("hookloop hooks list"),
            EngineError::UnknownWorker(_) => CliError::refused(error).hint("hookloop fleet status"),
            EngineError::Unlisted(unlisted) => {
                let urls = &unlisted.urls;
                let path = unlisted.path.display();
                let hint =
                    format!("add `stores: {{ \"{urls}\": {{}} }}` to {path} if you trust it");
                CliError::refused(&unlisted).advice(hint)
            }
            EngineError::Trust(error) => error.into(),
            EngineError::Forbidden(error) => CliError::refused(error).hint("hookloop policy"),
            EngineError::Unauthorized(error) => {
                let refused = CliError::refused(&error);
                match error.why {
                    NotPerson::External { .. } => {
                        refused.advice("run the command in a terminal that the agent did not start")
                    }
                    _ => refused,
                }
            }
            EngineError::CascadeLimit { .. } => {
                CliError::refused(error).hint("hookloop log --type cascade_limit_reached")
            }
            EngineError::BadCause(_) => CliError::refused(error).hint("unset HOOKLOOP_CAUSE"),
            EngineError::OtherLog { .. } => CliError::refused(error)
                .advice("do not change HOME, XDG_STATE_HOME and HOOKLOOP_STORE of a hook or agent"),
            EngineError::NoProjectName { path } => {
                let message = EngineError::NoProjectName { path: path.clone() };
                CliError::usage(message)
                    .hint(format!("echo 'project: my-project' >> {}", path.display()))
            }
        }
    }
}

impl From<WorkerError> for CliError {
    fn from(error: WorkerError) -> CliError {
        match error {
            WorkerError::Engine(error) => error.into(),
            WorkerError::Io(error) => error.into(),
        }
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> CliError {
        match error {
            TrainError::Engine(error) => error.into(),
            TrainError::Start(error) => error.into(),
            error @ (TrainError::NoDelivery | TrainError::Busy) => {
                CliError::refused(error.to_string())
            }
            error @ TrainError::Trouble(_) => CliError::refused(error.to_string()),
        }
    }
}

impl From<AgentRefusal> for CliError {
    fn from(error: AgentRefusal) -> CliError {
        let list = || Some("hookloop agents list".to_owned());
        let (kind, hint) = match error {
            AgentRefusal::Undefined(_) | AgentRefusal::Brought { .. } => {
                (FailureKind::Untrusted, error.hint())
            }
            AgentRefusal::Unknown(_) | AgentRefusal::Missing { .. } => {
                (FailureKind::Usage, error.hint().or_else(list))
            }
            AgentRefusal::Permissions(_) => (FailureKind::Usage, None),
            AgentRefusal::NotReady(_) => (FailureKind::Refused, error.hint()),
            AgentRefusal::Forbidden(_) => (FailureKind::Refused, error.hint()),
            AgentRefusal::Unreadable { .. } => (FailureKind::System, None),
        };
        CliError::new(kind, error).maybe_hint(hint)
    }
}

impl From<BadAgent> for CliError {
    fn from(error: BadAgent) -> CliError {
        CliError::usage(error)
    }
}

impl From<TrustError> for CliError {
    fn from(error: TrustError) -> CliError {
        let failed = CliError::system(&error);
        match error {
            TrustError::Unreadable { path, .. } => failed.advice(format!(
                "remove {}, then run `hookloop hooks trust`; nothing is trusted until then",
                path.display()
            )),
            TrustError::OtherDigest { .. } => {
                CliError::untrusted(failed.message).hint("hookloop hooks trust --show")
            }
            TrustError::Io { .. } | TrustError::TooLong { .. } | TrustError::TooMany { .. } => {
                failed
            }
        }
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> CliError {
        match error {
            ImportError::Engine(error) => error.into(),
            ImportError::Io(error) => error.into(),
            error => CliError::usage(error),
        }
    }
}
