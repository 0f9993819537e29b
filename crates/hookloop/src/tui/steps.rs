//! The steps of a session as lines.

use hookloop_core::hook_status::HookStatus;
use hookloop_core::session::timeline::{PartKind, StepContent, TimelinePart, TimelineStep};
use hookloop_core::session::{JointVerdict, Session, SessionLimits, SessionPhase, TurnResult};
use hookloop_core::time::Timestamp;

use crate::present::{self, StepSeverity, StepText, clock};

/// Columns of a part's name: `iteration 100`.
const NAME_WIDTH: usize = 13;

/// A step in a list.
pub(super) struct StepRow {
    pub(super) severity: StepSeverity,
    pub(super) sign: &'static str,
    pub(super) text: String,
    /// The time that the step took, or has taken so far.
    pub(super) took: String,
}

pub(super) fn row(step: &TimelineStep, limits: &SessionLimits, now: Timestamp) -> StepRow {
    let StepText { severity, mut line, .. } = present::step(step, limits);
    if let StepContent::Hook(ran) = &step.what
        && let Some(last) = ran.output_tail.last()
    {
        line.push_str(&format!("  {last}"));
    }
    StepRow { severity, sign: sign(&step.what, severity), text: line, took: took(step, now) }
}

fn sign(what: &StepContent, severity: StepSeverity) -> &'static str {
    match (what, severity) {
        (StepContent::Hook(ran), _) if ran.status.known() == Some(HookStatus::Passed) => "✓",
        (StepContent::Hook(ran), _) if ran.status.known() == Some(HookStatus::Skipped) => "-",
        (StepContent::Turn { ended: None, .. }, StepSeverity::Heading) => "▶",
        (StepContent::Piped(piped), _) if piped.point != "message" => "↳",
        (StepContent::Paused, _) => "‖",
        (_, StepSeverity::Good) => "✓",
        (_, StepSeverity::Bad) => "✗",
        (_, StepSeverity::Heading | StepSeverity::Plain) => "·",
    }
}

fn took(step: &TimelineStep, now: Timestamp) -> String {
    match (&step.what, step.duration_ms()) {
        (StepContent::Hook(_) | StepContent::Turn { .. }, Some(ms)) => present::duration(ms),
        (StepContent::Receipt(receipt), _) => present::duration(receipt.duration_ms),
        (_, Some(_)) => String::new(),
        (_, None) => clock(now.millis_since(step.began)),
    }
}

/// Returns the title of a step above its whole output.
pub(super) fn title(what: &StepContent) -> String {
    match what {
        StepContent::Hook(ran) => format!("{} {}: {}", ran.point, ran.hook_name, ran.status),
        StepContent::Turn { .. } => "the agent's turn".to_owned(),
        StepContent::Piped(piped) => format!("from {} ({})", piped.from, piped.point),
        StepContent::Receipt(receipt) => format!("receipt of {}", receipt.gate),
        StepContent::Judged(_) => "failing checks".to_owned(),
        StepContent::ReactionFailed(failed) => {
            format!("{} {}: failed", failed.point, failed.hook_name)
        }
        _ => String::new(),
    }
}

/// Returns a part for a list: its sign, its name and its duration.
pub(super) fn part(part: &TimelinePart, now: Timestamp) -> (StepSeverity, String) {
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
    (weight, format!("{sign} {name:<NAME_WIDTH$}  {took}"))
}

/// Whether the gates passed last in this part; false if its turn failed.
fn verdict(part: &TimelinePart) -> Option<bool> {
    part.steps.iter().rev().find_map(|step| match &step.what {
        StepContent::Judged(judged) => Some(judged.verdict == JointVerdict::Pass),
        StepContent::Turn { ended: Some(ended), .. } => match ended.result {
            TurnResult::Finished => None,
            _ => Some(false),
        },
        _ => None,
    })
}

/// Returns the current activity, by the session's phase.
pub(super) fn phase(session: &Session) -> &'static str {
    match &session.phase {
        SessionPhase::Starting => "session_start hooks",
        SessionPhase::Settling => "prepares the worktree",
        SessionPhase::Ready => "pre_iteration hooks, then the prompt",
        SessionPhase::Turn(_) => "the agent works",
        SessionPhase::After => "post_iteration hooks",
        SessionPhase::Deciding => "evaluates stop conditions",
        SessionPhase::Gating => "the gates run",
        SessionPhase::Failed { .. } => "on_error hooks",
        SessionPhase::Recovering => "recovery turn",
        SessionPhase::AtRetryLimit => "retry limit reached: waits for a decision",
        SessionPhase::Submitting => "submits the task",
        SessionPhase::Submitted => "after_submit hooks",
        SessionPhase::TaskOver { .. } => "releases the task",
        SessionPhase::Ending => "ends",
        SessionPhase::Paused => "paused",
        SessionPhase::Ended => "ended",
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
    fn ages_of_steps_are_abbreviated() {
        assert_eq!(
            (ago(5_000), ago(7_200_000), ago(i64::MAX)),
            ("5s".into(), "2h".into(), "106751991167d".into())
        );
    }
}
