//! The feedback for an agent about a gate that failed.
//!
//! The feedback begins with the changes since the last run, which show progress. The causes of the first checks
//! follow, then as much output as fits.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};

use crate::checks::{self, CheckOutcome, CheckRecords, FAILING_MAX, Report};
use crate::excerpt::{ExcerptRules, LeftOut, head_and_tail};

/// A reason gets at most one part in this many of the room.
///
/// The same share applies to fixed checks, checks that still fail, new checks, and all causes
/// together.
const PARTS: usize = 6;
/// Lists of checks that no longer fail, of which records can have several.
const GONE_LISTS: usize = 3;
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
    /// The numbers of checks that still fail, were fixed and are new, if both runs are understood. With records,
    /// only checks that passed count as fixed.
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

/// A gate that failed.
#[derive(Clone, Copy, Debug)]
pub struct GateFailure<'a> {
    pub gate: &'a str,
    pub reason: Option<&'a str>,
    pub output: GateOutput<'a>,
    /// The checks of the run. Without records, the failing checks are read from the output.
    pub records: Option<&'a CheckRecords>,
    /// The checks that failed in the run before, as [`Feedback::failing`] has them.
    pub before: Option<&'a BTreeSet<String>>,
}

/// Returns feedback of at most `max_bytes` about a gate that failed.
pub fn feedback(failure: &GateFailure<'_>, max_bytes: usize) -> Feedback {
    let GateFailure { gate, reason, output, records, before } = *failure;
    let mut text = FeedbackRoom { text: String::new(), max: max_bytes };
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    let report = if records.is_some() { None } else { checks::read(output.text) };
    let changes = match (records, &report) {
        (Some(records), _) => Some(NamedChanges::of_records(gate, before, records)),
        (None, Some(report)) => Some(NamedChanges::of_report(gate, before, report)),
        (None, None) => None,
    };
    text.begin(gate, reason, changes.as_ref());
    let mut failing = BTreeSet::new();
    let mut counted = None;
    if let Some(changes) = &changes {
        text.changes(changes, before.is_some());
        failing = changes.failing().map(|check| prefixed(gate, check.name)).collect();
        counted = before.and_then(|_| changes.counted());
    }
    if failing.is_empty() {
        failing.insert(gate.to_owned());
    }
    text.output(output);
    Feedback { text: text.finish(), failing, changes: counted }
}

fn prefixed(gate: &str, check: &str) -> String {
    format!("{gate}: {check}")
}

fn names<'a>(checks: &[NamedFailure<'a>]) -> Vec<&'a str> {
    checks.iter().map(|check| check.name).collect()
}

/// A failing check of this run.
#[derive(Clone, Copy)]
struct NamedFailure<'a> {
    name: &'a str,
    cause: &'a str,
}

/// The checks of a run, compared with those that failed in the run before.
#[derive(Default)]
struct NamedChanges<'a> {
    source: &'a str,
    still: Vec<NamedFailure<'a>>,
    new: Vec<NamedFailure<'a>>,
    /// The number of failing checks beyond these.
    more: usize,
    fixed: Vec<&'a str>,
    /// Checks without a line. A check that passed may have none.
    fixed_or_not_run: Vec<&'a str>,
    not_run: Vec<&'a str>,
    skipped: Vec<&'a str>,
    unknown: Vec<&'a str>,
    /// Whether a missing line counts as fixed, because the output names only failures.
    is_report: bool,
}

