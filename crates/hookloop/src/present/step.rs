//! An event or a step of a session in words, the same for all front ends.

use hookloop_core::event::{EventBody, HookRan, ReactionFailed};
use hookloop_core::hook_status::HookStatus;
use hookloop_core::inbox::one_line;
use hookloop_core::promise::Promise;
use hookloop_core::session::facts::{
    ChecksRecorded, CompletionClaimed, DecisionMade, FilesRestored, IterationStarted, PipedOutput,
    RestoreKind, SessionResumed, SessionTaskClaimed, SessionTaskReleased, TaskExit,
    WorktreeRecreated,
};
use hookloop_core::session::plan::counted;
use hookloop_core::session::timeline::{StepContent, TimelineStep};
use hookloop_core::session::{LimitDecision, Receipt, SessionLimits, SessionReopened, TurnKind};
use hookloop_core::shared_budget::Shortage;

use super::evidence::{check_counts, evidence, room};
use super::names::{on_tree, short_hash};
use super::step_text::{StepSeverity, StepText};
use super::time::duration;
use super::{gates, turn};
use crate::sanitize::{plain, plain_output};

/// Characters of a hook's message to the user that are shown.
const MESSAGE_SHOWN: usize = 200;
/// The point of an output that is a message from a person.
const MESSAGE_POINT: &str = "message";

/// Describes a step of a session's timeline.
pub(crate) fn step(step: &TimelineStep, limits: &SessionLimits) -> StepText {
    match &step.what {
        StepContent::Hook(ran) => hook(ran),
        StepContent::Turn { kind, ended: Some(ended), .. } => {
            turn::ended(ended, turn::title(*kind))
        }
        StepContent::Turn { kind, ended: None, .. } => {
            turn::unfinished(*kind, step.ended.is_some())
        }
        StepContent::Piped(text) => piped(text),
        StepContent::ReactionFailed(failed) => reaction(failed),
        StepContent::Decided(decided) => gates::decided(decided),
        StepContent::Receipt(made) => receipt(made),
        StepContent::Judged(judged) => gates::judged(judged),
        StepContent::SubmissionEvaluated(judged) => gates::submit(judged),
        StepContent::Answered(answered) => retry_answer(answered, limits),
        StepContent::Taken(taken) => session_task_claimed(taken),
        StepContent::Left(left) => session_task_released(left),
        StepContent::Short(short) => shortage(short),
        StepContent::PauseRequested => pause_requested(),
        StepContent::StopRequested => stop_requested(),
        StepContent::Paused => StepText::of_line(StepSeverity::Heading, "pause", "", "paused"),
        StepContent::Reopened(session) => reopened(session),
        StepContent::Resumed(session) => resumed(session),
    }
}

