//! Polls until something holds, within a limit.

use std::thread;
use std::time::{Duration, Instant};

/// The pause between two polls.
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// The result of a poll: `bool`, or an `Option` with a value.
pub trait PollResult {
    type Value;

    /// Returns the value, or `None` if the poll has to be repeated.
    fn into_value(self) -> Option<Self::Value>;
}

impl PollResult for bool {
    type Value = ();

    fn into_value(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> PollResult for Option<T> {
    type Value = T;

    fn into_value(self) -> Option<T> {
        self
    }
}

/// Polls until the result is `true` or a value, and returns the value.
///
/// # Panics
///
/// After `limit`, with `condition` in the message.
#[track_caller]
pub fn eventually<R: PollResult>(
    condition: &str,
    limit: Duration,
    mut poll: impl FnMut() -> R,
) -> R::Value {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = poll().into_value() {
            return value;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {condition}");
        thread::sleep(POLL_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_repeated_until_it_has_a_value() {
        let mut polls = 0;
        let value = eventually("the third poll", Duration::from_secs(60), || {
            polls += 1;
            (polls == 3).then_some("three")
        });
        assert_eq!((value, polls), ("three", 3));
    }

    #[test]
    #[should_panic(expected = "not within 0ns: a file appears")]
    fn a_condition_that_never_holds_is_named() {
        eventually("a file appears", Duration::ZERO, || false);
    }
}
