//! The last events of a session's subject, read from a log that may answer from a lagging replica.

use hookloop_core::id::Subject;
use hookloop_store::log::{LogError, Seq, StoredEvent};

use crate::error::EngineError;
use crate::project::Project;

/// Attempts to write to a session to which other processes write at the same time.
pub(crate) const TRIES_MAX: usize = 100;

/// Pause before a lagging replica is asked again.
const LAG: std::time::Duration = std::time::Duration::from_millis(20);

/// Returns the last events of a subject, including the one at `known`.
///
/// A remote log may answer from a lagging replica.
pub(crate) fn history(
    project: &Project,
    subject: &Subject,
    known: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, EngineError> {
    for _ in 0..TRIES_MAX {
        let events = project.log().history(subject, limit)?;
        if events.last().map_or(0, |last| last.seq) >= known {
            return Ok(events);
        }
        std::thread::sleep(LAG);
    }
    Err(LogError::damaged(known, "the log does not have what the view has").into())
}
