//! Whether the work gets anywhere.
//!
//! An iteration gets somewhere if its turn leaves the project's files as they never were in this session, or if
//! fewer checks fail than ever before. Files that hooks and gates write between turns do not count. What the agent says does not count: one that is stuck finds new
//! words for it, and one that does the same thing to a hundred files uses the same words each time.
//!
//! The counter of gates that said no starts again only if fewer checks fail than ever before: files change
//! all the time while an agent runs in circles. A person's word starts both counters again.

use std::collections::HashSet;

/// States of the files that are remembered; what comes after is taken as new.
const SEEN_MAX: usize = 100_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What the files have been, by digest.
    seen: HashSet<String>,
    /// This iteration's files are new.
    is_new: bool,
    /// The fewest checks that failed.
    fewest_failing: Option<usize>,
    /// Iterations in a row that got nowhere.
    pub stalled: u32,
}

impl Progress {
    /// A turn left the files like this; not knowing is no proof of standing still.
    pub(super) fn files(&mut self, digest: Option<&str>) {
        self.is_new = match digest {
            Some(_) if self.seen.len() >= SEEN_MAX => true,
            Some(digest) => self.seen.insert(digest.to_owned()),
            None => true,
        };
    }

    /// The files are like this before a turn.
    pub(super) fn begin(&mut self, digest: &str) {
        if self.seen.len() < SEEN_MAX {
            self.seen.insert(digest.to_owned());
        }
    }

    /// So many checks fail. Answers whether that is fewer than ever.
    pub(super) fn failing(&mut self, count: usize) -> bool {
        let is_fewer = self.fewest_failing.is_none_or(|fewest| count < fewest);
        if is_fewer {
            self.fewest_failing = Some(count);
        }
        is_fewer
    }

    /// An iteration is over, in which checks got better than ever or did not.
    pub(super) fn judge(&mut self, is_better: bool) {
        self.stalled = match self.is_new || is_better {
            true => 0,
            false => self.stalled.saturating_add(1),
        };
        self.is_new = false;
    }

    /// A person spoke.
    pub(super) fn forgive(&mut self) {
        self.stalled = 0;
    }

    /// Other work begins. Files that were seen stay seen.
    pub(super) fn restart(&mut self) {
        (self.stalled, self.fewest_failing) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word is an iteration: the files it leaves, and how many checks fail.
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
    fn standing_still_is_counted_and_work_is_not() {
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
