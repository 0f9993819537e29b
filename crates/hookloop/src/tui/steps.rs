//! The steps of a session as lines.

use hookloop_core::event::{EventBody, NoData};
use hookloop_core::hook_status::HookStatus;
use hookloop_core::session::timeline::{PartKind, StepContent, TimelinePart, TimelineStep};
use hookloop_core::session::{
    JointVerdict, Session, SessionLimits, SessionPhase, TurnKind, TurnResult,
};
use hookloop_core::time::Timestamp;

use crate::cli::session::words::{self, Weight};

/// A step in a list.
pub(super) struct Row {
    pub(super) weight: Weight,
    pub(super) sign: &'static str,
    pub(super) text: String,
    /// How long it took, or takes.
    pub(super) took: String,
}

pub(super) fn row(step: &TimelineStep, limits: &SessionLimits, now: Timestamp) -> Row {
    let (weight, sign, text) = match &step.what {
        StepContent::Hook(ran) => {
            let (weight, sign) = match ran.status.known() {
                Some(HookStatus::Passed) => (Weight::Plain, "✓"),
                Some(HookStatus::Skipped) => (Weight::Plain, "-"),
                _ => (Weight::Bad, "✗"),
            };
            let reason = ran.reason.as_deref().and_then(|reason| reason.lines().next());
            let reason = reason.map_or(String::new(), |reason| format!("  {reason}"));
            let last = ran.output_tail.last().map_or(String::new(), |line| format!("  {line}"));
            (weight, sign, format!("{} {} {}{reason}{last}", ran.point, ran.hook_name, ran.status))
        }
        StepContent::Turn { ended: None, kind, .. } => {
            let text = match kind {
                TurnKind::Work => "agent at work",
                TurnKind::Recovery => "agent at work: recovery after the error",
                TurnKind::Delivery => "agent at work: final delivery",
            };
            match step.ended {
                None => (Weight::Heading, "▶", text.to_owned()),
                Some(_) => (Weight::Bad, "✗", "agent: its program ended in the middle".to_owned()),
            }
        }
        StepContent::Receipt(receipt) => {
            let (weight, sign) =
                if receipt.is_green() { (Weight::Good, "✓") } else { (Weight::Bad, "✗") };
            let tree = receipt.tree.as_deref().map_or("no git", words::short_hash);
            (weight, sign, format!("receipt {} {} on {tree}", receipt.gate, receipt.status))
        }
        StepContent::Piped(piped) if piped.point != "message" => {
            let lines = piped.text.lines().count();
            let lines = words::counted(u32::try_from(lines).unwrap_or(u32::MAX), "line", "lines");
            (
                Weight::Plain,
                "↳",
                format!("{} {} for the next prompt: {lines}", piped.point, piped.from),
            )
        }
        StepContent::Paused => (Weight::Heading, "‖", "paused".to_owned()),
        other => {
            let line = body(other).and_then(|body| words::line(&body, limits));
            let (weight, text) = line.unwrap_or((Weight::Plain, String::new()));
            let sign = match weight {
                Weight::Good => "✓",
                Weight::Bad => "✗",
                Weight::Heading | Weight::Plain => "·",
            };
            (weight, sign, text)
        }
    };
    let took = match (&step.what, step.duration_ms()) {
        (StepContent::Hook(_) | StepContent::Turn { .. }, Some(ms)) => words::duration(ms),
        (StepContent::Receipt(receipt), _) => words::duration(receipt.duration_ms),
        (_, Some(_)) => String::new(),
        (_, None) => clock(now.millis_since(step.began)),
    };
    Row { weight, sign, text, took }
}