/// Describes an event; none for a bookkeeping event.
fn event(body: &EventBody, limits: &SessionLimits) -> Option<StepText> {
    Some(match body {
        EventBody::IterationStarted(started) => iteration(started, limits),
        EventBody::TurnStarted(started) => {
            let text = match started.turn {
                TurnKind::Recovery => "recovery after the error",
                _ => "final turn with pending output",
            };
            StepText::of_line(StepSeverity::Heading, turn::title(started.turn), "", text)
        }
        EventBody::HookRan(ran) => hook(ran),
        EventBody::ReactionFailed(failed) => reaction(failed),
        EventBody::CompletionClaimed(claimed) => claim(claimed),
        EventBody::TurnEnded(ended) => turn::ended(ended, turn::title(TurnKind::Work)),
        EventBody::StopEvaluated(decided) => gates::decided(decided),
        // A gate that ran has the line of its hook. The last event of a divided list is for all.
        EventBody::ReceiptRecorded(made) if made.reused_from.is_some() => receipt(made),
        EventBody::ChecksRecorded(recorded) if recorded.more == 0 => checks(recorded),
        EventBody::GatesEvaluated(judged) => gates::judged(judged),
        EventBody::EmptyDifferenceFound(found) => {
            let what = if found.was_asked { "a human is needed" } else { "the agent is asked why" };
            StepText::of_line(StepSeverity::Bad, "files", "", format!("no file changed: {what}"))
        }
        EventBody::UnclaimedWorkChecked(checked) => {
            StepText::of_line(StepSeverity::Bad, "progress", "", format!("no progress: {checked}"))
        }
        EventBody::SubmissionEvaluated(judged) => gates::submit(judged),
        EventBody::DecisionMade(answered) => retry_answer(answered, limits),
        EventBody::SessionTaskClaimed(taken) => session_task_claimed(taken),
        EventBody::SessionTaskReleased(left) => session_task_released(left),
        EventBody::CheckpointMade(made) => {
            let text = format!("checkpoint by {}: {}", made.by, made.data);
            StepText::of_line(StepSeverity::Plain, "checkpoint", made.by.clone(), text)
        }
        EventBody::TrustDriftDetected(drift) => {
            let what = drift.changed.join(", ");
            let text = format!("changed since the session began, and not used: {what}");
            StepText::of_line(StepSeverity::Bad, "trust", "", text)
        }
        EventBody::WorktreeRecreated(made) => worktree_recreated(made),
        EventBody::BudgetExhausted(short) => shortage(short),
        EventBody::PauseRequested(_) => pause_requested(),
        EventBody::StopRequested(_) => stop_requested(),
        EventBody::FilesRestored(restored) => files_restored(restored),
        EventBody::SessionReopened(session) => reopened(session),
        EventBody::SessionResumed(session) => resumed(session),
        EventBody::OutputPiped(text) if text.point == MESSAGE_POINT => piped(text),
        _ => return None,
    })
}

/// Describes an event as a line of a terminal; none for a bookkeeping event.
///
/// Nothing in the line acts on a terminal. Hooks are in columns.
pub(crate) fn line(body: &EventBody, limits: &SessionLimits) -> Option<(StepSeverity, String)> {
    let text = event(body, limits)?;
    let line = match body {
        EventBody::HookRan(ran) => {
            let result = hook_result(ran, Some(ran.duration_ms));
            format!("{:<14} {:<24} {result}", ran.point, ran.hook_name)
        }
        EventBody::ReactionFailed(failed) => {
            let error = one_line(&failed.error, MESSAGE_SHOWN);
            let what = reaction_failure(failed);
            format!("{:<14} {:<24} {what}  {error}", failed.point, failed.hook_name)
        }
        _ => text.line,
    };
    Some((text.severity, plain(&line).into_owned()))
}

/// Returns the lines below an event: the last output of a hook that failed or blocked.
pub(crate) fn details(body: &EventBody) -> Vec<String> {
    let tail = match body {
        EventBody::HookRan(ran) => &ran.output_tail,
        EventBody::ReactionFailed(failed) => &failed.output_tail,
        _ => return Vec::new(),
    };
    tail.iter().map(|line| format!("  | {}", plain_output(line))).collect()
}

