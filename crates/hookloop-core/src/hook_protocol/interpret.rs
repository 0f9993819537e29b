//! Interprets the exit and the output of a hook.

use super::answer_format::{
    HookAnswer, RequestedStep, action_list, has_answer_beside_text, read_answer,
};
use super::outcome::{AnswerRules, HookOutcome, HookVerdict};
use super::process::{CapturedOutput, ProcessExit};
use crate::hook_status::HookStatus;
use crate::options::AllowedAnswers;
use crate::point::PointKind;

/// The message for the author of a hook that mixes an answer with text.
pub(super) const BESIDE_TEXT: &str = "it printed an answer beside other text, so all of it counts as text; \
                           print the rest to standard error";

/// The reason why the acting parts of a gate's answer were ignored.
pub(super) const NOT_ALLOWED: &str = "add `answers: json` to the hook to let it";

/// Returns the outcome of a process by its exit and its output.
pub fn interpret(
    ended: &ProcessExit,
    printed: CapturedOutput<'_>,
    rules: AnswerRules,
) -> HookOutcome {
    let status = match ended {
        ProcessExit::Exited(0) => HookStatus::Passed,
        ProcessExit::Exited(2) => HookStatus::Blocked,
        ProcessExit::Exited(_) => HookStatus::Failed,
        ProcessExit::Killed(_) | ProcessExit::OverLimit(_) => HookStatus::Killed,
        ProcessExit::TimedOut => HookStatus::TimedOut,
        ProcessExit::Cancelled => HookStatus::Cancelled,
        ProcessExit::NotStarted(_) => HookStatus::NotStarted,
    };
    let may_act = rules.kind == PointKind::Reaction || rules.answers == AllowedAnswers::Json;
    let answered = match status {
        HookStatus::Passed | HookStatus::Blocked => read_answer(printed, may_act),
        _ => Ok(None),
    };
    let outcome = match answered {
        Ok(None) if has_answer_beside_text(printed.stdout) => HookOutcome {
            message: Some(BESIDE_TEXT.to_owned()),
            ..said(status, HookAnswer::default(), printed, ended)
        },
        Ok(answer) => {
            let answer = answer.unwrap_or_default();
            if may_act {
                said(status, answer, printed, ended).without_unproven_acts(rules.kind)
            } else {
                let (answer, ignored) = answer.without_acts();
                said(status, answer, printed, ended).reporting(ignored, NOT_ALLOWED)
            }
        }
        // The exit code blocks, regardless of an unreadable answer.
        Err(_) if status == HookStatus::Blocked => {
            said(status, HookAnswer::default(), printed, ended)
        }
        Err(why) => HookOutcome { reason: Some(why), ..HookOutcome::of(HookStatus::Failed) },
    };
    outcome.judged(rules.kind, rules.on_failure, printed)
}

fn said(
    status: HookStatus,
    answer: HookAnswer,
    printed: CapturedOutput<'_>,
    ended: &ProcessExit,
) -> HookOutcome {
    let ours = answer.hookloop.unwrap_or_default();
    let blocks = status == HookStatus::Blocked
        || answer.decision.as_deref() == Some("block")
        || matches!(ours.action, Some(RequestedStep::Continue));
    let escalates =
        answer.goes_on == Some(false) || matches!(ours.action, Some(RequestedStep::Escalate));
    let reason = answer.reason.or(ours.reason);
    let verdict = if escalates {
        let given = answer.stop_reason.or(reason.clone());
        let given = given.filter(|reason| !reason.trim().is_empty());
        HookVerdict::Escalate {
            reason: given.unwrap_or_else(|| "a hook asked for a human".to_owned()),
        }
    } else if blocks {
        HookVerdict::Block { feedback: feedback(reason.as_deref(), printed) }
    } else {
        HookVerdict::Pass
    };
    let status = match status {
        HookStatus::Passed if verdict != HookVerdict::Pass => HookStatus::Blocked,
        HookStatus::Passed if ours.skip => HookStatus::Skipped,
        other => other,
    };
    HookOutcome {
        status,
        reason: reason.or_else(|| why(ended)),
        message: answer.system_message,
        context: answer.hook_specific_output.and_then(|specific| specific.additional_context),
        next_prompt: ours.next_prompt,
        actions: ours.actions,
        values: if ours.context.is_null() { ours.metadata } else { ours.context },
        checkpoint: ours.checkpoint,
        is_quiet: answer.suppress_output,
        ignored: Vec::new(),
        verdict,
    }
}

/// Returns the feedback for the agent: the answer's reason, else the output.
fn feedback(reason: Option<&str>, printed: CapturedOutput<'_>) -> String {
    let plain = match printed.stdout.trim() {
        text if text.starts_with('{') && !printed.is_cut => "",
        text if !printed.is_cut && action_list(text).is_some() => "",
        text => text,
    };
    match reason {
        Some(reason) if !reason.trim().is_empty() => reason.trim().to_owned(),
        _ => {
            let parts = [printed.stderr.trim(), plain];
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            match said.is_empty() {
                true => "the gate failed without a reason".to_owned(),
                false => said.join("\n\n"),
            }
        }
    }
}

fn why(ended: &ProcessExit) -> Option<String> {
    match ended {
        ProcessExit::Exited(0) => None,
        ProcessExit::Exited(code) => Some(format!("exit code {code}")),
        ProcessExit::Killed(signal) => Some(format!("killed by signal {signal}")),
        ProcessExit::TimedOut => Some("timed out".to_owned()),
        ProcessExit::Cancelled => Some("cancelled".to_owned()),
        ProcessExit::OverLimit(limit) => Some(format!("ended because it used too much: {limit}")),
        ProcessExit::NotStarted(why) => Some(why.clone()),
    }
}