/// The event that a step was made of, which has words already.
fn body(what: &StepContent) -> Option<EventBody> {
    Some(match what {
        StepContent::Turn { ended: Some(ended), .. } => EventBody::TurnEnded((**ended).clone()),
        StepContent::Piped(piped) => EventBody::OutputPiped(piped.clone()),
        StepContent::ReactionFailed(failed) => EventBody::ReactionFailed(failed.clone()),
        StepContent::Decided(decided) => EventBody::StopDecided(decided.clone()),
        StepContent::Judged(judged) => EventBody::GatesJudged(judged.clone()),
        StepContent::SubmitJudged(judged) => EventBody::SubmitJudged((**judged).clone()),
        StepContent::Answered(answered) => EventBody::RetryLimitAnswered(answered.clone()),
        StepContent::Taken(taken) => EventBody::TaskTaken(taken.clone()),
        StepContent::Left(left) => EventBody::TaskLeft(left.clone()),
        StepContent::Short(shortage) => EventBody::PurseExhausted(*shortage),
        StepContent::PauseRequested => EventBody::PauseRequested(NoData {}),
        StepContent::StopRequested => EventBody::StopRequested(NoData {}),
        StepContent::Reopened(reopened) => EventBody::SessionReopened(reopened.clone()),
        StepContent::Resumed(resumed) => EventBody::SessionResumed(resumed.clone()),
        StepContent::Hook(_)
        | StepContent::Receipt(_)
        | StepContent::Turn { .. }
        | StepContent::Paused => return None,
    })
}

/// What a step is called above its whole output.
pub(super) fn title(what: &StepContent) -> String {
    match what {
        StepContent::Hook(ran) => format!("{} {}: {}", ran.point, ran.hook_name, ran.status),
        StepContent::Turn { .. } => "the agent's turn".to_owned(),
        StepContent::Piped(piped) => format!("from {} ({})", piped.from, piped.point),
        StepContent::Receipt(receipt) => format!("receipt of {}", receipt.gate),
        StepContent::Judged(_) => "checks that fail".to_owned(),
        StepContent::ReactionFailed(failed) => {
            format!("{} {}: failed", failed.point, failed.hook_name)
        }
        _ => String::new(),
    }
}

/// A part in a list: its sign, its name, and how it went.
pub(super) fn part(part: &TimelinePart, now: Timestamp) -> (Weight, String) {
    let name = match part.kind {
        PartKind::Start => "start".to_owned(),
        PartKind::Iteration { number, has_begun: true } => format!("iteration {number}"),
        PartKind::Iteration { number, has_begun: false } => format!("before {number}"),
        PartKind::End => "end".to_owned(),
    };
    let (weight, sign) = match (part.ended, verdict(part)) {
        (None, _) => (Weight::Heading, "▶"),
        (Some(_), Some(true)) => (Weight::Good, "✓"),
        (Some(_), Some(false)) => (Weight::Bad, "✗"),
        (Some(_), None) => (Weight::Plain, "·"),
    };
    let took = match part.ended {
        Some(ended) => short(ended.millis_since(part.began)),
        None => clock(now.millis_since(part.began)),
    };
    (weight, format!("{sign} {name} {took}"))
}

/// What the gates said in it last, or whether its turn failed.
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

/// What goes on now, by the session's own state.
pub(super) fn phase(session: &Session) -> &'static str {
    match &session.phase {
        SessionPhase::Starting => "session_start hooks",
        SessionPhase::Settling => "makes a place for the task",
        SessionPhase::Ready => "pre_iteration hooks, then the prompt",
        SessionPhase::Turn(_) => "the agent is at work",
        SessionPhase::After => "post_iteration hooks",
        SessionPhase::Deciding => "is it done?",
        SessionPhase::Gating => "the gates are asked",
        SessionPhase::Failed { .. } => "on_error hooks",
        SessionPhase::Recovering => "recovers",
        SessionPhase::AtRetryLimit => "gates said no too often: somebody is asked",
        SessionPhase::Submitting => "submits the task",
        SessionPhase::Submitted => "after_submit hooks",
        SessionPhase::TaskOver { .. } => "leaves the task",
        SessionPhase::Ending => "ends",
        SessionPhase::Paused => "paused",
        SessionPhase::Ended => "over",
    }
}

/// Time that goes on, in whole seconds.
pub(crate) fn clock(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

fn short(ms: i64) -> String {
    let ms = u64::try_from(ms).unwrap_or(0);
    match ms {
        0..60_000 => words::duration(ms),
        _ => clock(i64::try_from(ms).unwrap_or(i64::MAX)),
    }
}

/// How long ago something was.
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
    fn time_is_short_and_never_negative() {
        assert_eq!(
            (clock(-5), clock(59_999), clock(61_000)),
            ("0 s".into(), "59 s".into(), "1:01".into())
        );
        assert_eq!(clock(3_601_000), "1:00:01");
        assert_eq!(
            (ago(5_000), ago(7_200_000), ago(i64::MAX)),
            ("5s".into(), "2h".into(), "106751991167d".into())
        );
    }
}
