//! Systems other than Linux, where a process cannot adopt orphans.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Pid;

pub(crate) use super::table::{
    all_processes, arguments, machine_memory, own_memory, program_name, real_user, sees_itself,
    stat, variables, variables_of, working_directory, written,
};
use crate::timing::KILL_PAUSE;

/// Whether orphans below a process can become its children.
pub(crate) const ADOPTS: bool = false;
/// The longest wait for the environment of a process that has none. Processes of other users never have one here.
pub(crate) const EXEC_LIMIT: Duration = Duration::from_millis(50);

pub(crate) fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Waits until a child has ended, at most for `limit`.
pub(crate) fn wait_for_end(child: Pid, limit: Duration) {
    let until = Instant::now() + limit;
    while !super::has_ended(child) && Instant::now() < until {
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Returns false: these systems have no user namespaces.
pub(crate) fn has_one_user() -> bool {
    false
}

/// Does nothing: a process has the name of its program here.
pub(crate) fn set_process_name(_: &str) {}

/// Does nothing: the size of a pipe is fixed here.
pub(crate) fn widen(_: &OwnedFd, _: usize) {}

pub(crate) fn pipe_size(_: impl AsFd) -> Option<usize> {
    None
}

/// Returns `None`: children are only found through the process table.
pub(crate) fn children(_: Pid) -> Option<Vec<Pid>> {
    None
}

/// Returns 0: the number of threads is unknown here, so no job is paused for a growing number.
pub(crate) fn threads() -> u16 {
    0
}

/// Returns the memory of a process, including shared memory.
pub(crate) fn proportional_memory(pid: Pid) -> u64 {
    own_memory(pid)
}
