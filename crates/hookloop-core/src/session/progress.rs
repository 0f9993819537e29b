//! Detects whether iterations make progress.
//!
//! An iteration makes progress if its turn leaves files that this session has not had before, or if fewer
//! checks fail than ever. Files that hooks and gates write between turns do not count. The agent's words do not
//! count either: a stuck agent varies them, and a working one may repeat them.
//!
//! The counter of gate failures starts again only if fewer checks fail than ever, because files also change
//! while an agent runs in circles. A message of a person resets both counters.

use std::collections::HashSet;

/// The number of file states that are remembered. Later states count as new.
const SEEN_MAX: usize = 100_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The digests of all file states so far.
    seen: HashSet<String>,
    /// The files of this iteration are new.
    is_new: bool,
    /// The fewest checks that failed.
    fewest_failing: Option<usize>,
    /// Iterations in a row without progress.
    pub stalled: u32,
}

impl Progress {
    /// Records the files after a turn. An unknown digest counts as new.
    pub(super) fn files(&mut self, digest: Option<&str>) {
        self.is_new = match digest {
            Some(_) if self.seen.len() >= SEEN_MAX => true,
            Some(digest) => self.seen.insert(digest.to_owned()),
            None => true,
        };
    }

    /// Records the files before a turn.
    pub(super) fn begin(&mut self, digest: &str) {
        if self.seen.len() < SEEN_MAX {
            self.seen.insert(digest.to_owned());
        }
    }

    /// Records the number of failing checks. Returns whether it is lower than ever.
    pub(super) fn failing(&mut self, count: usize) -> bool {
        let is_fewer = self.fewest_failing.is_none_or(|fewest| count < fewest);
        if is_fewer {
            self.fewest_failing = Some(count);
        }
        is_fewer
    }

    /// Ends an iteration, in which the checks improved or not.
    pub(super) fn judge(&mut self, is_better: bool) {
        self.stalled = match self.is_new || is_better {
            true => 0,
            false => self.stalled.saturating_add(1),
        };
        self.is_new = false;
    }

    /// Resets the counter after a message of a person.
    pub(super) fn forgive(&mut self) {
        self.stalled = 0;
    }

    /// Begins other work. The known file states stay.
    pub(super) fn restart(&mut self) {
        (self.stalled, self.fewest_failing) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counter after each iteration, given its files and number of failing checks.
    fn stalled(history: &[(&str, usize)]) -> Vec<u32> {
        let mut progress = Progress::default();
        progress.begin("start");
        let mut one = |(files, failing): &(&str, usize)| {
            progress.files(Some(files));
            let is_better = progress.failing(*failing);
            progress.judge(is_better);
            progress.stalled
        };
        history.iter().map(&mut one).collect()
    }

    #[test]
    fn iterations_without_progress_are_counted() {
        let same: Vec<_> = (0..4).map(|_| ("start", 3)).collect();
        assert_eq!(stalled(&same), [0, 1, 2, 3], "nothing changes");
        let circles = [("a", 3), ("b", 3), ("a", 3), ("b", 3), ("a", 3)];
        assert_eq!(stalled(&circles), [0, 0, 1, 2, 3], "there and back again");
        let slow = [("a", 9), ("b", 9), ("c", 9), ("d", 9), ("e", 9)];
        assert_eq!(stalled(&slow), [0; 5], "files that never were");
        let healing = [("a", 9), ("a", 8), ("a", 7), ("a", 7), ("a", 8), ("a", 6)];
        assert_eq!(stalled(&healing), [0, 0, 0, 1, 2, 0], "fewer than ever");
    }
}
