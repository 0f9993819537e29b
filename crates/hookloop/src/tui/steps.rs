//! The steps of a session as lines.

use hookloop_core::event::{Empty, EventBody};
use hookloop_core::session::timeline::{Part, PartKind, Step, What};
use hookloop_core::session::{Limits, Phase, Session, TurnKind, TurnResult, Verdict};
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

pub(super) fn row(step: &Step, limits: &Limits, now: Timestamp) -> Row {
    let (weight, sign, text) = match &step.what {
        What::Hook(ran) => {
            let (weight, sign) = match ran.status.as_str() {
                "passed" => (Weight::Plain, "✓"),
                "skipped" => (Weight::Plain, "-"),
                _ => (Weight::Bad, "✗"),
            };
            let reason = ran.reason.as_deref().and_then(|reason| reason.lines().next());
            let reason = reason.map_or(String::new(), |reason| format!("  {reason}"));
            let last = ran.output_tail.last().map_or(String::new(), |line| format!("  {line}"));
            (weight, sign, format!("{} {} {}{reason}{last}", ran.point, ran.hook_name, ran.status))
        }
        What::Turn { ended: None, kind, .. } => {
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
        What::Receipt(receipt) => {
            let (weight, sign) =
                if receipt.is_green() { (Weight::Good, "✓") } else { (Weight::Bad, "✗") };
            let tree = receipt.tree.as_deref().map_or("no git", words::short_hash);
            (weight, sign, format!("receipt {} {} on {tree}", receipt.gate, receipt.status))
        }
        What::Piped(piped) if piped.point != "message" => {
            let lines = piped.text.lines().count();
            let lines = words::counted(u32::try_from(lines).unwrap_or(u32::MAX), "line", "lines");
            (
                Weight::Plain,
                "↳",
                format!("{} {} for the next prompt: {lines}", piped.point, piped.from),
            )
        }
        What::Paused => (Weight::Heading, "‖", "paused".to_owned()),
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
        (What::Hook(_) | What::Turn { .. }, Some(ms)) => words::duration(ms),
        (What::Receipt(receipt), _) => words::duration(receipt.duration_ms),
        (_, Some(_)) => String::new(),
        (_, None) => clock(now.millis_since(step.began)),
    };
    Row { weight, sign, text, took }
}

/// The event that a step was made of, which has words already.
fn body(what: &What) -> Option<EventBody> {
    Some(match what {
        What::Turn { ended: Some(ended), .. } => EventBody::TurnEnded((**ended).clone()),
        What::Piped(piped) => EventBody::OutputPiped(piped.clone()),
        What::ReactionFailed(failed) => EventBody::ReactionFailed(failed.clone()),
        What::Decided(decided) => EventBody::StopDecided(decided.clone()),
        What::Judged(judged) => EventBody::GatesJudged(judged.clone()),
        What::SubmitJudged(judged) => EventBody::SubmitJudged((**judged).clone()),
        What::Answered(answered) => EventBody::RetryLimitAnswered(answered.clone()),
        What::Taken(taken) => EventBody::TaskTaken(taken.clone()),
        What::Left(left) => EventBody::TaskLeft(left.clone()),
        What::Short(shortage) => EventBody::PurseExhausted(*shortage),
        What::PauseRequested => EventBody::PauseRequested(Empty {}),
        What::StopRequested => EventBody::StopRequested(Empty {}),
        What::Reopened(reopened) => EventBody::SessionReopened(reopened.clone()),
        What::Resumed(resumed) => EventBody::SessionResumed(resumed.clone()),
        What::Hook(_) | What::Receipt(_) | What::Turn { .. } | What::Paused => return None,
    })
}

/// What a step is called above its whole output.
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

/// A part in a list: its sign, its name, and how it went.
pub(super) fn part(part: &Part, now: Timestamp) -> (Weight, String) {
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

/// What goes on now, by the session's own state.
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
