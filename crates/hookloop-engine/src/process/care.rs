//! What this program does for a keeper that can't: it lets one go on that somebody stopped.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::descendants;

/// Between two looks. Most hooks end before the first.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) struct Care {
    keeper: Pid,
    next: Instant,
    was_stopped: bool,
}

impl Care {
    pub(super) fn new(keeper: Pid) -> Care {
        Care { keeper, next: Instant::now() + LOOK_EVERY, was_stopped: false }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Does what the keeper needs. Whether it is lost: it was stopped again.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        self.next = now + LOOK_EVERY;
        if !descendants::is_stopped(self.keeper) {
            return false;
        }
        let _ = kill_process(self.keeper, Signal::CONT);
        std::mem::replace(&mut self.was_stopped, true)
    }
}
