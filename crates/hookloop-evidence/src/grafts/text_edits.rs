//! Replacements of parts of a text.

use std::ops::Range;

/// Replacements of parts of a text, applied together.
#[derive(Default)]
pub(super) struct TextEdits {
    edits: Vec<(Range<usize>, String)>,
}

impl TextEdits {
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.edits.push((range, text.to_owned()));
    }

    pub(super) fn insert(&mut self, at: usize, text: &str) {
        self.edits.push((at..at, format!("\n{text}\n")));
    }

    /// Returns the text with all replacements. One that begins within another is left out.
    pub(super) fn apply(mut self, text: &str) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(text.len());
        let mut copied = 0;
        for (range, replacement) in self.edits {
            if range.start < copied {
                continue;
            }
            result.push_str(text.get(copied..range.start).unwrap_or_default());
            result.push_str(&replacement);
            copied = range.end;
        }
        result.push_str(text.get(copied..).unwrap_or_default());
        result
    }
}
