//! Times, amounts and states as pages say them.

use hookloop_core::time::Timestamp;
use minijinja::value::Value;
use serde::Serialize;

use super::page::value_of;

/// A moment, for readers and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct When {
    iso: String,
    text: String,
    ago: String,
}

impl When {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> When {
        let iso = at.to_string();
        let text = iso.get(..19).unwrap_or(&iso).replace('T', " ");
        When { text, ago: ago(now.millis_since(at)), iso }
    }
}

impl From<When> for Value {
    fn from(when: When) -> Value {
        value_of(when)
    }
}

fn ago(ms: i64) -> String {
    match rough(ms.unsigned_abs()) {
        Some(length) if ms > 0 => format!("{length} ago"),
        Some(length) => format!("in {length}"),
        None => "now".to_owned(),
    }
}

/// A length of time as nobody would say it who has to be exact.
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

/// How a state looks: what is good, bad, at work, or neither.
pub(super) fn class(state: &str) -> &'static str {
    match state {
        "running" | "active" | "working" => "busy",
        "ready" | "complete" | "completed" | "passed" | "finished" | "pass" | "on" => "good",
        "created" | "submitted" | "paused" | "draining" | "skipped" | "off" | "cancelled"
        | "stopped" | "continue" => "calm",
        _ => "bad",
    }
}

/// An address that is safe to follow.
pub(super) fn address(url: &str) -> Option<&str> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    (is_web && !url.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_said_roughly() {
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
        let at = "2026-01-17T10:00:00Z".parse().unwrap();
        assert_eq!(When::new(at, at).text, "2026-01-17 10:00:00");
    }

    #[test]
    fn only_the_web_is_linked_to() {
        assert!(address("https://example.org/pull/1").is_some());
        for url in
            ["javascript:alert(1)", "data:text/html,x", "//x", " https://x", "https://x\ny", ""]
        {
            assert_eq!(address(url), None, "{url}");
        }
    }
}
