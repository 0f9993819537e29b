//! Rules: gates that check files instead of running a command.

use hookloop_core::point::{Point, PointKind};
use hookloop_core::rule::{CoverageRule, DiffRule, Rule, TextRule};
use serde_saphyr::Location;

use super::hook_entry::{CoverageEntry, DiffEntry, HookEntry, PatternEntry};
use super::values::is_inside;
use crate::patterns::{self, glob};
use crate::yaml::ConfigComplaint;

/// Reads the rule of an entry, if it has one instead of a command.
pub(crate) fn rule(
    point: &Point,
    entry: &mut HookEntry,
    at: Location,
) -> Result<Option<Rule>, ConfigComplaint> {
    let complain = |message: String| Err(ConfigComplaint::new(at, message));
    let rule = if let Some(path) = entry.file.take() {
        Rule::File(path)
    } else if let Some(path) = entry.changed.take() {
        Rule::Changed(path)
    } else if let Some(pattern) = entry.pattern.take() {
        let PatternEntry { path, text, absent } = pattern;
        if let Err(error) = patterns::pattern(&text) {
            return complain(format!("`text`: {error}"));
        }
        Rule::Pattern(TextRule { path, text, absent })
    } else if let Some(CoverageEntry { report, at_least }) = entry.coverage.take() {
        if !(0.0..=100.0).contains(&at_least) {
            return complain("`at_least` is a percentage, from 0 to 100".to_owned());
        }
        Rule::Coverage(CoverageRule { report, at_least: (at_least * 100.0).round() as u32 })
    } else if let Some(diff) = entry.diff.take() {
        let DiffEntry { min_files, max_files, max_lines, only } = diff;
        Rule::Diff(DiffRule { max_files, max_lines, min_files, only })
    } else {
        return Ok(None);
    };
    if point.kind() != PointKind::Gate {
        return complain(format!("a rule says yes or no, and `{point}` is not a gate"));
    }
    for path in paths(&rule) {
        if !is_inside(path) {
            return complain(format!("`{path}` leads out of the project"));
        }
        if let Err(error) = glob(path) {
            return complain(error);
        }
    }
    Ok(Some(rule))
}

fn paths(rule: &Rule) -> Vec<&str> {
    match rule {
        Rule::File(path) | Rule::Changed(path) => vec![path],
        Rule::Pattern(pattern) => vec![&pattern.path],
        Rule::Coverage(coverage) => vec![&coverage.report],
        Rule::Diff(diff) => diff.only.iter().map(String::as_str).collect(),
    }
}
