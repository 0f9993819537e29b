//! Whether an error means that whoever answers the agent wants to be left alone, and until when.

/// Words for it. An error that has one of them is not the agent's.
const WORDS: [&str; 8] = [
    "rate limit",
    "rate_limit",
    "usage limit",
    "too many requests",
    "quota exceeded",
    "exceeded your current quota",
    "overloaded",
    "http 429",
];
/// What stands before a time to wait for.
const AFTER: [&str; 5] = ["retry after", "retry-after:", "try again in", "retry in", "resets in"];
/// Seconds since 1970 that may be meant: from 2020 to 2100.
const SECONDS: std::ops::Range<u64> = 1_577_836_800..4_102_444_800;

/// Whether it does, and the moment in milliseconds since 1970 if one is told.
pub(super) fn rate_limit(error: &str, now_ms: u64) -> Option<Option<u64>> {
    let text = error.to_lowercase();
    let is_word = |word: &&str| text.contains(word);
    let has_status = || text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "429");
    if !WORDS.iter().any(|word| is_word(&word)) && !has_status() {
        return None;
    }
    Some(moment(&text).or_else(|| Some(now_ms.saturating_add(wait_ms(&text)?))))
}

/// A moment as seconds since 1970, as `usage limit reached|1749924000` has it.
fn moment(text: &str) -> Option<u64> {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let seconds = numbers.filter(|seconds: &u64| SECONDS.contains(seconds)).next_back()?;
    Some(seconds * 1_000)
}

/// A length of time, as `try again in 1h 20m` or `retry after 30 seconds` has it.
fn wait_ms(text: &str) -> Option<u64> {
    let after = AFTER.iter().find_map(|words| text.split(words).nth(1))?;
    let (mut sum, mut found, mut rest) = (0_u64, false, after.trim_start());
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms = match &rest[..end] {
            "ms" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            _ => 1_000.0,
        };
        sum = sum.saturating_add((number * unit_ms) as u64);
        found = true;
        rest = rest[end..].trim_start_matches([' ', ',']).trim_start_matches("and ");
    }
    found.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_to_be_left_alone_says_so() {
        const NOW: u64 = 1_000;
        let check = |text: &str, expected: Option<Option<u64>>| {
            assert_eq!(rate_limit(text, NOW), expected, "{text}");
        };
        check("api_error 500: We're currently experiencing high demand", None);
        check("401 Unauthorized", None);
        check("line 4290 of the file is too long", None);
        check("the limit of 5 files", None);
        check("exceeded retry limit, last status: 429 Too Many Requests", Some(None));
        check("api_error 529: overloaded_error: Overloaded", Some(None));
        check(
            "You've hit your usage limit. Try again in 3 hours 20 minutes.",
            Some(Some(NOW + 12_000_000)),
        );
        check("Rate limit reached. Please try again in 1.5s. Visit", Some(Some(NOW + 1_500)));
        check("429: retry after 30", Some(Some(NOW + 30_000)));
        check("Claude AI usage limit reached|1749924000", Some(Some(1_749_924_000_000)));
        check("rate_limit: try again in 1h 20m", Some(Some(NOW + 4_800_000)));
    }
}
