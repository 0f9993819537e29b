//! Fingerprints of failures: equal for two runs with the same failure.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::checks::plain;
use crate::digest::hex;

/// Bytes at the end of an output that are compared.
const OUTPUT_MAX: usize = 64 * 1024;
/// Number of digits from which a hexadecimal word counts as a hash or an address.
const HEX_MIN: usize = 7;
/// Bytes of the digest that are kept.
const DIGEST_BYTES: usize = 16;

/// Units of time that follow a number.
const UNITS: [&str; 15] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minutes",
    "h", "hours",
];

/// Returns a name for a failure: equal for the same failure of the same hook.
///
/// Durations, times of day, dates, hashes, addresses and directories are left out. Counts stay: a run
/// with fewer failing tests is another failure.
pub fn failure_fingerprint(hook: &str, output: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(hook);
    let output = plain(end_of(output));
    for line in output.lines().map(normalised).filter(|line| !line.is_empty()) {
        hash.update("\n");
        hash.update(line);
    }
    let digest = hash.finalize();
    hex(&digest[..DIGEST_BYTES])
}

fn end_of(output: &str) -> &str {
    let mut start = output.len().saturating_sub(OUTPUT_MAX);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    &output[start..]
}

fn normalised(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut kept: Vec<Cow<'_, str>> = Vec::with_capacity(words.len());
    for (place, word) in words.iter().enumerate() {
        let bare = bare(word);
        let before = place.checked_sub(1).map(|before| words[before]);
        let is_unit = UNITS.contains(&bare) && before.is_some_and(is_number);
        if is_unit {
            kept.pop();
        }
        kept.push(match () {
            () if is_unit || is_duration(bare) || is_time(bare) => Cow::Borrowed("<time>"),
            () if is_hash(bare) => Cow::Borrowed("<hash>"),
            () if bare.starts_with('/') => Cow::Owned(last_part(bare).to_owned()),
            () => Cow::Borrowed(*word),
        });
    }
    kept.join(" ")
}

/// Returns a word without the brackets and marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| "()[]{}<>,;:.\"'`".contains(c))
}

fn is_number(word: &str) -> bool {
    let word = bare(word);
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

fn is_duration(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_alphabetic());
    is_number(number) && UNITS.contains(&&word[number.len()..])
}

/// Whether a word is a date or a time of day, such as `12:30:01.5` or `2026-01-17T12:00:00Z`.
fn is_time(word: &str) -> bool {
    let marks = word.chars().filter(|c| matches!(c, ':' | '-')).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let fits = |c: char| c.is_ascii_digit() || ":-.+TZ".contains(c);
    marks >= 2 && digits >= 4 && word.chars().all(fits)
}

fn is_hash(word: &str) -> bool {
    if let Some(address) = word.strip_prefix("0x") {
        return address.chars().all(|c| c.is_ascii_hexdigit());
    }
    let hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    word.len() >= HEX_MIN
        && word.chars().all(hex)
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic())
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_hashes_and_directories_do_not_change_a_fingerprint() {
        let same = [
            ("FAILED in 0.12s\n", "FAILED in 3.4s"),
            ("Finished in 1.2 seconds", "Finished in 10 seconds"),
            ("12:00:01.3 error at 0x7ffd00", "13:10:59.0 error at 0x55aa01"),
            ("it fails on top of main at 1f2e3d4c5b6a", "it fails on top of main at aa11bb22cc33"),
            ("/tmp/x1/worktree/a.rs:3: no", "/tmp/y2/worktree/a.rs:3: no"),
            ("\u{1b}[31mred\u{1b}[0m  text", "red text\n\n"),
        ];
        for (first, second) in same {
            let of = |output| failure_fingerprint("tests", output);
            assert_eq!(of(first), of(second), "{first:?} {second:?}");
        }
    }

    #[test]
    fn counts_line_numbers_and_hook_names_change_a_fingerprint() {
        let of = failure_fingerprint;
        assert_ne!(of("tests", "3 failed"), of("tests", "2 failed"));
        assert_ne!(of("tests", "a.rs:3: no"), of("tests", "a.rs:4: no"));
        assert_ne!(of("tests", "nope"), of("lint", "nope"));
        assert_ne!(of("tests", "m"), of("tests", "h"));
    }
}
