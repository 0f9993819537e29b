//! Everywhere but on Linux: nobody adopts orphans.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::super::KILL_PAUSE;
pub(in super::super) use super::table::{
    all_processes, arguments, machine_memory, own_memory, program_name, real_user, sees_itself,
    stat, variables, variables_of, working_directory, written,
};

/// Whether processes that lose their parents can be had as children.
pub(in super::super) const ADOPTS: bool = false;

pub(in super::super) fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

pub(in super::super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Waits until a child has ended, or for so long.
pub(in super::super) fn wait_for_end(child: Pid, limit: Duration) {
    let until = Instant::now() + limit;
    while !super::has_ended(child) && Instant::now() < until {
        std::thread::sleep(KILL_PAUSE);
    }
}

/// There are no namespaces of users here.
pub(in super::super) fn has_one_user() -> bool {
    false
}

/// A process has the name of its program here.
pub(in super::super) fn be_called(_: &str) {}

/// A pipe is as large as it is.
pub(in super::super) fn widen(_: &OwnedFd, _: usize) {}

pub(in super::super) fn pipe_size(_: impl AsFd) -> Option<usize> {
    None
}

/// They are only known by their parents.
pub(in super::super) fn children(_: Pid) -> Option<Vec<Pid>> {
    None
}

/// How many there are is not told in passing: nobody is held for being too many before they are counted.
pub(in super::super) fn threads() -> u16 {
    0
}

/// What is shared is not told apart.
pub(in super::super) fn proportional_memory(pid: Pid) -> u64 {
    own_memory(pid)
}
