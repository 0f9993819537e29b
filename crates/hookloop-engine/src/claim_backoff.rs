//! The contention level of recent claims in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The highest contention level, at which claims spread over the most tasks.
pub(crate) const LEVEL_MAX: usize = 3;

/// The contention level, shared by the clones of a project. A lost update costs at most one
/// conflict.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimBackoff(Arc<AtomicUsize>);

impl ClaimBackoff {
    pub(crate) fn level(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Updates the level after a claim that began at `start` and took `tries` attempts.
    ///
    /// Each conflict raises the level by one. A claim without conflicts lowers it.
    pub(crate) fn learn(&self, start: usize, tries: usize) {
        let level = match tries {
            0 | 1 => start.saturating_sub(1),
            more => (start + more - 1).min(LEVEL_MAX),
        };
        self.0.store(level, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_raise_the_level_and_success_lowers_it() {
        let spread = ClaimBackoff::default();
        let check = |tries: usize, level: usize| {
            spread.learn(spread.level(), tries);
            assert_eq!(spread.level(), level, "after {tries} tries");
        };
        check(1, 0);
        check(2, 1);
        check(3, 3);
        check(9, 3);
        check(1, 2);
        check(1, 1);
        check(1, 0);
    }
}
