//! The steps of an iteration, with links to their output if this machine has it.

use hookloop_core::session::plan::{CompactCount, CostFigure};
use hookloop_core::session::timeline::{PartKind, StepContent, TimelinePart, TimelineStep};
use hookloop_core::session::{JointVerdict, SessionLimits, TurnEnded, TurnResult};
use hookloop_hooks::artifacts::{ArtifactStream, run_of};
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::value_of;
use super::super::words::{PageTime, class};
use super::PageVisit;
use crate::present::{self, StepSeverity, StepText, duration};

/// Steps of a part, and characters of a text, that are shown.
const STEPS_MAX: usize = 100;
const TEXT_CHARS: usize = 4_000;
/// The longest text that stands in the line of its step.
const LINE_CHARS: usize = 120;

/// The number of a part, and whether it is unfolded.
pub(super) struct PartPlace {
    pub(super) key: usize,
    pub(super) is_open: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
struct StepLine {
    /// The CSS class.
    class: &'static str,
    /// The kind of step.
    kind: &'static str,
    name: String,
    said: String,
    /// A long text, which is folded.
    text: Option<String>,
    is_cut: bool,
    took: Option<String>,
    /// Links to its output.
    outputs: Vec<OutputLink>,
}

#[derive(Clone, Debug, Serialize)]
struct OutputLink {
    name: &'static str,
    link: String,
}

pub(super) fn part(
    visit: &PageVisit<'_>,
    part: &TimelinePart,
    limits: &SessionLimits,
    shown: PartPlace,
) -> Value {
    let skipped = part.steps.len().saturating_sub(STEPS_MAX);
    let steps: Vec<StepLine> =
        part.steps.iter().skip(skipped).map(|step| line(visit, step, limits)).collect();
    let ended = part.ended.unwrap_or(visit.now);
    let took = u64::try_from(ended.millis_since(part.began)).unwrap_or(0);
    let usage = part.turns().fold(hookloop_core::session::Usage::default(), |mut sum, turn| {
        sum.add(turn.usage);
        sum
    });
    let unpriced_turns = part.turns().filter(|turn| turn.has_unknown_cost()).count() as u64;
    let cost = CostFigure { micros: usage.cost_micros, unpriced_turns };
    let cost = match cost.known_micros() {
        Some(_) => cost.to_string(),
        None => "cost unknown".to_owned(),
    };
    context! {
        key => shown.key, is_open => shown.is_open, title => title(part.kind),
        is_over => part.ended.is_some(),
        began => PageTime::new(part.began, visit.now), took => duration(took),
        hooks => part.hooks().count(), turns => part.turns().count(),
        tokens => CompactCount(usage.tokens()).to_string(), cost,
        verdict => verdict(part),
        steps => value_of(steps), dropped => part.steps_dropped + skipped,
    }
}

pub(super) fn title(kind: PartKind) -> String {
    match kind {
        PartKind::Start => "Start".to_owned(),
        PartKind::Iteration { number, has_begun: true } => format!("Iteration {number}"),
        PartKind::Iteration { number, has_begun: false } => format!("Before iteration {number}"),
        PartKind::End => "End".to_owned(),
    }
}

/// Returns the last verdict of the gates.
fn verdict(part: &TimelinePart) -> Option<Value> {
    let verdict = part.steps.iter().rev().find_map(|step| match &step.what {
        StepContent::Judged(judged) => Some(&judged.verdict),
        _ => None,
    })?;
    let (class, said) = match verdict {
        JointVerdict::Pass => ("good", "passed"),
        JointVerdict::Block => ("bad", "sent back"),
        JointVerdict::Escalate { .. } => ("bad", "needs a human"),
    };
    Some(context! { class, said })
}

fn line(visit: &PageVisit<'_>, step: &TimelineStep, limits: &SessionLimits) -> StepLine {
    let took = step.duration_ms().filter(|ms| *ms > 0).map(duration);
    let under_way = step.ended.is_none().then(|| "running".to_owned());
    let line = texts(visit, step, limits);
    StepLine { took: took.or(under_way), ..line }
}

fn texts(visit: &PageVisit<'_>, step: &TimelineStep, limits: &SessionLimits) -> StepLine {
    let StepText { severity, title, name, detail, .. } = present::step(step, limits);
    let line = StepLine {
        class: look(step, severity),
        kind: title,
        name,
        said: detail,
        ..StepLine::default()
    };
    match &step.what {
        StepContent::Hook(ran) => StepLine {
            outputs: outputs(visit, ran.artifact.as_deref()),
            ..folded(line, ran.reason.as_deref().unwrap_or_default())
        },
        StepContent::Turn { attempt, ended, .. } => turn(visit, line, *attempt, ended.as_deref()),
        StepContent::Piped(piped) => match piped.text.trim() {
            text if is_short(text) => StepLine { said: text.to_owned(), ..line },
            text => folded(line, text),
        },
        StepContent::ReactionFailed(failed) => {
            let text =
                [std::slice::from_ref(&failed.error), failed.output_tail.as_slice()].concat();
            folded(line, &text.join("\n"))
        }
        StepContent::Judged(judged) => folded(line, &judged.failing.join("\n")),
        _ => line,
    }
}

/// Returns the class of a step: by its own status if it has one, else by its severity.
fn look(step: &TimelineStep, severity: StepSeverity) -> &'static str {
    match &step.what {
        StepContent::Hook(ran) => class(ran.status.name()),
        StepContent::Receipt(receipt) => class(receipt.status.name()),
        StepContent::Turn { ended: Some(ended), .. } => match ended.result {
            TurnResult::Finished => "good",
            TurnResult::Cancelled => "calm",
            TurnResult::Failed { .. } | TurnResult::RateLimited { .. } => "bad",
        },
        StepContent::Paused => "calm",
        _ => match severity {
            StepSeverity::Heading => "busy",
            StepSeverity::Good => "good",
            StepSeverity::Bad => "bad",
            StepSeverity::Plain => "calm",
        },
    }
}

