//! Priority aging: tasks become more urgent while they wait.

use crate::task::Priority;
use crate::time::Timestamp;

/// The rate at which a ready task becomes more urgent, so that urgent tasks do not starve the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityAging {
    /// The priority does not change.
    Never,
    /// The priority improves by one for each period of waiting.
    Each { ms: u64 },
}

impl PriorityAging {
    pub const DEFAULT_MS: u64 = 8 * 60 * 60 * 1_000;

    /// Returns the priority of a task that has waited since `since`: less is more urgent. The result may be
    /// below the lowest configured value.
    pub fn urgency(self, priority: Priority, since: Timestamp, now: Timestamp) -> i64 {
        let steps = match self {
            PriorityAging::Never => 0,
            PriorityAging::Each { ms } => {
                now.millis_since(since).max(0) / i64::try_from(ms.max(1)).unwrap_or(i64::MAX)
            }
        };
        i64::from(priority.get()).saturating_sub(steps)
    }
}

impl Default for PriorityAging {
    fn default() -> Self {
        PriorityAging::Each { ms: PriorityAging::DEFAULT_MS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;

    #[test]
    fn waiting_raises_the_priority_step_by_step() {
        let check = |aging: PriorityAging, priority: u8, waited_ms: i64, expected: i64| {
            let (priority, since) = (Priority::try_from(priority).unwrap(), Timestamp(5 * HOUR));
            let now = Timestamp(since.0 + waited_ms);
            assert_eq!(aging.urgency(priority, since, now), expected, "{aging:?} {waited_ms}");
        };
        let each = PriorityAging::default();
        check(each, 2, 0, 2);
        check(each, 2, 8 * HOUR - 1, 2);
        check(each, 2, 8 * HOUR, 1);
        check(each, 9, 24 * HOUR, 6);
        check(each, 0, 16 * HOUR, -2);
        // Clocks differ: a task from the future has not waited.
        check(each, 2, -9 * HOUR, 2);
        check(PriorityAging::Never, 9, 1_000 * HOUR, 9);
        check(PriorityAging::Each { ms: 1 }, 9, i64::MAX - 5 * HOUR, 9 - (i64::MAX - 5 * HOUR));
        check(PriorityAging::Each { ms: u64::MAX }, 9, 1_000 * HOUR, 9);
    }
}
