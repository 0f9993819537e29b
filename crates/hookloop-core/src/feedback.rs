//! The feedback for an agent about a gate that failed.
//!
//! The feedback begins with the changes since the last run, which show progress. The causes of the first checks
//! follow, then as much output as fits.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use crate::checks::{self, Check, Report};
use crate::excerpt::{ExcerptRules, LeftOut, head_and_tail};

/// A reason gets at most one part in this many of the room.
///
/// The same share applies to fixed checks, checks that still fail, new checks, and all causes
/// together.
const PARTS: usize = 6;
/// Least room in which output is useful.
const OUTPUT_MIN: usize = 100;
/// The beginning of an output that does not fit gets one part in this many. The end matters more.
const HEAD_PARTS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The text for the agent.
    pub text: String,
    /// The failing checks as `gate: check`, or the gate's name if its output is not understood.
    pub failing: BTreeSet<String>,
    /// The numbers of checks that still fail, were fixed and are new, if both runs are understood.
    pub changes: Option<CheckChanges>,
}

/// The numbers of checks that changed between two runs of gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckChanges {
    pub still: usize,
    pub fixed: usize,
    pub new: usize,
}

impl CheckChanges {
    #[must_use]
    pub fn plus(self, other: CheckChanges) -> CheckChanges {
        CheckChanges {
            still: self.still + other.still,
            fixed: self.fixed + other.fixed,
            new: self.new + other.new,
        }
    }
}

impl fmt::Display for CheckChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckChanges { still, fixed, new } = self;
        let verb = |count: usize, one: &'static str, many: &'static str| match count {
            1 => one,
            _ => many,
        };
        write!(
            f,
            "{still} {}, {fixed} {} fixed, {new} {} new",
            verb(*still, "check still fails", "checks still fail"),
            verb(*fixed, "was", "were"),
            verb(*new, "is", "are"),
        )
    }
}

/// The kept output of a gate.
#[derive(Clone, Copy, Debug, Default)]
pub struct GateOutput<'a> {
    pub text: &'a str,
    /// The parts of the text that a note replaces.
    pub left_out: &'a [LeftOut],
}

impl<'a> From<&'a str> for GateOutput<'a> {
    fn from(text: &'a str) -> GateOutput<'a> {
        GateOutput { text, left_out: &[] }
    }
}

impl<'a> From<&'a String> for GateOutput<'a> {
    fn from(text: &'a String) -> GateOutput<'a> {
        GateOutput::from(text.as_str())
    }
}

/// Returns feedback of at most `max_bytes` about a gate's run. `before` holds the checks that failed in the run
/// before.
pub fn feedback<'a>(
    gate: &str,
    reason: Option<&str>,
    output: impl Into<GateOutput<'a>>,
    before: Option<&BTreeSet<String>>,
    max_bytes: usize,
) -> Feedback {
    let mut text = FeedbackRoom { text: String::new(), max: max_bytes };
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    let output = output.into();
    let report = checks::read(output.text);
    let failing = match &report {
        Some(report) => report.failing.iter().map(|check| prefixed(gate, &check.name)).collect(),
        None => BTreeSet::from([gate.to_owned()]),
    };
    text.begin(gate, reason, report.as_ref());
    let mut counted = None;
    if let Some(report) = &report {
        let changes = NamedChanges::between(gate, before, report);
        text.list("Fixed since the run before, or not run this time:", &changes.fixed);
        text.list("Not known, since not everything ran or is listed:", &changes.unknown);
        text.list("Still failing:", &names(&changes.still));
        text.list(if before.is_some() { "New:" } else { "Failing:" }, &names(&changes.new));
        text.more(report.more);
        text.causes(changes.new.iter().chain(&changes.still));
        let is_known = before.is_some() && changes.unknown.is_empty() && report.more == 0;
        let (still, fixed, new) = (changes.still.len(), changes.fixed.len(), changes.new.len());
        counted = is_known.then_some(CheckChanges { still, fixed, new });
    }
    text.output(output);
    Feedback { text: text.finish(), failing, changes: counted }
}

fn prefixed(gate: &str, check: &str) -> String {
    format!("{gate}: {check}")
}

fn names<'a>(checks: &[&'a Check]) -> Vec<&'a str> {
    checks.iter().map(|check| check.name.as_str()).collect()
}

