//! Derives the next step from the state of a session.

use super::state::{Session, SessionPhase};
use crate::payload::plan::SessionWork;
use crate::payload::session::{SessionOutcome, TaskExit};
use crate::payload::session_limits::SessionLimit;
use crate::payload::turn::TurnKind;
use crate::point::Point;
use crate::quantity::counted;

/// The most turns of final delivery.
pub(crate) const DELIVERIES_MAX: u32 = 3;
/// The most attempts of a turn during which the program died.
pub const ATTEMPTS_MAX: u32 = 5;
/// The pause after an error, doubled after each further one.
const BACKOFF_MS: u64 = 1_000;
const BACKOFF_MAX_MS: u64 = 60_000;
/// The pause before a submission is retried, doubled after each further one.
const SUBMIT_BACKOFF_MS: u64 = 5_000;
const SUBMIT_BACKOFF_MAX_MS: u64 = 10 * 60_000;
/// The pause after a rate limit of unknown length, doubled after each further one.
const WAIT_MS: u64 = 60_000;
const WAIT_MAX_MS: u64 = 15 * 60_000;

/// The next step of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Run the hooks of a point.
    Hooks(Point),
    /// Claim the most urgent task that is ready.
    TakeTask,
    /// Prepare the task's worktree, then run session_start there.
    Settle,
    /// After a pause: the hooks of before_submit, one after the other.
    Submit {
        pause_ms: u64,
    },
    /// After a pause: pre_iteration, then the prompt is fixed.
    Begin(IterationPause),
    /// Fix the prompt of a turn that is no iteration.
    StartTurn(TurnKind),
    Turn(TurnKind),
    /// Evaluate the stop conditions.
    Decide,
    /// Run the gates on a claim.
    Gate,
    /// Run the gates once before the session ends without progress and without a claim.
    CheckUnclaimed,
    /// Request a decision at the retry limit.
    AnswerRetryLimit,
    /// Record the result of the task in the graph.
    LeaveTask {
        how: TaskExit,
        reason: Option<String>,
    },
    End(SessionOutcome),
    /// Pause, as requested.
    Pause,
    /// Do nothing: the session is paused or has ended.
    Rest,
}

/// The wait before an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationPause {
    For {
        ms: u64,
    },
    /// Until a time in milliseconds since 1970, but at least `least_ms`: clocks differ.
    Until {
        ms: u64,
        least_ms: u64,
    },
}

/// Returns the next step of a session that has run for `active_ms`.
pub fn next_step(session: &Session, active_ms: u64) -> NextStep {
    let is_over = active_ms >= session.plan.limits.max_duration_ms;
    match &session.phase {
        SessionPhase::Starting => NextStep::Hooks(Point::SessionStart),
        SessionPhase::Turn(kind) => NextStep::Turn(*kind),
        SessionPhase::TaskOver { how, reason } => {
            NextStep::LeaveTask { how: *how, reason: reason.clone() }
        }
        SessionPhase::Submitted => NextStep::Hooks(Point::AfterSubmit),
        SessionPhase::Ending => ending(session, is_over),
        SessionPhase::Paused | SessionPhase::Ended => NextStep::Rest,
        _ if is_over => NextStep::End(SessionOutcome::Limit { limit: SessionLimit::Duration }),
        SessionPhase::Settling => NextStep::Settle,
        // A submission that waits for a retry can also wait for a paused session.
        SessionPhase::Submitting if session.pause_requested && session.submit_tries > 0 => {
            NextStep::LeaveTask { how: TaskExit::Released, reason: Some("paused".to_owned()) }
        }
        SessionPhase::Submitting => NextStep::Submit { pause_ms: before_submit_ms(session) },
        SessionPhase::Ready => ready(session),
        SessionPhase::After => NextStep::Hooks(Point::PostIteration),
        SessionPhase::Deciding => NextStep::Decide,
        SessionPhase::Gating => NextStep::Gate,
        SessionPhase::Failed { .. } => NextStep::Hooks(Point::OnError),
        SessionPhase::Recovering => match ending_limit(session) {
            None if session.fault.is_none() && session.has_word_of_error() => {
                NextStep::StartTurn(TurnKind::Recovery)
            }
            _ => ready(session),
        },
        SessionPhase::AtRetryLimit => NextStep::AnswerRetryLimit,
    }
}

