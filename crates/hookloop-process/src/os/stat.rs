//! The state of one process.

use rustix::process::Pid;

/// The state of a process at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) dead: bool,
    pub(crate) stopped: bool,
    pub(crate) parent: Option<Pid>,
    /// `None` for a session from outside this pid namespace, as the first process of a container has.
    pub(crate) session: Option<Pid>,
    /// Start time, in a unit of the system.
    pub(crate) started: Option<u64>,
}
