//! Lengths of time and moments for people.

use hookloop_core::options::Length;

/// Returns a length of time with its unit.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => Length { ms: ms / 1_000 * 1_000 }.to_string(),
    }
}

/// Returns how long ago a moment was, or how far ahead it is.
pub(crate) fn ago(ms: i64) -> String {
    match rough(ms.unsigned_abs()) {
        Some(length) if ms > 0 => format!("{length} ago"),
        Some(length) => format!("in {length}"),
        None => "now".to_owned(),
    }
}

/// Rounds a length of time down to its largest unit; none below five seconds.
fn rough(ms: u64) -> Option<String> {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    Some(match ms / 1_000 {
        0..5 => return None,
        seconds @ 5..MINUTE => format!("{seconds} s"),
        seconds @ MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h", seconds / HOUR),
        seconds => format!("{} d", seconds / DAY),
    })
}

/// Returns a time that is still running, in whole seconds.
pub(crate) fn clock(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_are_rounded() {
        for (ms, expected) in [
            (0, "now"),
            (4_999, "now"),
            (59_000, "59 s ago"),
            (3_600_000, "1 h ago"),
            (200_000_000, "2 d ago"),
            (-120_000, "in 2 min"),
        ] {
            assert_eq!(ago(ms), expected, "{ms}");
        }
    }

    #[test]
    fn running_time_is_never_negative() {
        for (ms, expected) in
            [(-5, "0 s"), (59_999, "59 s"), (61_000, "1:01"), (3_601_000, "1:00:01")]
        {
            assert_eq!(clock(ms), expected, "{ms}");
        }
    }
}
