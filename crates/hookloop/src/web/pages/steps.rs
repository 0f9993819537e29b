//! The steps of an iteration in words, each with what it printed where this machine has that.

use hookloop_core::excerpt::first_chars;
use hookloop_core::session::JointVerdict;
use hookloop_core::session::LimitDecision;
use hookloop_core::session::StopDecision;
use hookloop_core::session::SubmitVerdict;
use hookloop_core::session::TurnKind;
use hookloop_core::session::TurnResult;
use hookloop_core::session::facts::GatesJudged;
use hookloop_core::session::facts::TaskExit;
use hookloop_core::session::facts::TurnEnded;
use hookloop_core::session::plan::CompactCount;
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::timeline::PartKind;
use hookloop_core::session::timeline::StepContent;
use hookloop_core::session::timeline::TimelinePart;
use hookloop_core::session::timeline::TimelineStep;
use hookloop_hooks::artifacts::Stream;
use hookloop_hooks::artifacts::run_of;
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::value_of;
use super::super::words::{When, class};
use super::Visit;
use crate::cli::session::words::{
    changed_files, duration, reopened_words, short_hash, some, turn_cost,
};

/// Steps of a part that are shown, and characters of a text.
const STEPS_MAX: usize = 100;
const TEXT_CHARS: usize = 4_000;

