//! Collects the checks of reports.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use hookloop_core::checks::{
    CHECKS_MAX, CheckOutcome, CheckRecords, CheckResult, RecordsBuilder, cause, plain,
};

use crate::project_root::ProjectRoot;

/// Bytes of text that a cause is taken from.
pub(crate) const CAUSE_TEXT_MAX: usize = 16 * 1024;
/// Bytes of a title that is part of the names of many checks, such as a file or a suite.
pub(crate) const TITLE_BYTES_MAX: usize = 1024;
/// Stack frames outside the project.
const FOREIGN_FRAMES: [&str; 4] =
    ["node_modules/", "(node:", " node:internal/", "at new Promise (<anonymous>)"];

/// The checks that the readers have found so far.
#[derive(Debug)]
pub(crate) struct ReportSink {
    builder: RecordsBuilder,
    root: ProjectRoot,
    /// The number of checks.
    added: usize,
    /// The number of failed checks.
    failed: u64,
}

impl ReportSink {
    pub(crate) fn new(source: &'static str, root: &Path) -> ReportSink {
        let builder = RecordsBuilder::new(source);
        ReportSink { builder, root: ProjectRoot::new(root), added: 0, failed: 0 }
    }

    /// Adds a check. The cause is shortened, and kept only for a failed check.
    pub(crate) fn add(
        &mut self,
        name: &str,
        outcome: CheckOutcome,
        ms: Option<u64>,
        cause_text: &str,
    ) {
        let mut shortened = String::new();
        if outcome == CheckOutcome::Failed {
            self.failed += 1;
            if self.added < CHECKS_MAX {
                shortened = self.shortened(cause_text);
            }
        }
        self.added += 1;
        let name = self.root.relative(name);
        self.builder.add(&name, outcome, ms, shortened);
    }

    fn shortened(&self, cause_text: &str) -> String {
        let text = plain(clipped(cause_text));
        let text = self.root.relative(&text);
        let is_own = |line: &&str| !FOREIGN_FRAMES.iter().any(|frame| line.contains(frame));
        cause(text.lines().filter(is_own))
    }

    /// Returns a text in which paths below the project are relative.
    pub(crate) fn relative<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.root.relative(text)
    }

    /// Records that something did not build, load or finish.
    pub(crate) fn set_broken(&mut self) {
        self.builder.set_broken();
    }

    /// Returns the number of failed checks so far.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    pub(crate) fn finish(self) -> CheckRecords {
        let mut records = self.builder.finish();
        make_unique(&mut records.checks);
        records
    }
}

/// Gives a further number to ids that are equal because a name looks like a numbered one.
fn make_unique(checks: &mut [CheckResult]) {
    let mut taken = HashSet::with_capacity(checks.len());
    for check in checks {
        let mut unique = check.id.clone();
        for number in 2..CHECKS_MAX + 2 {
            if taken.insert(unique.clone()) {
                break;
            }
            unique = format!("{} #{number}", check.id);
        }
        check.id = unique;
    }
}

/// Returns the beginning of a text, at most [`CAUSE_TEXT_MAX`] bytes.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(CAUSE_TEXT_MAX)]
}

/// Appends to a text that a cause is taken from, up to [`CAUSE_TEXT_MAX`] bytes.
pub(crate) fn append(text: &mut String, more: &str) {
    let room = CAUSE_TEXT_MAX.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

/// Returns the beginning of a title, at most [`TITLE_BYTES_MAX`] bytes.
pub(crate) fn title(text: &str) -> &str {
    &text[..text.floor_char_boundary(TITLE_BYTES_MAX)]
}

/// Returns milliseconds without a fraction, or `None` for a number that is no duration.
pub(crate) fn whole_ms(ms: f64) -> Option<u64> {
    (ms.is_finite() && ms >= 0.0).then(|| ms.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<String> {
        let mut sink = ReportSink::new("tap", Path::new("/project"));
        for name in names {
            sink.add(name, CheckOutcome::Passed, None, "");
        }
        sink.finish().checks.into_iter().map(|check| check.id).collect()
    }

    #[test]
    fn ids_are_unique_even_if_a_name_looks_numbered() {
        assert_eq!(ids(&["a", "a", "a"]), ["a", "a #2", "a #3"]);
        for names in [["a #2", "a", "a"], ["a", "a #2", "a"], ["a", "a", "a #2"]] {
            let ids = ids(&names);
            let different: HashSet<&String> = ids.iter().collect();
            assert_eq!(different.len(), names.len(), "{ids:?}");
        }
    }

    #[test]
    fn a_cause_is_kept_only_for_a_failed_check() {
        let mut sink = ReportSink::new("tap", Path::new("/project"));
        let text =
            "\x1b[31mred\x1b[0m\n    at run (/project/node_modules/a.js:1)\n/project/b.js:2\n";
        sink.add("a", CheckOutcome::Failed, Some(1), text);
        sink.add("b", CheckOutcome::Skipped, None, text);
        assert_eq!(sink.failed(), 1);
        let causes: Vec<String> =
            sink.finish().checks.into_iter().map(|check| check.cause).collect();
        assert_eq!(causes, ["red\nb.js:2", ""]);
    }

    #[test]
    fn text_of_a_cause_is_bounded() {
        let mut text = "é".repeat(CAUSE_TEXT_MAX / 2 - 1);
        append(&mut text, "abé");
        append(&mut text, "more");
        assert_eq!(text.len(), CAUSE_TEXT_MAX);
        assert!(text.ends_with("ab"));
    }

    #[test]
    fn numbers_that_are_no_duration_have_no_milliseconds() {
        for (ms, expected) in [(1.5, Some(2)), (0.0, Some(0)), (-1.0, None), (f64::NAN, None)] {
            assert_eq!(whole_ms(ms), expected);
        }
        assert_eq!(whole_ms(f64::INFINITY), None);
    }
}
