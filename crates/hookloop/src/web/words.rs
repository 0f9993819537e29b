//! Times, states and links of pages.

use hookloop_core::time::Timestamp;
use minijinja::value::Value;
use serde::Serialize;

use super::page::value_of;
use crate::present;

/// A moment as text and as a machine-readable time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PageTime {
    iso: String,
    text: String,
    ago: String,
}

impl PageTime {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> PageTime {
        let iso = at.to_string();
        let text = iso.get(..19).unwrap_or(&iso).replace('T', " ");
        PageTime { text, ago: present::ago(now.millis_since(at)), iso }
    }
}

impl From<PageTime> for Value {
    fn from(when: PageTime) -> Value {
        value_of(when)
    }
}

/// Returns the CSS class of a state: good, bad, busy or calm.
pub(super) fn class(state: &str) -> &'static str {
    match state {
        "running" | "active" | "working" => "busy",
        "ready" | "complete" | "completed" | "passed" | "finished" | "pass" | "on" => "good",
        "created" | "submitted" | "paused" | "draining" | "skipped" | "off" | "cancelled"
        | "stopped" | "continue" => "calm",
        _ => "bad",
    }
}

/// Returns an address if it is a safe link.
pub(super) fn address(url: &str) -> Option<&str> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    (is_web && !url.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_date_and_time() {
        let at = "2026-01-17T10:00:00Z".parse().unwrap();
        assert_eq!(PageTime::new(at, at).text, "2026-01-17 10:00:00");
    }

    #[test]
    fn only_http_and_https_urls_become_links() {
        assert!(address("https://example.org/pull/1").is_some());
        for url in
            ["javascript:alert(1)", "data:text/html,x", "//x", " https://x", "https://x\ny", ""]
        {
            assert_eq!(address(url), None, "{url}");
        }
    }
}
