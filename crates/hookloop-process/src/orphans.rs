//! What a keeper left behind that was killed.
//!
//! This program is the next reaper above its keepers, so those processes become its children. What is its
//! child, is not in its session and is no keeper was a hook's: a process can leave a session but not join
//! one, and a keeper begins a session of its own. So whatever else this program starts is safe, as long as
//! it stays in the session that it was started in.
//!
//! Where this program can't be a reaper, they are known by the keeper's session and its mark.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::{KILL_LIMIT, KILL_PAUSE, descendants, os};

/// The keepers that this program has.
static KEEPERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A keeper's place among those that are not orphans.
#[derive(Debug)]
pub(super) struct Registered(Pid);

/// Starts a keeper. Nobody looks for orphans before it is known as one.
pub(super) fn register<T>(
    is_marked: bool,
    start: impl FnOnce() -> std::io::Result<T>,
    pid: impl Fn(&T) -> Pid,
) -> std::io::Result<(T, Registered)> {
    let mut keepers = keepers();
    if keepers.is_empty() && !is_marked {
        os::adopt_orphans()?;
    }
    let started = start()?;
    let pid = pid(&started);
    keepers.push(pid);
    Ok((started, Registered(pid)))
}

/// Does something while no process is started: one that begins just then has a copy of every open file for a
/// moment, and a script that is open for writing anywhere can't be run.
pub fn while_nothing_starts<T>(act: impl FnOnce() -> T) -> T {
    let _keepers = keepers();
    act()
}

impl Drop for Registered {
    fn drop(&mut self) {
        keepers().retain(|keeper| *keeper != self.0);
    }
}

/// Ends the processes that a dead keeper left: those in its session, and those that left it. The keeper was
/// not waited for yet, so its id is the session's.
pub(super) fn end(keeper: Pid, mark: Option<&OsString>) {
    let start = Instant::now();
    while start.elapsed() < KILL_LIMIT {
        // While this is held no keeper is started.
        let keepers = keepers();
        let orphans = if mark.is_some() { Vec::new() } else { orphans(&keepers) };
        let mut left = descendants::in_session(keeper);
        drop(keepers);
        let marked = mark.map(descendants::marked).unwrap_or_default();
        left.extend(marked.into_iter().filter(|pid| descendants::is_alive(*pid)));
        if orphans.is_empty() && left.is_empty() {
            return;
        }
        kill(orphans, left);
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Children of this program that were a hook's, dead or alive.
fn orphans(keepers: &[Pid]) -> Vec<Pid> {
    let own = os::stat(getpid()).and_then(|stat| stat.session);
    // Who is gone is nobody's.
    let left = |pid: Pid| os::stat(pid).is_some_and(|stat| stat.session != own);
    let is_orphan = |pid: &Pid| !keepers.contains(pid) && left(*pid);
    descendants::children(getpid()).into_iter().filter(is_orphan).collect()
}

/// They are stopped first, with those below them.
fn kill(orphans: Vec<Pid>, left: Vec<Pid>) {
    let mut stopped = left;
    for orphan in &orphans {
        let _ = kill_process(*orphan, Signal::STOP);
        stopped.push(*orphan);
        stopped.extend(descendants::stopped(*orphan));
    }
    for pid in stopped {
        let _ = kill_process(pid, Signal::KILL);
    }
    for orphan in orphans {
        // Who lives is an answer too.
        let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
    }
}

fn keepers() -> MutexGuard<'static, Vec<Pid>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
