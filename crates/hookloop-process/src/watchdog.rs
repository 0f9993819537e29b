//! What this program does for a keeper that can't: it lets one go on that somebody stopped, and holds a hook
//! that has so many processes that its keeper has no turn.
//!
//! A keeper is in the session of its hook, and the system shares time among sessions first: this program has
//! its turns when a keeper has none.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{descendants, os, usage_watch};

/// Between two looks. Most hooks end before the first.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// New threads on this machine that could be a hook's and too many.
const CROWD: u64 = 512;

pub(super) struct Care {
    keeper: Pid,
    next: Instant,
    was_stopped: bool,
    /// Threads on this machine, when there were no more than there should be.
    threads: u16,
    /// A hook's process group that stands still, so that its keeper has a turn.
    held: Option<Pid>,
}

impl Care {
    pub(super) fn new(keeper: Pid) -> Care {
        let (next, threads) = (Instant::now() + LOOK_EVERY, os::threads());
        Care { keeper, next, was_stopped: false, threads, held: None }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Does what the keeper needs. Whether it is lost: it was stopped again.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        self.next = now + LOOK_EVERY;
        self.let_go();
        self.hold_a_crowd();
        if !descendants::is_stopped(self.keeper) {
            return false;
        }
        let _ = kill_process(self.keeper, Signal::CONT);
        std::mem::replace(&mut self.was_stopped, true)
    }

    fn hold_a_crowd(&mut self) {
        if !usage_watch::has_grown(&mut self.threads, CROWD) {
            return;
        }
        // The oldest child is the hook's first process, and its group has the same id.
        self.held = descendants::children(self.keeper).first().copied();
        if let Some(group) = self.held {
            let _ = kill_process_group(group, Signal::STOP);
        }
    }

    /// The keeper had its turn.
    fn let_go(&mut self) {
        if let Some(group) = self.held.take()
            && descendants::children(self.keeper).contains(&group)
        {
            let _ = kill_process_group(group, Signal::CONT);
        }
    }
}
