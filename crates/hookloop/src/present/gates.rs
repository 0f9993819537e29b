//! Verdicts of gates, submissions and stop conditions in words.

use hookloop_core::delivery::Submission;
use hookloop_core::session::facts::{FILES_CHANGED, GatesEvaluated, SubmissionEvaluated};
use hookloop_core::session::{JointVerdict, StopDecision, StopEvaluated, SubmitVerdict, stop};

use super::names::{short_hash, some};
use super::step_text::{StepSeverity, StepText};
use crate::sanitize::plain;

/// Describes the joint verdict of the gates.
pub(super) fn judged(judged: &GatesEvaluated) -> StepText {
    let (severity, text) = match &judged.verdict {
        JointVerdict::Pass if judged.gates == 0 => {
            (StepSeverity::Plain, "no gates to pass".to_owned())
        }
        JointVerdict::Pass => {
            let tree = judged.tree.as_deref();
            let tree =
                tree.map_or_else(String::new, |tree| format!(" on tree {}", short_hash(tree)));
            let severity = if judged.is_proof() { StepSeverity::Good } else { StepSeverity::Bad };
            (severity, format!("{}{tree}", gates_line(judged)))
        }
        JointVerdict::Block => (StepSeverity::Bad, sent_back(&judged.failing)),
        JointVerdict::Escalate { reason } => {
            (StepSeverity::Bad, format!("a gate needs a human: {reason}"))
        }
    };
    StepText::of_line(severity, "gates", String::new(), text)
}

/// Describes the verdict about a submission.
pub(super) fn submit(judged: &SubmissionEvaluated) -> StepText {
    let hook = judged.hook.as_deref().unwrap_or("the submission");
    let (severity, text) = match &judged.verdict {
        SubmitVerdict::Pass { submission: None } => {
            (StepSeverity::Plain, "there is nothing to submit".to_owned())
        }
        SubmitVerdict::Pass { submission: Some(submission) } => {
            let Submission { branch, url, .. } = submission;
            let place = url.as_ref().unwrap_or(branch);
            (StepSeverity::Good, format!("ready to submit: {place}"))
        }
        SubmitVerdict::Block => {
            let why = match &judged.obstacle {
                Some(obstacle) => obstacle.clone(),
                None => format!("{hook} failed"),
            };
            (StepSeverity::Bad, format!("not submitted: {why}"))
        }
        SubmitVerdict::Regate => {
            (StepSeverity::Plain, format!("{hook} changed files: the gates run again"))
        }
        SubmitVerdict::Retry { reason } | SubmitVerdict::Escalate { reason } => {
            (StepSeverity::Bad, format!("not submitted: {reason}"))
        }
    };
    StepText::of_line(severity, "submission", judged.hook.clone().unwrap_or_default(), text)
}

/// Describes the decision of the stop conditions.
pub(super) fn decided(decided: &StopEvaluated) -> StepText {
    let what = match decided.decision {
        StopDecision::Complete => "claims to be done",
        StopDecision::Continue => "continues",
        StopDecision::Escalate => "needs a human",
    };
    let (severity, text) = if decided.contradicting.is_empty() {
        let severity = match decided.decision {
            StopDecision::Complete | StopDecision::Continue => StepSeverity::Plain,
            StopDecision::Escalate => StepSeverity::Bad,
        };
        (severity, format!("{what}: {}", decided.reason))
    } else {
        (StepSeverity::Bad, contradicted(decided, what))
    };
    StepText::of_line(severity, "stop", decided.by.clone(), text)
}

/// Describes the decision about a turn whose promises contradict each other.
fn contradicted(decided: &StopEvaluated, what: &str) -> String {
    let both = stop::contradiction(&decided.contradicting).unwrap_or_default();
    let reason = &decided.reason;
    if reason.contains(&both) {
        format!("warning: {what}: {reason}")
    } else {
        format!("warning: {both}; {what}: {reason}")
    }
}

/// Names the failing checks; a gate that all of them belong to is named once.
fn sent_back(failing: &[String]) -> String {
    let gate = failing.first().and_then(|first| first.split_once(": ")).map(|(gate, _)| gate);
    let of_gate = |check: &String| {
        let check = check.split_once(": ").filter(|(of, _)| Some(*of) == gate);
        check.map(|(_, check)| check.to_owned())
    };
    match (failing, failing.iter().map(of_gate).collect::<Option<Vec<_>>>(), gate) {
        ([one], ..) if one.starts_with(FILES_CHANGED) => format!("sent back: {}", plain(one)),
        ([one], _, None) => format!("sent back: gate {} failed", plain(one)),
        (_, Some(checks), Some(gate)) => {
            let verb = if checks.len() == 1 { "fails" } else { "fail" };
            format!("sent back by {}: {} {verb}", plain(gate), some(&checks))
        }
        (many, ..) => format!("sent back: {} checks fail: {}", many.len(), some(many)),
    }
}

/// Counts the gates of a verdict that does not block, by result.
fn gates_line(judged: &GatesEvaluated) -> String {
    let others = judged.skipped.len() + judged.failed.len();
    match (judged.passed.len(), others) {
        (1, 0) => "the gate passes".to_owned(),
        (count, 0) if count > 0 => format!("all {count} gates pass"),
        _ => {
            let named = [&judged.skipped, &judged.failed];
            let named: Vec<String> = named.into_iter().flatten().cloned().collect();
            let named =
                if named.is_empty() { String::new() } else { format!(" ({})", some(&named)) };
            format!("gates: {judged}{named}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_checks_name_their_gate_once() {
        let check = |failing: &[&str], expected: &str| {
            let failing: Vec<String> = failing.iter().map(|check| (*check).to_owned()).collect();
            assert_eq!(sent_back(&failing), expected);
        };
        check(&["tests"], "sent back: gate tests failed");
        check(&["tests: latin1"], "sent back by tests: latin1 fails");
        check(&["tests: a", "tests: b"], "sent back by tests: a, b fail");
        let changed = "files changed while the gates ran: stamp";
        check(&[changed], "sent back: files changed while the gates ran: stamp");
        check(&["tests: a", "lint"], "sent back: 2 checks fail: tests: a, lint");
    }
}