fn iteration(started: &IterationStarted, limits: &SessionLimits) -> StepText {
    let again = match started.attempt {
        1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let text = format!("iteration {} of {}{again}", started.number, limits.max_iterations);
    StepText::of_line(StepSeverity::Heading, "iteration", started.number.to_string(), text)
}

fn hook(ran: &HookRan) -> StepText {
    let severity = match ran.status.known() {
        Some(HookStatus::Passed | HookStatus::Skipped) => StepSeverity::Plain,
        _ => StepSeverity::Bad,
    };
    let detail = hook_result(ran, None);
    let line = format!("{} {} {detail}", ran.point, ran.hook_name);
    StepText { severity, title: "hook", name: at_point(&ran.hook_name, &ran.point), detail, line }
}

/// Returns the status of a hook, its reason and its message to the user.
///
/// In columns, the duration follows the status, and spaces set the reason apart.
fn hook_result(ran: &HookRan, columns_took_ms: Option<u64>) -> String {
    let tries = match ran.attempts {
        0 | 1 => String::new(),
        attempts => format!(" after {attempts} tries"),
    };
    let took = columns_took_ms.map_or_else(String::new, |ms| format!(" {}", duration(ms)));
    let gap = if columns_took_ms.is_some() { "  " } else { ": " };
    let reason = ran.reason.as_deref().and_then(|reason| reason.lines().next());
    let reason = reason.map_or_else(String::new, |reason| format!("{gap}{}", plain(reason)));
    let message = ran.message.as_deref().map_or_else(String::new, |message| {
        format!("  ({})", plain(&one_line(message, MESSAGE_SHOWN)))
    });
    format!("{}{tries}{took}{reason}{message}", ran.status)
}

fn reaction(failed: &ReactionFailed) -> StepText {
    let ReactionFailed { point, hook_name, error, .. } = failed;
    let detail = format!("{}: {}", reaction_failure(failed), one_line(error, MESSAGE_SHOWN));
    StepText {
        severity: StepSeverity::Bad,
        title: "reaction",
        name: at_point(hook_name, point),
        line: format!("{point} {hook_name} {detail}"),
        detail,
    }
}

fn reaction_failure(failed: &ReactionFailed) -> String {
    match &failed.action_type {
        Some(action) => format!("could not {action}"),
        None => "failed".to_owned(),
    }
}

fn at_point(hook: &str, point: &str) -> String {
    format!("{hook} at {point}")
}

fn claim(claimed: &CompletionClaimed) -> StepText {
    let text = match (claimed.claim, &claimed.reason) {
        (Promise::Complete, _) => "reports by a tool that it is done".to_owned(),
        (_, None) => "reports by a tool that it is blocked".to_owned(),
        (_, Some(why)) => format!("reports by a tool that it is blocked: {}", plain(why)),
    };
    StepText::of_line(StepSeverity::Plain, "claim", "", text)
}

fn piped(piped: &PipedOutput) -> StepText {
    let first = piped.text.lines().next().unwrap_or_default();
    if piped.point == MESSAGE_POINT {
        let line = format!("message from {}: {}", piped.from, plain(first));
        return StepText {
            severity: StepSeverity::Plain,
            title: "for the next prompt",
            name: at_point(&piped.from, &piped.point),
            detail: String::new(),
            line,
        };
    }
    let count = u32::try_from(piped.text.lines().count()).unwrap_or(u32::MAX);
    let lines = counted(count, "line", "lines");
    StepText {
        severity: StepSeverity::Plain,
        title: "for the next prompt",
        name: at_point(&piped.from, &piped.point),
        detail: String::new(),
        line: format!("{} {} for the next prompt: {lines}", piped.point, piped.from),
    }
}

fn receipt(receipt: &Receipt) -> StepText {
    let severity = if receipt.is_green() { StepSeverity::Good } else { StepSeverity::Bad };
    let tree = receipt.tree.as_deref();
    let tree = tree.map(|tree| format!("tree {}", short_hash(tree)));
    let tree = on_tree(tree.as_deref());
    let code = receipt.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let detail = format!("{} {tree}{code}{}", receipt.status, evidence(receipt));
    let line = format!("receipt {} {detail}", receipt.gate);
    StepText { severity, title: "receipt", name: receipt.gate.clone(), detail, line }
}

fn checks(recorded: &ChecksRecorded) -> StepText {
    let failed = recorded.counts.failed;
    let severity = if failed > 0 { StepSeverity::Bad } else { StepSeverity::Plain };
    let place = recorded.room.as_ref().map(room);
    let place = place.map_or_else(String::new, |place| format!(" · {place}"));
    let text = format!("checks of {}: {}{place}", recorded.gate, check_counts(recorded.counts));
    StepText::of_line(severity, "checks", recorded.gate.clone(), text)
}

fn retry_answer(answered: &DecisionMade, limits: &SessionLimits) -> StepText {
    let what = match answered.answer {
        LimitDecision::Continue => "continues with all retries",
        LimitDecision::Accept => "accepted without passing gates",
        LimitDecision::Abort => "a human is needed",
    };
    let retries = counted(limits.gate_retries, "retry", "retries");
    StepText {
        severity: StepSeverity::Bad,
        title: "retry limit",
        name: answered.by.clone(),
        detail: what.to_owned(),
        line: format!("retry limit reached after {retries}: {what} ({})", answered.by),
    }
}

fn session_task_claimed(taken: &SessionTaskClaimed) -> StepText {
    let line = format!("task {}", taken.task);
    let detail = String::new();
    let name = taken.task.to_string();
    StepText { severity: StepSeverity::Heading, title: "task claimed", name, detail, line }
}

fn session_task_released(left: &SessionTaskReleased) -> StepText {
    let (severity, how) = match left.result {
        TaskExit::Completed => (StepSeverity::Good, "completed"),
        TaskExit::Submitted => (StepSeverity::Good, "submitted"),
        TaskExit::Returned => (StepSeverity::Bad, "returned"),
        TaskExit::Blocked => (StepSeverity::Bad, "needs a human"),
        TaskExit::Released => (StepSeverity::Plain, "released"),
        TaskExit::Lost => (StepSeverity::Bad, "claim lost"),
    };
    let reason = left.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    let detail = format!("{how}{reason}");
    let line = format!("task {} {detail}", left.task);
    StepText { severity, title: "task released", name: left.task.to_string(), detail, line }
}

fn files_restored(restored: &FilesRestored) -> StepText {
    let files = counted(restored.files, "file", "files");
    let turn = restored.turn.unwrap_or_default();
    let mut text = match restored.kind {
        RestoreKind::Undo => format!("{files} restored to the state before turn {turn}"),
        RestoreKind::Restore if turn == 0 => format!("{files} restored to the state before turn 1"),
        RestoreKind::Restore => format!("{files} restored to the state after turn {turn}"),
        RestoreKind::Back => format!("{files} restored to the state before the last undo"),
    };
    if restored.left > 0 {
        text = format!("{text}, {} left as they were", restored.left);
    }
    StepText::of_line(StepSeverity::Plain, "files", "", text)
}

fn worktree_recreated(made: &WorktreeRecreated) -> StepText {
    let lost = match &made.saved {
        Some(name) => format!("its files are in {name}"),
        None => format!("work since commit {} is lost", short_hash(&made.commit)),
    };
    let text = format!(
        "the worktree of task {} was missing or damaged, and was recreated; {lost} ({})",
        made.task, made.reason
    );
    StepText::of_line(StepSeverity::Bad, "worktree", made.task.to_string(), text)
}

fn shortage(short: &Shortage) -> StepText {
    let text = format!("the budget does not allow another turn: {short}");
    StepText::of_line(StepSeverity::Bad, "budget", "", text)
}

fn pause_requested() -> StepText {
    StepText::of_line(StepSeverity::Plain, "pause", "", "a pause is requested")
}

fn stop_requested() -> StepText {
    StepText::of_line(StepSeverity::Plain, "stop", "", "a person requested a stop")
}

fn reopened(session: &SessionReopened) -> StepText {
    let mut detail = match &session.limits {
        Some(limits) => format!("its limits are now {limits}"),
        None => "its limits stay as they are".to_owned(),
    };
    if !session.may_change.is_empty() {
        detail.push_str(&format!("; tests that may change: {}", session.may_change.join(", ")));
    }
    let line = format!("reopened: {detail}");
    let name = String::new();
    StepText { severity: StepSeverity::Plain, title: "reopened", name, detail, line }
}

fn resumed(session: &SessionResumed) -> StepText {
    let detail = format!("run {}", session.run);
    let line = format!("resumed, {detail}");
    let name = session.machine.clone();
    StepText { severity: StepSeverity::Plain, title: "resumed", name, detail, line }
}
