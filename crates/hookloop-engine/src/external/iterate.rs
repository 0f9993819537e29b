//! An iteration loop that its agent leads: each call performs the session up to the agent's next
//! turn.

use hookloop_agents::TurnReport;
use hookloop_config::clock::now;
use hookloop_core::gates::GateResult;
use hookloop_core::hook_status::HookStatus;
use hookloop_core::point::Point;
use hookloop_core::promise::Promise;
use hookloop_core::session::facts::{Receipt, TaskExit};
use hookloop_core::session::stop::{self, ClaimJudge, ValidationResult};
use hookloop_core::session::{
    NextStep, SessionOutcome, SessionPhase, SessionWork, StopDecision, StopEvaluated, StopWhen,
    TurnKind, next_step,
};
use serde_json::json;

use super::agent_messages::{
    LoopCompletion, LoopSignal, LoopState, StopEvaluation, ValidationReport,
};
use super::external_session::{PerformedStep, joined};
use crate::error::EngineError;

/// The name in a decision if no stop hook is registered.
const NOBODY: &str = "default";

/// Whether the next step completes the task. Only the external session takes this step.
pub(super) fn is_proven(step: &NextStep) -> bool {
    matches!(step, NextStep::LeaveTask { how: TaskExit::Completed, .. })
}

/// Whether the next step is for the external session: to continue, or to complete the task.
pub(super) fn is_for_agent(step: &NextStep) -> bool {
    is_proven(step) || matches!(step, NextStep::Begin(_))
}

pub(super) fn due(session: &PerformedStep<'_>) -> NextStep {
    next_step(session.session(), session.active_ms())
}

pub(super) fn is_over(session: &PerformedStep<'_>) -> bool {
    session.session().outcome.is_some()
}

/// Ends the turn with the agent's report, and runs everything that has to pass.
pub(super) fn validate(
    session: &mut PerformedStep<'_>,
    mut report: TurnReport,
) -> Result<ValidationReport, EngineError> {
    let plan = session.session().plan.clone();
    report.promises = session.counted_promises(report.promises, &report.message).0;
    let (promises, others): (Vec<Promise>, Vec<Promise>) =
        report.promises.iter().partition(|promise| plan.ends_with(**promise));
    report.promises.clone_from(&promises);
    let mut judged = validate_expected(session, report, promises)?;
    let unexpected = others.into_iter().map(|promise| {
        let expected = named(&plan.promises);
        format!(
            "{} does not end this loop: its completionPromises are {expected}",
            named(&[promise])
        )
    });
    judged.feedback.extend(unexpected);
    Ok(judged)
}

fn validate_expected(
    session: &mut PerformedStep<'_>,
    report: TurnReport,
    promises: Vec<Promise>,
) -> Result<ValidationReport, EngineError> {
    let mut told = None;
    // A repeated call without a new iteration. If no command would run and the result is to
    // continue, it uses up no iteration.
    if session.session().phase == SessionPhase::Ready {
        if runs_nothing(session) {
            let evaluated = evaluated(session, &promises)?;
            if evaluated.action == StopDecision::Continue {
                return Ok(judged(session, promises, Some(evaluated), None));
            }
        }
        told = session.go_on(is_proven)?.1;
    }
    if session.session().phase == SessionPhase::Turn(TurnKind::Work) {
        session.hear(TurnKind::Work, report)?;
    }
    let (_, more) = session.go_on(is_for_agent)?;
    let told = joined(told.into_iter().chain(more));
    let decided = session.session().decided.clone();
    let hook = decided.map(|decided| decision(session, decided));
    Ok(judged(session, promises, hook, told))
}

/// Whether the stop conditions start no command and read no file.
fn runs_nothing(session: &PerformedStep<'_>) -> bool {
    let plan = &session.session().plan;
    session.hooks_at(&Point::Validation).is_empty() && !plan.stop_when.iter().any(StopWhen::is_hook)
}

fn judged(
    session: &PerformedStep<'_>,
    promises: Vec<Promise>,
    hook: Option<StopEvaluation>,
    told: Option<String>,
) -> ValidationReport {
    let state = session.session();
    let signal = match (&state.outcome, is_proven(&due(session))) {
        (Some(SessionOutcome::Complete { .. }), _) | (None, true) => LoopSignal::Complete,
        (None, false) => LoopSignal::Continue,
        (Some(_), _) if promises.contains(&Promise::Blocked) => LoopSignal::Blocked,
        (Some(_), _) => LoopSignal::Escalate,
    };
    let results: Vec<ValidationResult> = state
        .receipts
        .iter()
        .map(|receipt| ValidationResult { rule: receipt.gate.clone(), result: result_of(receipt) })
        .collect();
    let mut feedback: Vec<String> = session.waiting();
    feedback.extend(told);
    match &state.outcome {
        Some(SessionOutcome::NeedsHuman { reason }) => {
            feedback.push(format!("needs a human: {reason}"))
        }
        Some(SessionOutcome::Limit { limit }) => {
            feedback.push(format!("a limit was reached: {}", limit.name()));
        }
        _ => {}
    }
    let passed = match signal {
        LoopSignal::Complete => !state.has_accepted,
        _ => !results.is_empty() && results.iter().all(ValidationResult::has_passed),
    };
    let (id, number) = (session.journal.id.clone(), state.iteration);
    ValidationReport { id, number, passed, signal, promises, feedback, results, hook }
}

fn result_of(receipt: &Receipt) -> GateResult {
    match receipt.status.known() {
        Some(HookStatus::Passed) => GateResult::Passed,
        Some(HookStatus::Skipped) => GateResult::Skipped,
        _ => GateResult::Failed,
    }
}

