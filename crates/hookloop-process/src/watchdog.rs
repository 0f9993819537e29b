//! Helps a keeper that cannot act.
//!
//! It continues a keeper that was stopped, and pauses a job whose many processes starve the keeper.
//! A keeper is in the session of its job, and the scheduler divides time among sessions first. This
//! program runs even when the keeper does not.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{descendants, os, usage_watch};

/// Time between two checks. Most jobs end before the first.
const CHECK_EVERY: Duration = Duration::from_millis(250);
/// Number of new threads on this machine from which on the job is paused.
const THREADS_GROWTH: u64 = 512;

/// Checks a keeper at intervals while its job runs.
pub(crate) struct Watchdog {
    keeper: Pid,
    next: Instant,
    was_stopped: bool,
    /// Threads on this machine at the last check without growth.
    threads: u16,
    /// The process group of a job that is paused until the next check.
    paused: Option<Pid>,
}

impl Watchdog {
    pub(crate) fn new(keeper: Pid) -> Watchdog {
        Watchdog {
            keeper,
            next: Instant::now() + CHECK_EVERY,
            was_stopped: false,
            threads: os::threads(),
            paused: None,
        }
    }

    /// Returns the time of the next check.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Helps the keeper if necessary. Returns whether the keeper is lost: it was stopped a second time.
    pub(crate) fn check(&mut self, now: Instant) -> bool {
        self.next = now + CHECK_EVERY;
        self.continue_job();
        self.pause_growing_job();
        if !descendants::is_stopped(self.keeper) {
            return false;
        }
        tracing::debug!(keeper = %self.keeper, "a stopped keeper is continued");
        // A keeper that is gone shows as the end of its socket.
        let _ = kill_process(self.keeper, Signal::CONT);
        std::mem::replace(&mut self.was_stopped, true)
    }

    fn pause_growing_job(&mut self) {
        if !usage_watch::has_grown(&mut self.threads, THREADS_GROWTH) {
            return;
        }
        // The oldest child is the first process of the job, and its process group has the same id.
        self.paused = descendants::children(self.keeper).first().copied();
        if let Some(group) = self.paused {
            // A group that is gone does not grow.
            let _ = kill_process_group(group, Signal::STOP);
        }
    }

    /// Continues a paused job: the keeper has had time to run.
    fn continue_job(&mut self) {
        if let Some(group) = self.paused.take()
            && descendants::children(self.keeper).contains(&group)
        {
            // A group that is gone needs no signal.
            let _ = kill_process_group(group, Signal::CONT);
        }
    }
}