fn ready(session: &Session) -> NextStep {
    let limits = &session.plan.limits;
    if let Some(reason) = &session.fault {
        return NextStep::End(SessionOutcome::NeedsHuman { reason: reason.clone() });
    }
    if let Some(limit) = ending_limit(session) {
        return NextStep::End(SessionOutcome::Limit { limit });
    }
    if session.pause_requested {
        // No process sends heartbeats for a task while its session is paused.
        return match session.task {
            Some(_) => {
                NextStep::LeaveTask { how: TaskExit::Released, reason: Some("paused".to_owned()) }
            }
            None => NextStep::Pause,
        };
    }
    if let (true, None) = (session.plan.work.is_of_tasks(), &session.task) {
        return after_task(session);
    }
    if session.progress.stalled >= limits.max_no_progress {
        if session.is_unclaimed() && session.unclaimed.is_none() {
            return NextStep::CheckUnclaimed;
        }
        let reason = without_progress(session);
        return match session.task {
            Some(_) => NextStep::LeaveTask { how: TaskExit::Blocked, reason: Some(reason) },
            None => NextStep::End(SessionOutcome::NeedsHuman { reason }),
        };
    }
    if session.next_iteration() > limits.max_iterations {
        return NextStep::End(SessionOutcome::Limit { limit: SessionLimit::Iterations });
    }
    NextStep::Begin(pause(session))
}

/// Returns the reason of a session without progress: whether its gates pass, and near misses of a promise.
fn without_progress(session: &Session) -> String {
    let stalled = counted(session.progress.stalled, "iteration", "iterations");
    let mut reason = format!("{stalled} in a row made no progress");
    if let Some(checked) = session.unclaimed.as_ref().filter(|checked| checked.gates > 0) {
        reason.push_str(&format!("; {checked}"));
    }
    let near_misses = session.last.iter().flat_map(|last| &last.near_misses);
    for near_miss in near_misses {
        reason.push_str(&format!("; not a report: {near_miss}"));
    }
    reason
}

/// Returns the pause before a submission, longer after each failure.
fn before_submit_ms(session: &Session) -> u64 {
    match session.submit_tries {
        0 => 0,
        tries => (SUBMIT_BACKOFF_MS << (tries - 1).min(16)).min(SUBMIT_BACKOFF_MAX_MS),
    }
}

/// Returns the step of a session without a task: claim one, unless its only task is done.
fn after_task(session: &Session) -> NextStep {
    let SessionWork::Task(id) = &session.plan.work else { return NextStep::TakeTask };
    if session.tasks_completed.contains(id) {
        return NextStep::End(SessionOutcome::Complete { unproven: session.has_accepted });
    }
    if session.tasks_blocked.contains(id) {
        let reason = format!("task `{id}` needs a human");
        return NextStep::End(SessionOutcome::NeedsHuman { reason });
    }
    if session.tasks_lost.is_empty() { NextStep::TakeTask } else { NextStep::End(lost(session)) }
}

/// Returns the outcome of a session whose task another session completed, released or took over.
pub fn lost(session: &Session) -> SessionOutcome {
    // Another session has the task or will claim it, so no person has to act.
    if session.plan.worker.is_some() {
        return SessionOutcome::Interrupted;
    }
    let names: Vec<String> = session.tasks_lost.iter().map(|id| format!("`{id}`")).collect();
    let reason = format!(
        "this session lost task {}: somebody else completed, released or took it over",
        names.join(", ")
    );
    SessionOutcome::NeedsHuman { reason }
}

