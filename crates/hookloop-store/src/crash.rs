//! The points at which tests end the process.
//!
//! Each durable step passes a point. In a debug build, the process aborts at the point whose number
//! is in `HOOKLOOP_CRASH_AT`, without cleanup, like `kill -9`. In a release build, points cost
//! nothing.

/// Passes a point. `step` names it for readers of the code.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_step: &'static str) {}

#[cfg(debug_assertions)]
pub fn point(_step: &'static str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    // A value that is not a number names no point.
    static CRASH_AT: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var("HOOKLOOP_CRASH_AT").ok()?.parse().ok());

    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if *CRASH_AT == Some(passed) {
        std::process::abort();
    }
}
