//! The processes above this one, and the keepers among them.
//!
//! The environment of a keeper describes its jobs, and no process below the keeper can change it. A process that
//! cannot see its ancestors gets an error, never an empty list: hiding them fails closed.

use std::ffi::OsString;
use std::sync::OnceLock;

use rustix::process::{Pid, getpid, getuid};

use crate::descendants::MARK;
use crate::keeper::KEEPER_ARGUMENT;
use crate::os::{self, ProcessStat};

/// The largest number of ancestors that are searched.
const ANCESTORS_MAX: usize = 1_000;

/// A process, distinct from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Start time, in a unit of the system.
    pub started: u64,
}

/// A keeper above this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeeperAncestor {
    environment: Vec<OsString>,
}

impl KeeperAncestor {
    /// Returns a variable that the keeper was started with.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.iter().find_map(|variable| os::value_of(variable, name))
    }
}

/// A keeper with this environment of `NAME=value` pairs.
impl FromIterator<OsString> for KeeperAncestor {
    fn from_iter<I: IntoIterator<Item = OsString>>(variables: I) -> KeeperAncestor {
        KeeperAncestor { environment: variables.into_iter().collect() }
    }
}

/// The processes above this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// The processes of this user above this one, the nearest first.
    pub processes: Vec<ProcessIdentity>,
    /// The keepers among them, nearest first. A keeper that only its mark identifies has no
    /// environment.
    pub keepers: Vec<KeeperAncestor>,
}

/// The reason why the processes above this one are unknown.
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

/// Returns the processes above this one at the time of the first call. Later calls return the same result.
pub fn ancestry() -> &'static Result<Ancestry, HiddenAncestry> {
    static ABOVE: OnceLock<Result<Ancestry, HiddenAncestry>> = OnceLock::new();
    ABOVE.get_or_init(search)
}

/// Searches the processes above this one, up to the first of another user.
///
/// `sshd`, `sudo` and `login` run as another user. For root the search has no such end: a process of root can become
/// any user.
fn search() -> Result<Ancestry, HiddenAncestry> {
    if !os::sees_itself() {
        return Err(HiddenAncestry::NoProc);
    }
    let mut found = Ancestry::default();
    // Where orphans cannot be adopted, only the mark shows that an orphan had a keeper.
    if std::env::var_os(MARK).is_some() {
        found.keepers.push(KeeperAncestor::default());
    }
    let mut below = getpid();
    let mut below_stat = stat(below)?;
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = below_stat.parent else {
            let is_hidden = os::has_one_user() && below.is_init();
            return if is_hidden { Err(HiddenAncestry::Namespace) } else { Ok(found) };
        };
        if is_of_another_user(parent)? {
            return Ok(found);
        }
        below_stat = stat(parent)?;
        let started = below_stat.started.unwrap_or_default();
        found.processes.push(ProcessIdentity { pid: number(parent), started });
        if os::arguments(parent).get(1).is_some_and(|word| word == KEEPER_ARGUMENT) {
            found.keepers.push(KeeperAncestor { environment: os::variables_of(parent) });
        }
        below = parent;
    }
    Err(HiddenAncestry::TooMany)
}

fn stat(pid: Pid) -> Result<ProcessStat, HiddenAncestry> {
    os::stat(pid).ok_or(HiddenAncestry::Masked(number(pid)))
}

fn is_of_another_user(pid: Pid) -> Result<bool, HiddenAncestry> {
    if getuid().is_root() {
        return Ok(false);
    }
    match os::real_user(pid) {
        Some(user) => Ok(user != getuid().as_raw()),
        // The kernel checks the owner of a process, independent of the file system at /proc.
        None => match rustix::process::test_kill_process(pid) {
            Err(rustix::io::Errno::PERM) => Ok(true),
            _ => Err(HiddenAncestry::Masked(number(pid))),
        },
    }
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
}