/// The checks that still fail, are fixed, or are new.
#[derive(Default)]
struct NamedChanges<'a> {
    fixed: Vec<&'a str>,
    unknown: Vec<&'a str>,
    still: Vec<&'a Check>,
    new: Vec<&'a Check>,
}

impl<'a> NamedChanges<'a> {
    fn between(
        gate: &str,
        before: Option<&'a BTreeSet<String>>,
        report: &'a Report,
    ) -> NamedChanges<'a> {
        let Some(before) = before else {
            return NamedChanges {
                new: report.failing.iter().collect(),
                ..NamedChanges::default()
            };
        };
        let is_old = |check: &&Check| before.contains(&prefixed(gate, &check.name));
        let (still, new): (Vec<&Check>, Vec<&Check>) = report.failing.iter().partition(is_old);
        let listed: BTreeSet<&str> = still.iter().map(|check| check.name.as_str()).collect();
        let prefix = prefixed(gate, "");
        // The name of the gate itself stands for an output that was not understood.
        let old = before.iter().filter_map(|name| name.strip_prefix(&prefix));
        let gone: Vec<&str> = old.filter(|name| !listed.contains(name)).collect();
        let (fixed, unknown) = match report.is_broken || report.more > 0 {
            true => (Vec::new(), gone),
            false => (gone, Vec::new()),
        };
        NamedChanges { fixed, unknown, still, new }
    }
}

/// A text with a maximum length.
struct FeedbackRoom {
    text: String,
    max: usize,
}

impl FeedbackRoom {
    fn begin(&mut self, gate: &str, reason: Option<&str>, report: Option<&Report>) {
        let what = match report {
            Some(report) => match report.failing.len() + report.more {
                1 => format!("1 check fails ({})", report.runner),
                count => format!("{count} checks fail ({})", report.runner),
            },
            None => "it did not pass".to_owned(),
        };
        self.add(&format!("{}: {what}\n", cut(gate, self.part())));
        if let Some(reason) = reason {
            self.add(&format!("{}\n", cut(reason, self.part())));
        }
    }

    /// Adds a list of names, as many as its part of the room allows.
    fn list(&mut self, title: &str, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let mut list = format!("\n{title}\n");
        for (at, name) in names.iter().enumerate() {
            if list.len() + name.len() > self.part() {
                let _ = writeln!(list, "- … and {} more", names.len() - at);
                break;
            }
            let _ = writeln!(list, "- {name}");
        }
        self.add(&list);
    }

    fn more(&mut self, count: usize) {
        if count > 0 {
            self.add(&format!("\n{count} more fail that are not listed.\n"));
        }
    }

    /// Adds the first causes, whole ones except for the very first.
    fn causes<'a>(&mut self, checks: impl Iterator<Item = &'a &'a Check>) {
        let mut causes = String::new();
        for check in checks.filter(|check| !check.cause.is_empty()) {
            let indented = check.cause.replace('\n', "\n    ");
            let cause = format!("\n{}\n    {indented}\n", check.name);
            if causes.is_empty() {
                causes = cut(&cause, self.part());
            } else if causes.len() + cause.len() <= self.part() {
                causes.push_str(&cause);
            } else {
                break;
            }
        }
        if !causes.is_empty() {
            self.add(&format!("\nWhy:\n{causes}"));
        }
    }

    /// Adds the output, or its beginning and its end.
    fn output(&mut self, printed: GateOutput<'_>) {
        let output = checks::plain(printed.text);
        let output = output.trim();
        const TITLE: &str = "\nOutput:\n";
        let room = self.left().saturating_sub(TITLE.len());
        if output.is_empty() || output.len() > room && room < OUTPUT_MIN {
            return;
        }
        self.add(TITLE);
        let earlier = printed.left_out;
        self.add(&head_and_tail(
            output,
            ExcerptRules { max: room, head_parts: HEAD_PARTS, earlier },
        ));
    }

    fn part(&self) -> usize {
        self.max / PARTS
    }

    fn left(&self) -> usize {
        self.max.saturating_sub(self.text.len())
    }

    fn add(&mut self, text: &str) {
        let end = text.floor_char_boundary(self.left());
        self.text.push_str(&text[..end]);
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

/// Returns a text of at most `max` bytes, with the number of missing bytes if it fits.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    head_and_tail(text, ExcerptRules { max, head_parts: HEAD_PARTS, earlier: &[] })
}

#[cfg(test)]
mod tests;
