//! The last events of a session's subject, read from a log that may answer from a lagging replica.

use hookloop_core::id::Subject;
use hookloop_store::log::{LogError, Seq, StoredEvent};

use crate::error::EngineError;
use crate::project::Project;

/// How often others may write to the session while this program wants to.
pub(crate) const TRIES_MAX: usize = 100;

/// Before a copy that is behind is asked again.
const LAG: std::time::Duration = std::time::Duration::from_millis(20);

/// The last events of a subject, the one at `known` among them: what answers for a log elsewhere may be a copy that is
/// behind.
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
