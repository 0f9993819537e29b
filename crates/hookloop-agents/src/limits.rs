//! Detects rate limits of an agent's provider in error texts, and the time at which they end.
//!
//! Agents repeat the provider's message in their own words, so the words decide.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The longest wait that is accepted. A later time is ignored.
const WAIT_MAX_MS: u64 = 8 * 24 * 60 * 60 * 1000;

// The patterns are constants, and the tests compile each of them: none is absent.

/// Words that name a rate limit.
static LIMITED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?ix)
        \b(429|529)\b | rate.?limit | usage.limit | (hit|reached)\ your\ (\w+\ )?limit
        | too.many.requests | resource.?exhausted | overloaded | quota";
    Regex::new(words).ok()
});
/// Words that name another kind of limit.
static ELSEWHERE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)disk quota|quota project|_quota_project").ok());
/// `retry after 20s`, `try again in 1m30s`, `"retryDelay": "34s"`, `resets_in_seconds: 5`.
static WAIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r#"(?ix)
        (?: retry.?after | retry.?delay | (?:retry|again)\ in | resets?\ (?:after|in) | resets_in_seconds )
        (?<unit_before> [-_\ ]?(?:ms|seconds?)\b )?  ["':=\ ]*
        (?<time> (?: [0-9]+(?:\.[0-9]+)? \s* (?:[a-z]+\b|[a-z]+)? [\s,]*(?:and\s+)? )+ )"#;
    Regex::new(words).ok()
});
/// `usage limit reached|1763229600`, `"resets_at": 1763229600`.
static MOMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:\||resets?.?at["':=\s]*)(?<seconds>[0-9]{10})(?<more>[0-9]{3})?\b"#).ok()
});
static PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?<count>[0-9]+(?:\.[0-9]+)?)\s*(?<unit>[a-z]+)?").ok());

/// Returns `None` if the error is no rate limit; else the time at which the limit ends, in milliseconds since 1970,
/// if the text states it.
pub(super) fn rate_limit(text: &str, now_ms: u64) -> Option<Option<u64>> {
    let text = ELSEWHERE.as_ref()?.replace_all(text, "");
    if !LIMITED.as_ref()?.is_match(&text) {
        return None;
    }
    let until = moment(&text).or_else(|| wait(&text).and_then(|wait| now_ms.checked_add(wait)));
    Some(until.filter(|until| is_believed(*until, now_ms)))
}

/// Returns whether a time is worth waiting for: in the future, and at most [`WAIT_MAX_MS`] away.
pub(super) fn is_believed(until_ms: u64, now_ms: u64) -> bool {
    (now_ms..=now_ms.saturating_add(WAIT_MAX_MS)).contains(&until_ms)
}

fn moment(text: &str) -> Option<u64> {
    let found = MOMENT.as_ref()?.captures(text)?;
    let number =
        |name: &str| found.name(name).map_or(Some(0), |digits| digits.as_str().parse().ok());
    Some(number("seconds")? * 1000 + number("more")?)
}

fn wait(text: &str) -> Option<u64> {
    let found = WAIT.as_ref()?.captures(text)?;
    let bare = match found.name("unit_before") {
        Some(unit) if unit.as_str().to_ascii_lowercase().contains("ms") => "ms",
        _ => "s",
    };
    let parts = PART.as_ref()?.captures_iter(found.name("time")?.as_str());
    // The word after the last number need not be a unit: `retry after 5 or so`.
    parts.map_while(|part| part_ms(&part, bare)).reduce(u64::saturating_add)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates as it should"
)]
fn part_ms(part: &Captures<'_>, bare: &str) -> Option<u64> {
    let count: f64 = part.name("count")?.as_str().parse().ok()?;
    let unit = part.name("unit").map_or(bare, |unit| unit.as_str()).to_ascii_lowercase();
    let unit_ms = match unit.as_str() {
        "ms" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => 1_000.0,
    };
    Some((count * unit_ms).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_763_229_000_000;

    #[test]
    fn rate_limits_are_distinguished_from_other_errors() {
        let check = |text: &str, expected: Option<Option<u64>>| {
            let wait = rate_limit(text, NOW).map(|until| until.map(|until| until - NOW));
            assert_eq!(wait, expected, "{text}");
        };
        check("401 Unauthorized", None);
        check("Internal error: 500 the model is down", None);
        check("write failed: Disk quota exceeded", None);
        check("line 1429 of main.rs", None);
        check("API Error: 429", Some(None));
        check("API Error: 529 Overloaded", Some(None));
        check("Rate limit exceeded. Try again later.", Some(None));
        check("rate_limit_error: slow down", Some(None));
        check("RESOURCE_EXHAUSTED", Some(None));
        check("You exceeded your current quota", Some(None));
        check("You've hit your limit · resets 3pm", Some(None));
        check("You've reached your weekly limit", Some(None));
        check("429 Too Many Requests\nRetry-After: 20", Some(Some(20_000)));
        check("rate limited, retry after 1.5 minutes", Some(Some(90_000)));
        check("429, retry-after-ms: 250", Some(Some(250)));
        check(r#"429 {"retryDelay": "34s"}"#, Some(Some(34_000)));
        check("Rate limit reached. Please try again in 1m30.5s.", Some(Some(90_500)));
        check("Rate limit reached. Please try again in 6h 2m.", Some(Some(21_720_000)));
        check("usage limit: try again in 2 days, 3 hours and 5 minutes", Some(Some(183_900_000)));
        check("Your quota will reset after 5h23m10s.", Some(Some(19_390_000)));
        check(r#"usage_limit_reached "resets_in_seconds": 77"#, Some(Some(77_000)));
        check("Claude AI usage limit reached|1763229600", Some(Some(600_000)));
        check(r#"usage limit {"resets_at":1763229600}"#, Some(Some(600_000)));
        check("usage limit, resets at 1763229600500", Some(Some(600_500)));
    }

    #[test]
    fn an_implausible_retry_time_of_a_rate_limit_is_ignored() {
        for text in [
            "429, retry after 99999999999999999999999",
            "429, retry after 9 days",
            "usage limit reached|1000000000",
            "usage limit reached|9999999999",
        ] {
            assert_eq!(rate_limit(text, NOW), Some(None), "{text}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&*LIMITED, &*ELSEWHERE, &*WAIT, &*MOMENT, &*PART] {
            assert!(pattern.is_some());
        }
    }
}