pub(super) fn evaluated(
    session: &mut PerformedStep<'_>,
    promises: &[Promise],
) -> Result<StopEvaluation, EngineError> {
    let (by, said) = session.ask_stop_conditions(promises)?;
    let stop::StopVote { decision: action, reason, next_prompt, output } = said;
    let next_prompt = next_prompt.or(output);
    let failing = stop::failing(&session.validated);
    let to_mend = (action == StopDecision::Continue && !failing.is_empty())
        .then(|| format!("make these rules pass: {}", failing.join(", ")));
    let decided =
        StopEvaluated { decision: action, reason, by, failing: None, contradicting: Vec::new() };
    Ok(StopEvaluation { next_prompt: next_prompt.or(to_mend), ..decision(session, decided) })
}

/// Returns the decision if no stop hook is registered. `iteration_validate` then uses `stop_when`.
pub(super) fn unregistered(session: &PerformedStep<'_>) -> StopEvaluation {
    let (reason, by) = ("No hooks registered for this task".to_owned(), NOBODY.to_owned());
    decision(
        session,
        StopEvaluated {
            decision: StopDecision::Continue,
            reason,
            by,
            failing: None,
            contradicting: Vec::new(),
        },
    )
}

fn decision(session: &PerformedStep<'_>, decided: StopEvaluated) -> StopEvaluation {
    let StopEvaluated { decision: action, reason, by: hook, .. } = decided;
    let error = reason.strip_prefix(stop::EVALUATION_FAILED).map(|error| json!(error));
    let metadata = error.map(|error| ("error".to_owned(), error)).into_iter().collect();
    StopEvaluation {
        hook,
        task: session.task.as_ref().map(|task| task.id.clone()),
        iteration: session.session().iteration,
        action,
        reason,
        next_prompt: None,
        checkpoint_created: false,
        metadata,
    }
}

/// Returns promises in one line.
pub(super) fn named(promises: &[Promise]) -> String {
    let word = |promise: &Promise| match promise {
        Promise::Complete => "COMPLETE",
        Promise::Blocked => "BLOCKED",
        Promise::Escalate => "ESCALATE",
    };
    let words: Vec<&str> = promises.iter().map(word).collect();
    words.join(", ")
}

/// The reason why a loop cannot end.
pub(super) enum EndObstacle {
    /// The loop does not end with this promise, but with these.
    Unexpected(Vec<Promise>),
    /// The feedback of failed gates. Empty if no gate ran.
    Unproven(Vec<String>),
    /// The loop ended with another outcome.
    Over(SessionOutcome),
}

pub(super) fn complete(
    session: &mut PerformedStep<'_>,
    promise: Promise,
) -> Result<Result<LoopCompletion, EndObstacle>, EngineError> {
    let mut told = None;
    let plan = &session.session().plan;
    if !plan.ends_with(promise) {
        return Ok(Err(EndObstacle::Unexpected(plan.promises.clone())));
    }
    if promise != Promise::Complete && !is_over(session) {
        block(session, promise, None)?;
    }
    if promise == Promise::Complete && !is_over(session) {
        // A change since the gates passed invalidates their results.
        if is_proven(&due(session)) {
            session.see_files();
        }
        let halts = |step: &NextStep| is_for_agent(step) || *step == NextStep::Decide;
        told = session.go_on(halts)?.1;
        if !is_proven(&due(session)) && !is_over(session) {
            return Ok(Err(EndObstacle::Unproven(session.waiting())));
        }
        told = joined(told.into_iter().chain(session.go_on(|_| false)?.1));
    }
    let state = session.session();
    match &state.outcome {
        Some(SessionOutcome::Complete { .. }) if promise == Promise::Complete => {}
        Some(SessionOutcome::NeedsHuman { .. }) if promise != Promise::Complete => {}
        Some(outcome) => return Ok(Err(EndObstacle::Over(outcome.clone()))),
        None => return Ok(Err(EndObstacle::Unproven(session.waiting()))),
    }
    Ok(Ok(LoopCompletion {
        id: session.journal.id.clone(),
        task: match &state.plan.work {
            SessionWork::Task(id) => Some(id.clone()),
            _ => None,
        },
        at: now(),
        iterations: state.iteration,
        promise,
        is_claim: false,
        prompt: told,
    }))
}

/// Blocks the task for a person, and ends the session.
pub(super) fn block(
    session: &mut PerformedStep<'_>,
    promise: Promise,
    reason: Option<String>,
) -> Result<(), EngineError> {
    let said = stop::by_promise(&[promise], ClaimJudge::Nobody)
        .map(|said| said.reason)
        .unwrap_or_default();
    let reason = reason.map_or_else(|| said.clone(), |reason| format!("{said}: {reason}"));
    session.leave_task(TaskExit::Blocked, Some(reason))?;
    session.go_on(|_| false).map(drop)
}

/// Returns the current iteration, or the outcome if the loop is over.
pub(super) fn iteration(
    session: &PerformedStep<'_>,
    told: Option<String>,
) -> Result<LoopState, SessionOutcome> {
    let state = session.session();
    if let Some(outcome) = &state.outcome {
        return Err(outcome.clone());
    }
    Ok(LoopState {
        id: session.journal.id.clone(),
        task: session.task.as_ref().map(|task| task.id.clone()),
        number: state.iteration,
        max_iterations: state.plan.limits.max_iterations,
        promises: [Promise::Complete, Promise::Blocked, Promise::Escalate]
            .into_iter()
            .filter(|promise| state.plan.ends_with(*promise))
            .collect(),
        circuit_breaker: state.plan.limits.max_no_progress,
        started_at: now(),
        prompt: joined(told.into_iter().chain(session.bound())),
    })
}
