//! Limits and pauses of requests that are tried again.

use std::time::Duration;

use tokio::time::Instant;

use super::error::JetStreamError;

/// Time that a request waits for its answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit of all attempts together. An election takes 4 to 9 seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first and the longest pause after a server could not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A time limit for attempts with growing pauses.
pub(super) struct RetryWindow {
    pub(super) end: Instant,
    pause: Duration,
}

impl RetryWindow {
    pub(super) fn new() -> RetryWindow {
        RetryWindow::of(PATIENCE)
    }

    pub(super) fn of(limit: Duration) -> RetryWindow {
        RetryWindow { end: Instant::now() + limit, pause: FIRST_PAUSE }
    }

    pub(super) async fn pause(
        &mut self,
        subject: &str,
        reason: String,
    ) -> Result<(), JetStreamError> {
        if Instant::now() + self.pause >= self.end {
            let subject = subject.to_owned();
            return Err(JetStreamError::NoAnswer { subject, waited: PATIENCE, reason });
        }
        tracing::info!(subject, reason, pause = ?self.pause, "a request is tried again");
        tokio::time::sleep(jittered(self.pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Returns half of `pause` and a random part of the other half, so that many clients do not retry
/// together.
pub(super) fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    pause / 2 + pause / 128 * (RandomState::new().hash_one(0) % 64) as u32
}