/// Whether a text fits into the line of its step.
fn is_short(text: &str) -> bool {
    text.lines().count() <= 1 && text.chars().count() <= LINE_CHARS
}

/// Adds a text that is too long for a line, folded.
fn folded(line: StepLine, text: &str) -> StepLine {
    let text = text.trim();
    if is_short(text) {
        return line;
    }
    let is_cut = text.chars().count() > TEXT_CHARS;
    StepLine { is_cut, text: Some(text.chars().take(TEXT_CHARS).collect()), ..line }
}

/// Adds the attempt, the message and the outputs of a turn.
fn turn(
    visit: &PageVisit<'_>,
    line: StepLine,
    attempt: u32,
    ended: Option<&TurnEnded>,
) -> StepLine {
    let again = if attempt > 1 { format!("attempt {attempt}") } else { String::new() };
    let name = [line.name.as_str(), &again];
    let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let name = name.join(", ");
    let Some(ended) = ended else { return StepLine { name, ..line } };
    let message = ended.message.trim();
    StepLine {
        name,
        is_cut: message.chars().count() > TEXT_CHARS,
        text: (!message.is_empty()).then(|| message.chars().take(TEXT_CHARS).collect()),
        outputs: outputs(visit, ended.artifact.as_deref()),
        ..line
    }
}

/// Returns links to the output of a run, if this machine has it.
fn outputs(visit: &PageVisit<'_>, artifact: Option<&str>) -> Vec<OutputLink> {
    let Some((path, run)) = artifact.and_then(|path| Some((path, run_of(path)?))) else {
        return Vec::new();
    };
    let is_here = |stream: &ArtifactStream| std::path::Path::new(path).join(stream.name()).exists();
    let link = |stream: ArtifactStream| {
        let name = stream.name();
        OutputLink { name, link: visit.address(&format!("output/{run}/{name}")) }
    };
    ArtifactStream::ALL.into_iter().filter(is_here).map(link).collect()
}
