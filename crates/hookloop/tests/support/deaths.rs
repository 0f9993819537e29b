//! Programs that die at every step of what they do.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Has a program die at its first step, its second, and so on, `at_once` of them at a time, until one does not come
/// that far. `die_at` is told the step and whether the next program dies, too, and answers at how many steps that
/// was tried. Gives the steps and the pairs of steps.
///
/// With `HOOKLOOP_CRASHES=all` the next one dies after each step, else after those that are `chosen`.
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
