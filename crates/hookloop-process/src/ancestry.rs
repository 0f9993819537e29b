//! The processes above this one, and which of them run hooks and agents.
//!
//! A keeper carries the project that it works for in its own environment, which nobody below it can change.
//! A process that can't see the processes above it is not taken for one that has none of interest there:
//! whatever hides them fails closed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{Pid, getpid, getuid};

use super::descendants::MARK;
use super::keeper::KEEPER_ARGUMENT;
use super::os;

/// How many processes up the search goes.
const ANCESTORS_MAX: usize = 1_000;

/// The variables by which a keeper names its project.
const OWNER_PROJECT: &str = "HOOKLOOP_KEEPER_PROJECT";
const OWNER_STATE: &str = "HOOKLOOP_KEEPER_STATE";
const OWNER_HOME: &str = "HOOKLOOP_KEEPER_HOME";
const OWNER_LOG: &str = "HOOKLOOP_KEEPER_LOG";

/// The project whose hooks and agents a keeper runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperOwner {
    /// The directory with `hookloop.yaml`.
    pub project: PathBuf,
    /// The directory of the project's state.
    pub state: PathBuf,
    /// The home directory of the user who runs it.
    pub home: Option<PathBuf>,
    /// A digest of what names the project's log: its store, and its name there.
    pub log: String,
}

impl KeeperOwner {
    /// The environment of a keeper that works for this project.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let home = self.home.iter().map(|home| (OWNER_HOME, home.clone().into()));
        let named = [
            (OWNER_PROJECT, self.project.clone().into()),
            (OWNER_STATE, self.state.clone().into()),
            (OWNER_LOG, self.log.clone().into()),
        ];
        named.into_iter().chain(home)
    }

    fn of_variables(variables: &[OsString]) -> Option<KeeperOwner> {
        let value = |name: &str| variables.iter().find_map(|variable| os::value_of(variable, name));
        let path = |name: &str| value(name).map(PathBuf::from);
        let log = value(OWNER_LOG)?.to_str()?.to_owned();
        let (project, state) = (path(OWNER_PROJECT)?, path(OWNER_STATE)?);
        Some(KeeperOwner { project, state, log, home: path(OWNER_HOME) })
    }
}

/// A process, told from another that has the same id later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// When it was started, in units of the system.
    pub started: u64,
}

/// What is above this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// The processes of this user above this one, the nearest first.
    pub processes: Vec<ProcessIdentity>,
    /// The projects of the keepers among them, the nearest first; none for a keeper that names no project.
    pub keepers: Vec<Option<KeeperOwner>>,
}

/// Why the processes above this one are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HiddenAncestry {
    #[error("/proc does not show this process")]
    NoProc,
    #[error("/proc does not show process {0}, which is above this one")]
    Masked(u32),
    #[error("this process is the first of a namespace that one user made")]
    Namespace,
    #[error("more than {ANCESTORS_MAX} processes are above this one")]
    TooMany,
}

/// The processes above this one, as they were when this was first asked: one search serves a whole process.
pub fn ancestry() -> &'static Result<Ancestry, HiddenAncestry> {
    static ABOVE: OnceLock<Result<Ancestry, HiddenAncestry>> = OnceLock::new();
    ABOVE.get_or_init(search)
}

/// Searches the processes above this one. The search ends at the first one that belongs to another user, as `sshd`, `sudo`
/// and `login` do. Root has no such end: a process of root's can make itself one of any user's.
fn search() -> Result<Ancestry, HiddenAncestry> {
    if !os::sees_itself() {
        return Err(HiddenAncestry::NoProc);
    }
    let mut found = Ancestry::default();
    // Where orphans can't be adopted, a process without parents is known by this alone.
    if std::env::var_os(MARK).is_some() {
        found.keepers.push(None);
    }
    let mut below = getpid();
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = stat(below)?.parent else {
            return match os::has_one_user() && below.is_init() {
                true => Err(HiddenAncestry::Namespace),
                false => Ok(found),
            };
        };
        if is_of_another_user(parent)? {
            return Ok(found);
        }
        let started = stat(parent)?.started.unwrap_or_default();
        found.processes.push(ProcessIdentity { pid: number(parent), started });
        if os::arguments(parent).get(1).is_some_and(|word| word == KEEPER_ARGUMENT) {
            found.keepers.push(KeeperOwner::of_variables(&os::variables_of(parent)));
        }
        below = parent;
    }
    Err(HiddenAncestry::TooMany)
}

/// Whether a hook or an agent started this process, by whatever way: a keeper is above it then, as the reaper of
/// all that lost their parents. A process that can't tell counts as one that was.
pub fn is_kept() -> bool {
    ancestry().as_ref().map_or(true, |above| !above.keepers.is_empty())
}

fn stat(pid: Pid) -> Result<super::descendants::Stat, HiddenAncestry> {
    os::stat(pid).ok_or(HiddenAncestry::Masked(number(pid)))
}

fn is_of_another_user(pid: Pid) -> Result<bool, HiddenAncestry> {
    if getuid().is_root() {
        return Ok(false);
    }
    match os::real_user(pid) {
        Some(user) => Ok(user != getuid().as_raw()),
        // The system itself says whose it is, whatever is mounted at /proc.
        None => match rustix::process::test_kill_process(pid) {
            Err(rustix::io::Errno::PERM) => Ok(true),
            _ => Err(HiddenAncestry::Masked(number(pid))),
        },
    }
}

/// Processes that start others on a person's behalf: never an agent.
const SESSION_PROGRAMS: [&str; 8] =
    ["init", "systemd", "sshd", "login", "su", "sudo", "tmux: server", "screen"];
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox"];

/// The agent that runs this process as one of its hooks or tools: the nearest process above it that is not a shell
/// with a command line (`sh -c …`). None if a person typed the command, or nobody above it can be an agent.
pub fn agent_above() -> Option<ProcessIdentity> {
    for &process in &ancestry().as_ref().ok()?.processes {
        let pid = Pid::from_raw(process.pid.cast_signed())?;
        let program = os::program_name(pid)?;
        if pid.is_init() || SESSION_PROGRAMS.contains(&program.as_str()) {
            return None;
        }
        if !SHELLS.contains(&program.as_str()) {
            return Some(process);
        }
        let mut arguments = os::arguments(pid).into_iter().skip(1);
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let first = arguments.next()?;
        let has_command = first.as_encoded_bytes().ends_with(b"c")
            && !first.as_encoded_bytes().starts_with(b"--");
        if is_option(&first) && !has_command {
            // `bash -i`, `bash --login`: a person's.
            return arguments.any(|word| !is_option(&word)).then_some(process);
        }
        // `sh script` is a program like any other.
        if !is_option(&first) {
            return Some(process);
        }
    }
    None
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_test_is_its_first_ancestor() {
        let above = ancestry().as_ref().unwrap();
        let parent = rustix::process::getppid().unwrap();
        assert_eq!(above.processes[0].pid, number(parent));
        assert!(above.processes[0].started > 0);
    }

    #[test]
    fn a_keeper_names_its_project() {
        let (log, home) = ("0123".to_owned(), Some("/h".into()));
        let owner = KeeperOwner { project: "/p q".into(), state: "/s=t".into(), log, home };
        let variables: Vec<OsString> = owner
            .variables()
            .map(|(name, value)| {
                let mut variable = OsString::from(name);
                variable.push("=");
                variable.push(value);
                variable
            })
            .collect();
        assert_eq!(KeeperOwner::of_variables(&variables), Some(owner));
        assert_eq!(KeeperOwner::of_variables(&variables[..1]), None);
    }
}
