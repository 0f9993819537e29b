//! Checks that work takes bounded processor time of this thread, so that other load does not count.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Ten times the acceptable time for a user, because instrumented code is that much slower.
const LIMIT: Duration = Duration::from_millis(500);

pub(crate) fn limited<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begun = now();
    let done = work();
    let took = now().saturating_sub(begun);
    assert!(took < LIMIT, "{what} took {took:?}");
    done
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
