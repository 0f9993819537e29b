//! The time that a session has run, kept in a file of the session.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLOCK: &str = "active_ms";

/// Writes the time that a session has run to a file. A process that is killed cannot write it to the log.
#[derive(Debug)]
pub(crate) struct SessionClock {
    path: PathBuf,
    before_ms: u64,
    began: Instant,
    rested_ms: Arc<AtomicU64>,
}

impl SessionClock {
    pub(crate) const TICK: Duration = Duration::from_secs(1);

    pub(crate) fn new(directory: &Path, before_ms: u64, rested_ms: Arc<AtomicU64>) -> SessionClock {
        SessionClock { path: directory.join(CLOCK), before_ms, began: Instant::now(), rested_ms }
    }

    /// Returns the time in which the session rested. It does not count as run time.
    pub(crate) fn rested(&self) -> Duration {
        Duration::from_millis(self.rested_ms.load(Ordering::SeqCst))
    }

    /// Writes the time so far. If the write fails, the file lacks the time of this process.
    pub(crate) fn tick(&self) {
        let active = self.began.elapsed().saturating_sub(self.rested());
        let ms = u64::try_from(active.as_millis()).unwrap_or(u64::MAX);
        let written = fs::write(&self.path, self.before_ms.saturating_add(ms).to_string());
        // The next tick tries again, so this is no warning.
        if let Err(error) = written {
            tracing::debug!(path = %self.path.display(), %error, "the time of a session is not recorded");
        }
    }

    pub(super) fn read(directory: &Path) -> u64 {
        let text = fs::read_to_string(directory.join(CLOCK)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}
