//! Finds likely problems before they occur: machine, git, state, project, store, hooks, agents.
//!
//! The checks run nothing of a repository. Programs that report their version run concurrently,
//! with a time limit.
//!
//! - `hooks`: a project's hooks, and the keepers of their processes
//! - `agents`: the configured agents
//! - `network`: the proxy, the certificates, and whether the forge answers
//! - `git`: git, and the features that delivery needs
//! - `state`: the state directory
//! - `log`: the project's log in it
//! - `snapshots`: the disk use of the project's snapshots in it
//! - `rooms`: the confinement of gates in rooms, and the disk use of the project's rooms

mod agents;
mod git;
mod hooks;
mod log;
mod network;
mod rooms;
mod snapshots;
mod state;

use std::path::Path;

pub use agents::examine_agents;
pub use git::examine_git;
pub use hooks::{
    about_policy, examine, examine_gates, examine_keeping, examine_types, undeclared_in,
};
pub use log::{examine_events, examine_log, examine_servers, restore_hint};
pub use network::{examine_forge, examine_network};
pub use rooms::{examine_room_support, examine_rooms};
pub use snapshots::{disk_size, examine_snapshots};
pub use state::{examine_space, examine_state};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub group: FindingGroup,
    pub about: String,
    pub status: FindingStatus,
    pub message: String,
    /// The fix, if one is known.
    pub remedy: Option<Remedy>,
}

/// The subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingGroup {
    Machine,
    Network,
    Git,
    State,
    Project,
    Store,
    Hooks,
    Agents,
    People,
    Fleet,
}

/// The fix of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A complete command line that fixes the problem.
    Type(String),
    /// An instruction that needs a decision of the user.
    Do(String),
}

impl Remedy {
    pub fn text(&self) -> &str {
        match self {
            Remedy::Type(text) | Remedy::Do(text) => text,
        }
    }

    /// Returns the command line, if the fix is one.
    pub fn command(&self) -> Option<&str> {
        match self {
            Remedy::Type(command) => Some(command),
            Remedy::Do(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingStatus {
    Ok,
    Warning,
    Error,
}

impl FindingStatus {
    pub fn name(self) -> &'static str {
        match self {
            FindingStatus::Ok => "ok",
            FindingStatus::Warning => "warning",
            FindingStatus::Error => "error",
        }
    }
}

impl FindingGroup {
    /// All groups, in display order.
    pub const ALL: [FindingGroup; 10] = [
        FindingGroup::Machine,
        FindingGroup::Network,
        FindingGroup::Git,
        FindingGroup::State,
        FindingGroup::Project,
        FindingGroup::Store,
        FindingGroup::Hooks,
        FindingGroup::Agents,
        FindingGroup::People,
        FindingGroup::Fleet,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FindingGroup::Machine => "machine",
            FindingGroup::Network => "network",
            FindingGroup::Git => "git",
            FindingGroup::State => "state",
            FindingGroup::Project => "project",
            FindingGroup::Store => "store",
            FindingGroup::Hooks => "hooks",
            FindingGroup::Agents => "agents",
            FindingGroup::People => "people",
            FindingGroup::Fleet => "fleet",
        }
    }

    pub fn finding(
        self,
        status: FindingStatus,
        about: &str,
        message: impl Into<String>,
    ) -> Finding {
        let (about, message) = (about.to_owned(), message.into());
        Finding { group: self, about, status, message, remedy: None }
    }

    pub fn ok(self, about: &str, message: impl Into<String>) -> Finding {
        self.finding(FindingStatus::Ok, about, message)
    }

    pub fn warning(self, about: &str, message: impl Into<String>) -> Finding {
        self.finding(FindingStatus::Warning, about, message)
    }

    pub fn error(self, about: &str, message: impl Into<String>) -> Finding {
        self.finding(FindingStatus::Error, about, message)
    }
}

impl Finding {
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Finding {
        Finding { remedy: Some(remedy), ..self }
    }

    /// Adds a command that fixes the problem.
    #[must_use]
    pub fn typed(self, command: impl Into<String>) -> Finding {
        self.with_remedy(Remedy::Type(command.into()))
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Returns the command that makes the user the owner of a directory.
fn owned(path: &Path) -> String {
    let is_root = rustix::process::geteuid().is_root();
    format!("{}chown -R {} {}", if is_root { "" } else { "sudo " }, "\"$(id -u)\"", quoted(path))
}
