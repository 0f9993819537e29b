//! A follower of the log in a file.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::event_rows::read;
use crate::log::{EventFollower, LogError, StoredEvent};
use crate::seq::Seq;

/// Interval at which a follower looks for new events of other processes.
const FOLLOW_POLL: Duration = Duration::from_millis(20);
const FOLLOW_BATCH: usize = 1_000;

/// Follows the file for events of all processes.
pub(crate) struct FileFollower {
    pub(crate) conn: Connection,
    pub(crate) next: Seq,
}

impl EventFollower for FileFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let deadline = Instant::now() + timeout;
        loop {
            let events = read(&self.conn, self.next, FOLLOW_BATCH)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !events.is_empty() || left.is_zero() {
                self.next += events.len() as Seq;
                return Ok(events);
            }
            std::thread::sleep(FOLLOW_POLL.min(left));
        }
    }
}