/// Where a part is, and whether it is unfolded.
pub(super) struct Shown {
    pub(super) key: usize,
    pub(super) is_open: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Line {
    /// How it looks.
    class: &'static str,
    /// What sort of thing it is.
    kind: &'static str,
    name: String,
    said: String,
    /// More of it, which is folded.
    text: Option<String>,
    is_cut: bool,
    took: Option<String>,
    /// What it printed.
    outputs: Vec<Output>,
}

#[derive(Clone, Debug, Serialize)]
struct Output {
    name: &'static str,
    link: String,
}

pub(super) fn part(visit: &Visit<'_>, part: &TimelinePart, shown: Shown) -> Value {
    let skipped = part.steps.len().saturating_sub(STEPS_MAX);
    let steps: Vec<Line> = part.steps.iter().skip(skipped).map(|step| line(visit, step)).collect();
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
        began => When::new(part.began, visit.now), took => duration(took),
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

/// What the gates said last.
fn verdict(part: &TimelinePart) -> Option<Value> {
    let verdict = part.steps.iter().rev().find_map(|step| match &step.what {
        StepContent::Judged(judged) => Some(&judged.verdict),
        _ => None,
    })?;
    let (class, said) = match verdict {
        JointVerdict::Pass => ("good", "passed"),
        JointVerdict::Block => ("bad", "sent back"),
        JointVerdict::Escalate { .. } => ("bad", "asks for a human"),
    };
    Some(context! { class, said })
}

fn line(visit: &Visit<'_>, step: &TimelineStep) -> Line {
    let took = step.duration_ms().filter(|ms| *ms > 0).map(duration);
    let under_way = step.ended.is_none().then(|| "under way".to_owned());
    let line = words(visit, &step.what);
    Line { took: took.or(under_way), ..line }
}

fn words(visit: &Visit<'_>, what: &StepContent) -> Line {
    match what {
        StepContent::Hook(ran) => Line {
            outputs: outputs(visit, ran.artifact.as_deref()),
            ..texted(
                (class(ran.status.name()), "hook", format!("{} at {}", ran.hook_name, ran.point)),
                match ran.attempts {
                    0 | 1 => ran.status.to_string(),
                    attempts => format!("{} after {attempts} tries", ran.status),
                },
                ran.reason.as_deref().unwrap_or_default(),
            )
        },
        StepContent::Turn { kind, attempt, ended } => {
            turn(visit, *kind, *attempt, ended.as_deref())
        }
        StepContent::Piped(piped) => {
            let name = format!("{} at {}", piped.from, piped.point);
            texted(("calm", "for the next prompt", name), String::new(), &piped.text)
        }
        StepContent::ReactionFailed(failed) => {
            let name = format!("{} at {}", failed.hook_name, failed.point);
            let said = match &failed.action_type {
                Some(action) => format!("could not {action}"),
                None => "failed".to_owned(),
            };
            let text =
                [std::slice::from_ref(&failed.error), failed.output_tail.as_slice()].concat();
            texted(("bad", "reaction", name), said, &text.join("\n"))
        }
        StepContent::Decided(decided) => {
            let (class, said) = match decided.decision {
                StopDecision::Complete => ("busy", "claims to be done"),
                StopDecision::Continue => ("calm", "goes on"),
                StopDecision::Escalate => ("bad", "needs a human"),
            };
            texted((class, "stop", decided.by.clone()), said.to_owned(), &decided.reason)
        }
        StepContent::Receipt(receipt) => {
            let tree = receipt
                .tree
                .as_deref()
                .map_or("no tree".to_owned(), |tree| format!("tree {}", short_hash(tree)));
            let code =
                receipt.exit_code.map_or(String::new(), |code| format!(", exit code {code}"));
            let said = format!("{} on {tree}{code}", receipt.status);
            said_by((class(receipt.status.name()), "receipt", receipt.gate.clone()), said)
        }
        StepContent::Judged(judged) => judged_line(judged),
        StepContent::SubmitJudged(judged) => submit_line(&judged.verdict, judged.hook.as_deref()),
        StepContent::Answered(answered) => {
            let said = match answered.answer {
                LimitDecision::Continue => "as often again",
                LimitDecision::Accept => "the work is accepted as it is",
                LimitDecision::Abort => "a human is needed",
            };
            said_by(("bad", "gates said no too often", answered.by.clone()), said.to_owned())
        }
        StepContent::Taken(taken) => {
            said_by(("busy", "task taken", taken.task.to_string()), String::new())
        }
        StepContent::Left(left) => {
            let (class, said) = match left.how {
                TaskExit::Completed => ("good", "completed"),
                TaskExit::Submitted => ("good", "submitted"),
                TaskExit::Returned => ("bad", "goes back"),
                TaskExit::Blocked => ("bad", "needs a human"),
                TaskExit::Released => ("calm", "given back"),
                TaskExit::Lost => ("bad", "is not ours any more"),
            };
            let reason = left.reason.as_deref().unwrap_or_default();
            texted((class, "task left", left.task.to_string()), said.to_owned(), reason)
        }
        StepContent::Short(shortage) => said_by(
            ("bad", "purse", String::new()),
            format!("not enough for another turn: {shortage}"),
        ),
        StepContent::PauseRequested => {
            said_by(("calm", "pause", String::new()), "asked for".to_owned())
        }
        StepContent::StopRequested => {
            said_by(("calm", "stop", String::new()), "requested".to_owned())
        }
        StepContent::Reopened(reopened) => {
            let said = reopened_words(reopened);
            said_by(("calm", "reopened", String::new()), said)
        }
        StepContent::Paused => said_by(("calm", "pause", String::new()), "paused".to_owned()),
        StepContent::Resumed(resumed) => {
            said_by(("calm", "resumed", resumed.machine.clone()), format!("run {}", resumed.run))
        }
    }
}

fn said_by((class, kind, name): (&'static str, &'static str, String), said: String) -> Line {
    Line { class, kind, name, said, ..Line::default() }
}

/// The same with a text: in the line if it is short, else folded.
fn texted(head: (&'static str, &'static str, String), said: String, text: &str) -> Line {
    let text = text.trim();
    let mut line = said_by(head, said);
    match (text.lines().count(), text.chars().count()) {
        (0, _) => {}
        (1, 0..=120) if line.said.is_empty() => line.said = text.to_owned(),
        (1, 0..=120) => line.said = format!("{}: {text}", line.said),
        (_, chars) => {
            line.is_cut = chars > TEXT_CHARS;
            line.text = Some(first_chars(text, TEXT_CHARS));
        }
    }
    line
}

/// The last line of the agent's stderr, where its error does not have it.
fn beside(ended: &TurnEnded) -> String {
    let (TurnResult::Failed { error } | TurnResult::RateLimited { error, .. }) = &ended.result
    else {
        return String::new();
    };
    match &ended.stderr {
        Some(line) if !error.contains(line.as_str()) => format!("; stderr: {line}"),
        _ => String::new(),
    }
}

fn turn(visit: &Visit<'_>, kind: TurnKind, attempt: u32, ended: Option<&TurnEnded>) -> Line {
    let what = match kind {
        TurnKind::Work => "turn",
        TurnKind::Recovery => "recovery turn",
        TurnKind::Delivery => "final turn",
    };
    let again = if attempt > 1 { format!("attempt {attempt}") } else { String::new() };
    let Some(ended) = ended else { return said_by(("busy", what, again), String::new()) };
    let (class, result) = match &ended.result {
        TurnResult::Finished => ("good", String::new()),
        TurnResult::Failed { error } => ("bad", format!("failed: {error}{}", beside(ended))),
        TurnResult::RateLimited { error, .. } => {
            ("bad", format!("rate limit: {error}{}", beside(ended)))
        }
        TurnResult::Cancelled => ("calm", "stopped".to_owned()),
    };
    let usage = match ended.usage.is_none() {
        true => String::new(),
        false => {
            format!("{} tokens, {}", CompactCount(ended.usage.tokens()), turn_cost(ended))
        }
    };
    let changed = changed_files(ended).unwrap_or_default();
    let refused = match ended.refused.as_slice() {
        [] => String::new(),
        refused => format!("was refused {}", some(refused)),
    };
    let said: Vec<String> =
        [result, usage, changed, refused].into_iter().filter(|part| !part.is_empty()).collect();
    let name = [ended.agent.as_str(), &again];
    let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let mut line = said_by((class, what, name.join(", ")), said.join("; "));
    let message = ended.message.trim();
    line.is_cut = message.chars().count() > TEXT_CHARS;
    line.text = (!message.is_empty()).then(|| first_chars(message, TEXT_CHARS));
    line.outputs = outputs(visit, ended.artifact.as_deref());
    line
}

fn judged_line(judged: &GatesJudged) -> Line {
    let (class, said) = match &judged.verdict {
        JointVerdict::Pass if judged.gates == 0 => ("calm", "there are none to pass".to_owned()),
        JointVerdict::Pass => (if judged.is_proof() { "good" } else { "calm" }, judged.to_string()),
        JointVerdict::Block => ("bad", "sent back".to_owned()),
        JointVerdict::Escalate { reason } => ("bad", format!("asks for a human: {reason}")),
    };
    texted((class, "gates", String::new()), said, &judged.failing.join("\n"))
}

fn submit_line(verdict: &SubmitVerdict, hook: Option<&str>) -> Line {
    let (class, said) = match verdict {
        SubmitVerdict::Pass { submission: None } => {
            ("calm", "there is nothing to submit".to_owned())
        }
        SubmitVerdict::Pass { submission: Some(submission) } => {
            ("good", format!("may be submitted: {}", submission.branch))
        }
        SubmitVerdict::Block => ("bad", "not submitted".to_owned()),
        SubmitVerdict::Regate => ("calm", "files changed: the gates are asked again".to_owned()),
        SubmitVerdict::Retry { reason } | SubmitVerdict::Escalate { reason } => {
            ("bad", format!("not submitted: {reason}"))
        }
    };
    said_by((class, "submission", hook.unwrap_or_default().to_owned()), said)
}

/// Links to what a run printed, if this machine has it.
fn outputs(visit: &Visit<'_>, artifact: Option<&str>) -> Vec<Output> {
    let Some((path, run)) = artifact.and_then(|path| Some((path, run_of(path)?))) else {
        return Vec::new();
    };
    let is_here = |stream: &Stream| std::path::Path::new(path).join(stream.name()).exists();
    let link = |stream: Stream| {
        let name = stream.name();
        Output { name, link: visit.address(&format!("output/{run}/{name}")) }
    };
    Stream::ALL.into_iter().filter(is_here).map(link).collect()
}
