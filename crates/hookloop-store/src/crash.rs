//! The points at which tests end the process.
//!
//! Each durable step passes a point. Built with the feature `crash-points`, the process ends without
//! a trace at the point whose number is in `HOOKLOOP_CRASH_AT`, as it would by `kill -9`; without
//! the feature, points cost nothing.

/// Passes a point. `step` names it for readers of the code.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(step: &'static str) {
    let _ = step;
}

#[cfg(feature = "crash-points")]
pub fn point(step: &'static str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static CRASH_AT: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var("HOOKLOOP_CRASH_AT").ok()?.parse().ok());

    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if *CRASH_AT == Some(passed) {
        let _ = step;
        std::process::abort();
    }
}
