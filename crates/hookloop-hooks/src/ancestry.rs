//! The projects whose hooks and agents run this process, and the agent that runs it.
//!
//! A keeper names its project in its own environment, which no process below it can change.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use hookloop_process::{HiddenAncestry, KeeperAncestor, ProcessIdentity, inspect};

/// The variables by which a keeper names its project.
const OWNER_PROJECT: &str = "HOOKLOOP_KEEPER_PROJECT";
const OWNER_STATE: &str = "HOOKLOOP_KEEPER_STATE";
const OWNER_HOME: &str = "HOOKLOOP_KEEPER_HOME";
const OWNER_LOG: &str = "HOOKLOOP_KEEPER_LOG";

/// Programs that start others on a person's behalf. They are never agents.
const SESSION_PROGRAMS: [&str; 8] =
    ["init", "systemd", "sshd", "login", "su", "sudo", "tmux: server", "screen"];
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox"];
/// The id of the first process of a machine or a container.
const INIT: u32 = 1;

/// The project whose hooks and agents a keeper runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperOwner {
    /// The directory with `hookloop.yaml`.
    pub project: PathBuf,
    /// The directory of the project's state.
    pub state: PathBuf,
    /// The home directory of the user that runs the project.
    pub home: Option<PathBuf>,
    /// A digest of the store and the name of the project's log.
    pub log: String,
}

impl KeeperOwner {
    /// Returns the environment of a keeper that works for this project.
    pub fn variables(self) -> Vec<(OsString, OsString)> {
        let named = [
            (OWNER_PROJECT, self.project.into()),
            (OWNER_STATE, self.state.into()),
            (OWNER_LOG, self.log.into()),
        ];
        let home = self.home.map(|home| (OWNER_HOME, home.into()));
        named.into_iter().chain(home).map(|(name, value)| (name.into(), value)).collect()
    }

    fn of_keeper(keeper: &KeeperAncestor) -> Option<KeeperOwner> {
        let path = |name: &str| keeper.variable(name).map(PathBuf::from);
        Some(KeeperOwner {
            project: path(OWNER_PROJECT)?,
            state: path(OWNER_STATE)?,
            log: keeper.variable(OWNER_LOG)?.to_str()?.to_owned(),
            home: path(OWNER_HOME),
        })
    }
}

/// The processes above this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerAncestry {
    /// The processes of this user above this one, the nearest first.
    pub processes: Vec<ProcessIdentity>,
    /// The projects of the keepers among them, nearest first. `None` is a keeper without a project.
    pub keepers: Vec<Option<KeeperOwner>>,
}

/// Returns the processes above this one at the time of the first call.
pub fn ancestry() -> &'static Result<CallerAncestry, HiddenAncestry> {
    static ABOVE: OnceLock<Result<CallerAncestry, HiddenAncestry>> = OnceLock::new();
    ABOVE.get_or_init(|| {
        let above = hookloop_process::ancestry().as_ref().map_err(|hidden| *hidden)?;
        Ok(CallerAncestry {
            processes: above.processes.clone(),
            keepers: above.keepers.iter().map(KeeperOwner::of_keeper).collect(),
        })
    })
}

/// Returns the agent that runs this process as one of its hooks or tools.
///
/// That is the nearest process above that is not a shell with a command line (`sh -c …`). Returns
/// `None` if a person typed the command, or if no process above can be an agent.
pub fn agent_above() -> Option<ProcessIdentity> {
    for &process in &ancestry().as_ref().ok()?.processes {
        let program = inspect::program_name(process.pid)?;
        if process.pid == INIT || SESSION_PROGRAMS.contains(&program.as_str()) {
            return None;
        }
        if !SHELLS.contains(&program.as_str()) {
            return Some(process);
        }
        let mut arguments = inspect::arguments(process.pid).into_iter().skip(1);
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let first = arguments.next()?;
        let has_command = first.as_encoded_bytes().ends_with(b"c")
            && !first.as_encoded_bytes().starts_with(b"--");
        if is_option(&first) && !has_command {
            // `bash -i`, `bash --login`: a person's shell.
            return arguments.any(|word| !is_option(&word)).then_some(process);
        }
        // `sh script` is a program like any other.
        if !is_option(&first) {
            return Some(process);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_keeper_is_read_from_its_variables() {
        let owner = KeeperOwner {
            project: "/p q".into(),
            state: "/s=t".into(),
            log: "0123".to_owned(),
            home: Some("/h".into()),
        };
        let pairs = owner.clone().variables().into_iter().map(|(name, value)| {
            let mut variable = name;
            variable.push("=");
            variable.push(value);
            variable
        });
        let pairs: Vec<OsString> = pairs.collect();
        let keeper: KeeperAncestor = pairs.iter().cloned().collect();
        assert_eq!(KeeperOwner::of_keeper(&keeper), Some(owner));
        let without_state: KeeperAncestor = pairs.into_iter().take(1).collect();
        assert_eq!(KeeperOwner::of_keeper(&without_state), None);
    }
}