impl<'a> NamedChanges<'a> {
    /// Compares the failing checks of an output.
    fn of_report(
        gate: &str,
        before: Option<&'a BTreeSet<String>>,
        report: &'a Report,
    ) -> NamedChanges<'a> {
        let failing = report.failing.iter().map(|check| (check.name.as_str(), &check.cause));
        let mut changes = NamedChanges::of_failing(gate, before, failing);
        changes.source = report.runner;
        changes.more += report.more;
        changes.is_report = true;
        let gone = changes.gone(gate, before);
        if report.is_broken || changes.more > 0 {
            changes.unknown = gone;
        } else {
            changes.fixed_or_not_run = gone;
        }
        changes
    }

    /// Compares all checks of a run.
    fn of_records(
        gate: &str,
        before: Option<&'a BTreeSet<String>>,
        records: &'a CheckRecords,
    ) -> NamedChanges<'a> {
        let failing = records.failing().map(|check| (check.id.as_str(), &check.cause));
        let mut changes = NamedChanges::of_failing(gate, before, failing);
        changes.source = records.source;
        let listed = changes.failing().count() as u64;
        let more = records.counts.failed.saturating_sub(listed);
        changes.more = changes.more.max(usize::try_from(more).unwrap_or(usize::MAX));
        let outcomes: HashMap<&str, CheckOutcome> =
            records.checks.iter().map(|check| (check.id.as_str(), check.outcome)).collect();
        for name in changes.gone(gate, before) {
            let list = match outcomes.get(name) {
                Some(CheckOutcome::Passed) => &mut changes.fixed,
                Some(CheckOutcome::Skipped) => &mut changes.skipped,
                // The list of failing checks has a limit.
                Some(CheckOutcome::Failed) => &mut changes.unknown,
                None if records.is_complete => &mut changes.not_run,
                None if records.is_broken || changes.more > 0 => &mut changes.unknown,
                None => &mut changes.fixed_or_not_run,
            };
            list.push(name);
        }
        changes
    }

    /// Separates checks that still fail from new ones, at most [`FAILING_MAX`]. Those that still fail come first,
    /// so that none of them is missing.
    fn of_failing(
        gate: &str,
        before: Option<&BTreeSet<String>>,
        failing: impl Iterator<Item = (&'a str, &'a String)>,
    ) -> NamedChanges<'a> {
        let is_old = |check: &NamedFailure<'_>| {
            before.is_some_and(|before| before.contains(&prefixed(gate, check.name)))
        };
        let failing = failing.map(|(name, cause)| NamedFailure { name, cause });
        let (mut still, mut new): (Vec<_>, Vec<_>) = failing.partition(is_old);
        let all = still.len() + new.len();
        still.truncate(FAILING_MAX);
        new.truncate(FAILING_MAX - still.len());
        let more = all - still.len() - new.len();
        NamedChanges { still, new, more, ..NamedChanges::default() }
    }

    /// Returns the checks that failed before and are not among those that still fail.
    fn gone(&self, gate: &str, before: Option<&'a BTreeSet<String>>) -> Vec<&'a str> {
        let listed: BTreeSet<&str> = self.still.iter().map(|check| check.name).collect();
        let prefix = prefixed(gate, "");
        // The name of the gate itself stands for an output that was not understood.
        let old = before.into_iter().flatten().filter_map(|name| name.strip_prefix(&prefix));
        old.filter(|name| !listed.contains(name)).collect()
    }

    fn failing(&self) -> impl Iterator<Item = &NamedFailure<'a>> {
        self.still.iter().chain(&self.new)
    }

    /// Returns the number of failing checks.
    fn failed(&self) -> usize {
        self.failing().count().saturating_add(self.more)
    }

    /// Returns the counts, or `None` if the outcome of a check is not known.
    fn counted(&self) -> Option<CheckChanges> {
        let is_clear = self.is_report || self.fixed_or_not_run.is_empty();
        let is_known = is_clear && self.unknown.is_empty() && self.more == 0;
        let fixed = self.fixed.len() + self.fixed_or_not_run.len();
        is_known.then_some(CheckChanges { still: self.still.len(), fixed, new: self.new.len() })
    }
}

/// A text with a maximum length.
struct FeedbackRoom {
    text: String,
    max: usize,
}

impl FeedbackRoom {
    fn begin(&mut self, gate: &str, reason: Option<&str>, changes: Option<&NamedChanges<'_>>) {
        let what = match changes.map(|changes| (changes.failed(), changes.source)) {
            Some((0, _)) => "it did not pass, although no check failed".to_owned(),
            Some((1, source)) => format!("1 check fails ({source})"),
            Some((count, source)) => format!("{count} checks fail ({source})"),
            None => "it did not pass".to_owned(),
        };
        self.add(&format!("{}: {what}\n", cut(gate, self.part())));
        if let Some(reason) = reason {
            self.add(&format!("{}\n", cut(reason, self.part())));
        }
    }

    /// Adds the checks by their change, then causes.
    fn changes(&mut self, changes: &NamedChanges<'_>, is_compared: bool) {
        let part = self.part();
        // An output has one list of checks that no longer fail. Lists of records share its part.
        let gone = if changes.is_report { part } else { part / GONE_LISTS };
        self.list("Fixed since the run before:", &changes.fixed, gone);
        self.list(
            "Fixed since the run before, or not run this time:",
            &changes.fixed_or_not_run,
            gone,
        );
        self.list("Not run this time:", &changes.not_run, gone);
        self.list("Skipped now, failed before:", &changes.skipped, gone);
        self.list("Not known, since not everything ran or is listed:", &changes.unknown, gone);
        self.list("Still failing:", &names(&changes.still), part);
        self.list(if is_compared { "New:" } else { "Failing:" }, &names(&changes.new), part);
        if changes.failing().next().is_some() {
            self.more(changes.more);
        }
        self.causes(changes.new.iter().chain(&changes.still));
    }

    /// Adds a list of names, as many as fit `part`.
    fn list(&mut self, title: &str, names: &[&str], part: usize) {
        if names.is_empty() {
            return;
        }
        let mut list = format!("\n{title}\n");
        for (at, name) in names.iter().enumerate() {
            if list.len() + name.len() > part {
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
    fn causes<'a>(&mut self, checks: impl Iterator<Item = &'a NamedFailure<'a>>) {
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
