//! The wait for a lock file of git.

use std::time::{Duration, Instant};

/// How long a git command waits for a lock file.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The first pause. Each further one is twice as long.
pub(super) const LOCK_PAUSE_MIN: Duration = Duration::from_millis(50);
const LOCK_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A wait with pauses that grow up to a limit.
pub(super) struct LockWait {
    began: Instant,
    pause: Duration,
}

impl LockWait {
    pub(super) fn new() -> LockWait {
        LockWait { began: Instant::now(), pause: LOCK_PAUSE_MIN }
    }

    /// Returns whether the wait has reached its limit.
    pub(super) fn is_over(&self) -> bool {
        self.began.elapsed() >= LOCK_PATIENCE
    }

    /// Returns the length of the next pause.
    pub(super) fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LOCK_PAUSE_MAX);
        pause
    }
}
