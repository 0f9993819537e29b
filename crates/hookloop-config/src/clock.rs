//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_core::time::Timestamp;

/// Returns the time of day; a clock that is before 1970 counts as 1970.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
