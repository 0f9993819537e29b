//! Ends the processes that a killed keeper left behind.
//!
//! This program is the next subreaper above its keepers, so those processes become its children. A
//! child that is not in the program's session and is no keeper belonged to a job. A process can
//! leave a session but not join one, and a keeper begins a session of its own. Other children of
//! this program are safe as long as they stay in its session.
//!
//! If this program cannot be a subreaper, it finds them by the keeper's session and its mark.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::timing::{KILL_LIMIT, KILL_LIMIT_OF_STORM, KILL_PAUSE};
use crate::{descendants, os};

/// The keepers of this program.
static KEEPERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Prevents a keeper from being treated as an orphan until this is dropped.
#[derive(Debug)]
pub(crate) struct KeeperRegistration(Pid);

/// Starts a keeper and registers it. No search for orphans runs in between.
pub(crate) fn register<T>(
    is_marked: bool,
    start: impl FnOnce() -> std::io::Result<T>,
    pid: impl Fn(&T) -> Pid,
) -> std::io::Result<(T, KeeperRegistration)> {
    let mut keepers = keepers();
    if keepers.is_empty() && !is_marked {
        os::adopt_orphans()?;
    }
    let started = start()?;
    let pid = pid(&started);
    keepers.push(pid);
    Ok((started, KeeperRegistration(pid)))
}

/// Calls `act` while this program starts no keeper. Write scripts that a job will run within this.
///
/// A starting process has a copy of every open file for a moment, and the kernel refuses to run a
/// script that is open for writing.
pub fn while_no_process_starts<T>(act: impl FnOnce() -> T) -> T {
    let _keepers = keepers();
    act()
}

impl Drop for KeeperRegistration {
    fn drop(&mut self) {
        keepers().retain(|keeper| *keeper != self.0);
    }
}

/// Ends the processes that a dead keeper left, within its session and outside.
///
/// The keeper must not be reaped yet, so that no other session has its id.
pub(crate) fn end(keeper: Pid, mark: Option<&OsString>) {
    let start = Instant::now();
    let (mut last_change, mut count) = (start, 0);
    while last_change.elapsed() < KILL_LIMIT && start.elapsed() < KILL_LIMIT_OF_STORM {
        // No keeper starts while this lock is held.
        let keepers = keepers();
        let orphans = if mark.is_some() { Vec::new() } else { orphans(&keepers) };
        let mut left = descendants::in_session(keeper);
        drop(keepers);
        let marked = mark.map(descendants::marked).unwrap_or_default();
        left.extend(marked.into_iter().filter(|pid| descendants::is_alive(*pid)));
        if orphans.is_empty() && left.is_empty() {
            return;
        }
        if count != orphans.len() + left.len() {
            (last_change, count) = (Instant::now(), orphans.len() + left.len());
        }
        kill(orphans, left);
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Returns children of this program that belonged to a job, zombies included.
fn orphans(keepers: &[Pid]) -> Vec<Pid> {
    let own = os::stat(getpid()).and_then(|stat| stat.session);
    let left = |pid: Pid| os::stat(pid).is_some_and(|stat| stat.session != own);
    let is_orphan = |pid: &Pid| !keepers.contains(pid) && left(*pid);
    descendants::children(getpid()).into_iter().filter(is_orphan).collect()
}

/// Stops orphans and their descendants, then kills them with `left`.
fn kill(orphans: Vec<Pid>, left: Vec<Pid>) {
    let mut stopped = left;
    for orphan in &orphans {
        // A process that is gone needs no signal; one that stays is found again.
        let _ = kill_process(*orphan, Signal::STOP);
        stopped.push(*orphan);
        stopped.extend(descendants::stop_below(*orphan));
    }
    for pid in stopped {
        // As above.
        let _ = kill_process(pid, Signal::KILL);
    }
    for orphan in orphans {
        // The result does not matter: the search is repeated.
        let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
    }
}

fn keepers() -> MutexGuard<'static, Vec<Pid>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
