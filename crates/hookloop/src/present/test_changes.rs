//! Changed tests for a person: the test in the base beside the test in the work.

use hookloop_core::session::facts::{TestFinding, by_cause};
use serde::Serialize;
use similar::{DiffOp, TextDiff};

use crate::output::{cut, pad};
use crate::sanitize::plain;

/// Maximum changes that are shown in full.
const SHOWN_MAX: usize = 20;
/// The smallest width of two columns.
const WIDTH_MIN: usize = 60;

/// The changes of one cause.
#[derive(Debug, Serialize)]
pub(crate) struct TestChanges {
    /// The kind and the cause of these changes.
    pub(crate) heading: String,
    pub(crate) changes: Vec<TestChange>,
}

/// A change of one test.
#[derive(Debug, Serialize)]
pub(crate) struct TestChange {
    /// The test and its file.
    pub(crate) name: String,
    pub(crate) rows: Vec<SideBySide>,
}

/// A line of the base beside a line of the work.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SideBySide {
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) is_changed: bool,
}

/// Returns the changes, grouped by cause.
pub(crate) fn test_changes(found: &[TestFinding]) -> Vec<TestChanges> {
    let groups = by_cause(found.iter().take(SHOWN_MAX));
    groups.into_iter().filter_map(|group| changes_of(&group)).collect()
}

/// Returns the number of changes that are not shown.
pub(crate) fn left_out(found: &[TestFinding], more: u64) -> u64 {
    found.len().saturating_sub(SHOWN_MAX) as u64 + more
}

fn changes_of(group: &[&TestFinding]) -> Option<TestChanges> {
    let first = group.first()?;
    let cause = match first.cause.as_str() {
        "" => String::new(),
        cause => format!(": {}", plain(cause)),
    };
    let changes = group.iter().map(|finding| {
        let path = finding.path.as_deref().filter(|path| !finding.check.starts_with(path));
        let path = path.map(|path| format!(" ({})", plain(path))).unwrap_or_default();
        let (before, after) = (finding.before.as_deref(), finding.after.as_deref());
        TestChange {
            name: format!("{}{path}", plain(&finding.check)),
            rows: side_by_side(before.unwrap_or_default(), after.unwrap_or_default()),
        }
    });
    Some(TestChanges {
        heading: format!("{}{cause}", first.kind.heading()),
        changes: changes.collect(),
    })
}

fn side_by_side(before: &str, after: &str) -> Vec<SideBySide> {
    let line = |line: &&str| plain(line.trim_end()).to_string();
    let diff = TextDiff::from_lines(before, after);
    let (old, new) = (diff.old_slices(), diff.new_slices());
    let mut rows = Vec::new();
    for op in diff.ops() {
        let is_changed = !matches!(op, DiffOp::Equal { .. });
        let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
        for at in 0..old.len().max(new.len()) {
            let (before, after) = (old.get(at).map(line), new.get(at).map(line));
            rows.push(SideBySide { before, after, is_changed });
        }
    }
    rows
}

impl SideBySide {
    /// Returns the row as text of at most this width. A changed row has marks.
    pub(crate) fn text(&self, width: usize) -> String {
        // Two marks and the rule between the columns.
        let column = (width.max(WIDTH_MIN) - 5) / 2;
        let mark = |line: &Option<String>, mark| match line {
            Some(_) if self.is_changed => mark,
            _ => " ",
        };
        let cell = |line: &Option<String>| fit(line.as_deref().unwrap_or_default(), column);
        let (before, after) = (cell(&self.before), cell(&self.after));
        let text =
            format!("{} {before} │{}{after}", mark(&self.before, "-"), mark(&self.after, "+"));
        text.trim_end().to_owned()
    }
}

/// Returns a line of exactly this width.
fn fit(line: &str, width: usize) -> String {
    pad(&cut(&line.replace('\t', "    "), width), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_stand_beside_each_other() {
        let rows = side_by_side("a\nb = 5\nc\n", "a\nb = 4\nmore\nc\n");
        let text: Vec<String> = rows.iter().map(|row| row.text(0)).collect();
        let expected = [
            "  a                           │ a",
            "- b = 5                       │+b = 4",
            "                              │+more",
            "  c                           │ c",
        ];
        assert_eq!(text, expected);
        let long = SideBySide { before: Some("x".repeat(90)), after: None, is_changed: true };
        assert_eq!(long.text(80).chars().count(), 41);
        assert!(long.text(80).contains("x…"));
    }

    #[test]
    fn changes_of_one_cause_are_one_group() {
        let finding = |check: &str, cause: &str| -> TestFinding {
            serde_json::from_value(serde_json::json!({
                "kind": "gone", "check": check, "cause": cause, "path": "t.js", "before": "x\n",
            }))
            .unwrap()
        };
        let found = [
            finding("a", "no module"),
            finding("b", "the work skips it"),
            finding("c", "no module"),
        ];
        let groups = test_changes(&found);
        let names: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.changes.iter().map(|change| change.name.as_str()).collect())
            .collect();
        assert_eq!(names, [vec!["a (t.js)", "c (t.js)"], vec!["b (t.js)"]]);
        assert_eq!(groups[0].heading, "Gone: no module");
    }
}
