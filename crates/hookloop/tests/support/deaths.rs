//! Crashes a program at every step.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Crashes a program at its first step, its second, and so on, until it does not reach the step.
///
/// Up to `at_once` programs run concurrently. `die_at` gets the step and whether the next program
/// crashes, too; it returns the number of second crashes. Returns the number of steps and of pairs
/// of steps.
///
/// With `HOOKLOOP_CRASHES=all`, the next program crashes after each first step, else after those
/// that are `chosen`.
pub(crate) fn everywhere(
    at_once: usize,
    chosen: impl Fn(usize) -> bool + Sync,
    die_at: impl Fn(usize, bool) -> Option<usize> + Sync,
) -> (usize, usize) {
    let does_all = std::env::var("HOOKLOOP_CRASHES").is_ok_and(|all| all == "all");
    let (next, pairs) = (AtomicUsize::new(1), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(1, Ordering::Relaxed);
                    match die_at(first, does_all || chosen(first)) {
                        Some(tried) => pairs.fetch_add(tried, Ordering::Relaxed),
                        None => return,
                    };
                }
            });
        }
    });
    (next.into_inner() - at_once, pairs.into_inner())
}
