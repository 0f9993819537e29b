//! The YAML after a test point. Only its top-level keys are read, so no YAML parser is needed.

use crate::sink::{append, whole_ms};

/// Keys whose values do not help to find the cause.
const DROPPED_KEYS: [&str; 9] =
    ["duration_ms", "type", "failureType", "code", "exitCode", "signal", "name", "stack", "source"];
/// Keys with the cause in words.
const MESSAGE_KEYS: [&str; 2] = ["message", "error"];

/// The lines of a YAML block that is open.
#[derive(Debug)]
pub(super) struct YamlBlock {
    /// The indentation of `---` and `...`.
    pub(super) indent: usize,
    text: String,
}

/// The values of a YAML block.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TapDiagnostics {
    pub(super) ms: Option<u64>,
    pub(super) cause: String,
}

impl YamlBlock {
    pub(super) fn new(indent: usize) -> YamlBlock {
        YamlBlock { indent, text: String::new() }
    }

    pub(super) fn push(&mut self, line: &str) {
        append(&mut self.text, line);
        append(&mut self.text, "\n");
    }

    /// Returns the duration, and the message before the other values.
    pub(super) fn diagnostics(&self) -> TapDiagnostics {
        let indent = |line: &str| line.bytes().take_while(u8::is_ascii_whitespace).count();
        let lines = || self.text.lines().filter(|line| !line.trim().is_empty());
        let base = lines().map(indent).min().unwrap_or(0);
        let mut found = TapDiagnostics::default();
        let mut details = String::new();
        let mut key = "";
        for line in lines() {
            let mut value = line.trim();
            if indent(line) == base
                && let Some((name, after)) = line.trim().split_once(':')
            {
                key = name;
                value = unquoted(after.trim());
                if key == "duration_ms" {
                    found.ms = value.parse().ok().and_then(whole_ms);
                }
            }
            if MESSAGE_KEYS.contains(&key) {
                if !matches!(value, "" | "|" | "|-" | "|+" | ">" | ">-") {
                    append(&mut found.cause, value);
                    append(&mut found.cause, "\n");
                }
            } else if !DROPPED_KEYS.contains(&key) {
                append(&mut details, &line[base..]);
                append(&mut details, "\n");
            }
        }
        append(&mut found.cause, &details);
        found
    }
}

/// Returns a value without its quotes.
fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], ms: Option<u64>, cause: &str) {
        let mut block = YamlBlock::new(2);
        lines.iter().for_each(|line| block.push(line));
        assert_eq!(block.diagnostics(), TapDiagnostics { ms, cause: cause.to_owned() });
    }

    #[test]
    fn the_message_comes_before_other_values() {
        check(
            &[
                "  duration_ms: 1.6",
                "  at: 'a.js:1'",
                "  message: 'it failed'",
                "  stack: |-",
                "    at x",
                "    at y",
                "  expected: 2",
            ],
            Some(2),
            "it failed\nat: 'a.js:1'\nexpected: 2\n",
        );
    }

    #[test]
    fn blocks_and_maps_of_an_error_are_kept() {
        check(&["  error: |-", "    one", "", "      'two' is 'x'"], None, "one\n'two' is 'x'\n");
        check(
            &["  error:", "      name: \"E\"", "      message: \"m\""],
            None,
            "name: \"E\"\nmessage: \"m\"\n",
        );
    }

    #[test]
    fn strange_lines_are_no_error() {
        check(&[], None, "");
        check(&["text", "  more"], None, "text\n  more\n");
        check(&["duration_ms: x"], None, "");
        check(&["  é: 1", " ü"], None, " é: 1\nü\n");
        check(&["  a: 1", "\u{3000}b"], None, "  a: 1\n\u{3000}b\n");
    }
}
