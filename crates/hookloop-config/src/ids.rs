//! Fresh ids.

use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_core::id::{EventId, ProjectName};

/// Returns an id that no other event has.
pub fn fresh_id() -> EventId {
    // Such an id contains the time since 1970, so a clock that is before 1970 gives no valid one.
    let id = if SystemTime::now() < UNIX_EPOCH {
        let start = uuid::Timestamp::from_unix(uuid::NoContext, 0, 0);
        uuid::Uuid::new_v7(start)
    } else {
        uuid::Uuid::now_v7()
    };
    EventId(*id.as_bytes())
}

/// Returns a name for a new project in a directory called `directory`.
pub fn new_project_name(directory: &str) -> ProjectName {
    ProjectName::generate(directory, fresh_id())
}
