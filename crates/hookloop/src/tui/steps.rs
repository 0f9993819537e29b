//! The steps of a session as lines.

use hookloop_core::session::timeline::{Part, PartKind, Step, What};
use hookloop_core::session::{Limits, Phase, Session, TurnResult, Verdict};
use hookloop_core::time::Timestamp;

use crate::present::{self, StepSeverity, StepText, clock};

/// A step in a list.
pub(super) struct StepRow {
    pub(super) severity: StepSeverity,
    pub(super) sign: &'static str,
    pub(super) text: String,
    /// The time that the step took, or has taken so far.
    pub(super) took: String,
}

pub(super) fn row(step: &Step, limits: &Limits, now: Timestamp) -> StepRow {
    let StepText { severity, mut line, .. } = present::step(step, limits);
    if let What::Hook(ran) = &step.what
        && let Some(last) = ran.output_tail.last()
    {
        line.push_str(&format!("  {last}"));
    }
    StepRow { severity, sign: sign(&step.what, severity), text: line, took: took(step, now) }
}

fn sign(what: &What, severity: StepSeverity) -> &'static str {
    match (what, severity) {
        (What::Hook(ran), _) if ran.status == "passed" => "✓",
        (What::Hook(ran), _) if ran.status == "skipped" => "-",
        (What::Turn { ended: None, .. }, StepSeverity::Heading) => "▶",
        (What::Piped(piped), _) if piped.point != "message" => "↳",
        (What::Paused, _) => "‖",
        (_, StepSeverity::Good) => "✓",
        (_, StepSeverity::Bad) => "✗",
        (_, StepSeverity::Heading | StepSeverity::Plain) => "·",
    }
}

fn took(step: &Step, now: Timestamp) -> String {
    match (&step.what, step.duration_ms()) {
        (What::Hook(_) | What::Turn { .. }, Some(ms)) => present::duration(ms),
        (What::Receipt(receipt), _) => present::duration(receipt.duration_ms),
        (_, Some(_)) => String::new(),
        (_, None) => clock(now.millis_since(step.began)),
    }
}

/// Returns the title of a step above its whole output.
pub(super) fn title(what: &What) -> String {
    match what {
        What::Hook(ran) => format!("{} {}: {}", ran.point, ran.hook_name, ran.status),
        What::Turn { .. } => "the agent's turn".to_owned(),
        What::Piped(piped) => format!("from {} ({})", piped.from, piped.point),
        What::Receipt(receipt) => format!("receipt of {}", receipt.gate),
        What::Judged(_) => "checks that fail".to_owned(),
        What::ReactionFailed(failed) => format!("{} {}: failed", failed.point, failed.hook_name),
        _ => String::new(),
    }
}

/// Returns a part for a list: its sign, its name and its duration.
pub(super) fn part(part: &Part, now: Timestamp) -> (StepSeverity, String) {
    let name = match part.kind {
        PartKind::Start => "start".to_owned(),
        PartKind::Iteration { number, has_begun: true } => format!("iteration {number}"),
        PartKind::Iteration { number, has_begun: false } => format!("before {number}"),
        PartKind::End => "end".to_owned(),
    };
    let (weight, sign) = match (part.ended, verdict(part)) {
        (None, _) => (StepSeverity::Heading, "▶"),
        (Some(_), Some(true)) => (StepSeverity::Good, "✓"),
        (Some(_), Some(false)) => (StepSeverity::Bad, "✗"),
        (Some(_), None) => (StepSeverity::Plain, "·"),
    };
    let took = match part.ended {
        Some(ended) => short(ended.millis_since(part.began)),
        None => clock(now.millis_since(part.began)),
    };
    (weight, format!("{sign} {name} {took}"))
}

/// Whether the gates passed last in this part; false if its turn failed.
fn verdict(part: &Part) -> Option<bool> {
    part.steps.iter().rev().find_map(|step| match &step.what {
        What::Judged(judged) => Some(judged.verdict == Verdict::Pass),
        What::Turn { ended: Some(ended), .. } => match ended.result {
            TurnResult::Finished => None,
            _ => Some(false),
        },
        _ => None,
    })
}

/// Returns the current activity, by the session's phase.
pub(super) fn phase(session: &Session) -> &'static str {
    match &session.phase {
        Phase::Starting => "session_start hooks",
        Phase::Settling => "makes a place for the task",
        Phase::Ready => "pre_iteration hooks, then the prompt",
        Phase::Turn(_) => "the agent is at work",
        Phase::After => "post_iteration hooks",
        Phase::Deciding => "is it done?",
        Phase::Gating => "the gates are asked",
        Phase::Failed { .. } => "on_error hooks",
        Phase::Recovering => "recovers",
        Phase::AtRetryLimit => "gates said no too often: somebody is asked",
        Phase::Submitting => "submits the task",
        Phase::Submitted => "after_submit hooks",
        Phase::TaskOver { .. } => "leaves the task",
        Phase::Ending => "ends",
        Phase::Paused => "paused",
        Phase::Ended => "over",
    }
}

fn short(ms: i64) -> String {
    let ms = u64::try_from(ms).unwrap_or(0);
    match ms {
        0..60_000 => present::duration(ms),
        _ => clock(i64::try_from(ms).unwrap_or(i64::MAX)),
    }
}

/// Returns an age in its largest unit.
pub(super) fn ago(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        assert_eq!(
            (ago(5_000), ago(7_200_000), ago(i64::MAX)),
            ("5s".into(), "2h".into(), "106751991167d".into())
        );
    }
}
