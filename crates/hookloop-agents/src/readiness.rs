//! Checks that an agent is new enough and logged in.

use hookloop_config::agents::AgentSettings;
use hookloop_core::session::{AgentFault, FaultCause};
use hookloop_hooks::exec_context::ExecContext;

use super::login::{LoginState, login_state};
use super::version::{VersionTooOld, check_version};

/// Why a turn of an agent would fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("{agent} {found} is too old: hookloop needs {needed} or newer")]
    TooOld { agent: String, found: String, needed: String, install: String },
    #[error("{agent} is not logged in, and no key is in the environment")]
    LoggedOut { agent: String, command: String },
}

impl NotReady {
    /// Returns the command that a person types.
    pub fn hint(&self) -> String {
        match self {
            NotReady::TooOld { install, .. } => install.clone(),
            NotReady::LoggedOut { command, .. } => command.clone(),
        }
    }

    pub fn too_old(settings: &AgentSettings, old: VersionTooOld) -> NotReady {
        NotReady::TooOld {
            agent: settings.name.clone(),
            found: old.found.to_string(),
            needed: old.needed.to_string(),
            install: old.known.install_command(),
        }
    }

    pub fn fault(&self) -> AgentFault {
        let cause = match self {
            NotReady::TooOld { .. } => FaultCause::Version,
            NotReady::LoggedOut { .. } => FaultCause::Login,
        };
        AgentFault { cause, remedy: format!("Run `{}`", self.hint()) }
    }
}

/// An agent that can take turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReadiness {
    /// The command that logs the agent in, if nothing shows a login.
    pub unsure_login: Option<&'static str>,
}

/// Checks the version and the login of an agent before its first turn.
pub fn check_ready(
    settings: &AgentSettings,
    runner: &ExecContext,
) -> Result<AgentReadiness, NotReady> {
    check_version(settings, runner).map_err(|old| NotReady::too_old(settings, old))?;
    match login_state(settings, runner) {
        LoginState::Shown => Ok(AgentReadiness::default()),
        LoginState::Unknown { command } => Ok(AgentReadiness { unsure_login: Some(command) }),
        LoginState::LoggedOut { command } => {
            Err(NotReady::LoggedOut { agent: settings.name.clone(), command: command.to_owned() })
        }
    }
}