fn pause(session: &Session) -> IterationPause {
    let doubled = |ms: u64, times: u32, max_ms: u64| {
        let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
        ms.saturating_mul(factor).min(max_ms)
    };
    let after = |ms| IterationPause::For { ms };
    match (session.waits, session.wait_until_ms, session.errors) {
        (0, _, 0) => IterationPause::For { ms: 0 },
        (0, _, errors) => after(doubled(BACKOFF_MS, errors - 1, BACKOFF_MAX_MS)),
        (waits, Some(ms), _) => {
            IterationPause::Until { ms, least_ms: doubled(BACKOFF_MS, waits - 1, BACKOFF_MAX_MS) }
        }
        (waits, None, _) => after(doubled(WAIT_MS, waits - 1, WAIT_MAX_MS)),
    }
}

/// Returns a reached limit after which no turn of any kind follows.
fn ending_limit(session: &Session) -> Option<SessionLimit> {
    let limits = &session.plan.limits;
    match () {
        () if session.usage.cost_micros >= limits.max_cost_micros => Some(SessionLimit::Cost),
        // A limit of cost can't count these turns, so their number is bounded instead.
        () if session.unpriced_turns >= limits.max_unpriced_turns => Some(SessionLimit::Cost),
        () if session.usage.tokens() >= limits.max_tokens => Some(SessionLimit::Tokens),
        () if session.shortage.is_some() => Some(SessionLimit::Budget),
        () if session.errors >= limits.max_errors => Some(SessionLimit::Errors),
        () => None,
    }
}

fn ending(session: &Session, is_over: bool) -> NextStep {
    let Some(outcome) = &session.outcome else { return NextStep::Hooks(Point::SessionEnd) };
    // A task that is still claimed is released.
    if session.task.is_some() {
        return match outcome {
            // An external session or a worker could claim the task again and get the whole limit
            // again, forever.
            SessionOutcome::Limit { limit }
                if session.plan.is_unwatched() && *limit != SessionLimit::Budget =>
            {
                let reason = session.limit_reached(*limit);
                NextStep::LeaveTask { how: TaskExit::Blocked, reason: Some(reason) }
            }
            // A worker would claim it again at once.
            SessionOutcome::Cancelled
                if session.stop_requested && session.plan.worker.is_some() =>
            {
                let reason = Some("a person stopped its session".to_owned());
                NextStep::LeaveTask { how: TaskExit::Blocked, reason }
            }
            SessionOutcome::NeedsHuman { reason } if session.plan.worker.is_some() => {
                NextStep::LeaveTask { how: TaskExit::Blocked, reason: Some(reason.clone()) }
            }
            outcome => {
                let reason = match outcome {
                    SessionOutcome::Limit { limit } => session.limit_reached(*limit),
                    SessionOutcome::NeedsHuman { reason } => reason.clone(),
                    SessionOutcome::Cancelled => "a person stopped the session".to_owned(),
                    outcome => outcome.name().to_owned(),
                };
                NextStep::LeaveTask { how: TaskExit::Released, reason: Some(reason) }
            }
        };
    }
    if session.submitted.is_some() {
        return NextStep::Hooks(Point::AfterSubmit);
    }
    // An external session that is ended would start again if it got the reason.
    let is_heard =
        !session.plan.is_external() || matches!(outcome, SessionOutcome::Complete { .. });
    // With a worktree per task, no worktree is left for a final turn.
    let may_speak = outcome.delivers()
        && is_heard
        && !session.plan.delivers
        && !is_over
        && session.deliveries < DELIVERIES_MAX
        && ending_limit(session).is_none();
    if may_speak && !session.pending.is_empty() {
        return NextStep::StartTurn(TurnKind::Delivery);
    }
    // A turn that changed files is judged, also the last one.
    if session.has_unjudged_end() && !is_over && ending_limit(session).is_none() {
        return NextStep::Gate;
    }
    // Final delivery may have changed proven files.
    let is_unproven = session.is_unproven();
    match outcome {
        SessionOutcome::Complete { .. } if is_unproven && !is_over => NextStep::Gate,
        SessionOutcome::Complete { .. } if is_unproven => {
            NextStep::End(SessionOutcome::Limit { limit: SessionLimit::Duration })
        }
        _ => NextStep::Hooks(Point::SessionEnd),
    }
}
