//! The result of a session in words.

use hookloop_core::session::facts::GatesEvaluated;
use hookloop_core::session::plan::counted;
use hookloop_core::session::stop::NO_CHANGES;
use hookloop_core::session::{Session, SessionLimit, SessionOutcome, TurnEnded};

use super::names::some;
use super::step_text::StepSeverity;
use super::time::duration;
use crate::output::DIM;
use crate::sanitize::plain;

/// The next step after a session that no gate could prove.
const ADD_GATE: &str = "add a `stop` hook to hookloop.yaml, then run `hookloop hooks trust`";

/// The advice after a session that changed no file.
const NO_CHANGES_OK: &str = "`hookloop run … --no-changes-ok` accepts work without changed files";

/// The next step of a user after a session.
pub(crate) enum AdvisedStep {
    /// A command to type.
    Run(String),
    /// A sentence.
    Advice(&'static str),
}

impl AdvisedStep {
    /// Returns the line that shows the step.
    pub(crate) fn line(&self) -> String {
        match self {
            AdvisedStep::Run(command) => format!("{DIM}run:{DIM:#} {command}"),
            AdvisedStep::Advice(advice) => format!("{DIM}next:{DIM:#} {advice}"),
        }
    }
}

/// Returns the result of a session in a line, and the next step.
pub(crate) fn conclusion(
    id: &str,
    session: &Session,
) -> (StepSeverity, String, Option<AdvisedStep>) {
    let iterations = counted(session.iteration, "iteration", "iterations");
    let count = format!("{iterations}, {}", duration(session.active_ms));
    let run = |command: String| Some(AdvisedStep::Run(command));
    let resume = run(format!("hookloop resume {id}"));
    let why = run(format!("hookloop why {id}"));
    let log = run(format!("hookloop sessions show {id}"));
    match &session.outcome {
        Some(SessionOutcome::Complete { unproven: true }) => {
            (StepSeverity::Bad, format!("accepted without proof after {count}"), why)
        }
        Some(SessionOutcome::Complete { .. }) if session.had_nothing_to_do() => {
            (StepSeverity::Plain, "complete: there was nothing to do".to_owned(), None)
        }
        Some(SessionOutcome::Complete { .. }) if !session.is_proven() => {
            let text = format!("complete after {count}, not proven: {}", why_unproven(session));
            if session.plan.wants_no_gates {
                return (StepSeverity::Plain, text, None);
            }
            if session.has_gates() {
                return (StepSeverity::Bad, text, why);
            }
            (StepSeverity::Bad, text, Some(AdvisedStep::Advice(ADD_GATE)))
        }
        Some(SessionOutcome::Complete { .. }) => {
            let is_submitted = !session.tasks_submitted.is_empty();
            let next = is_submitted.then(|| AdvisedStep::Run("hookloop merge".to_owned()));
            (StepSeverity::Good, format!("complete after {count}"), next)
        }
        Some(SessionOutcome::NeedsHuman { reason }) => {
            (StepSeverity::Bad, format!("needs a human after {count}: {}", plain(reason)), why)
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Budget }) => {
            let why = session.shortage.map_or_else(String::new, |shortage| format!(": {shortage}"));
            let text = format!("stopped at the budget of all sessions after {count}{why}");
            (StepSeverity::Bad, text, run("hookloop usage".to_owned()))
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Errors }) => {
            let last = session.last.as_ref().and_then(TurnEnded::failure_line);
            let last = last.map_or_else(String::new, |why| format!("; last: {}", plain(&why)));
            (StepSeverity::Bad, format!("stopped at its limit of errors after {count}{last}"), why)
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Cost }) if is_unpriced_limit(session) => {
            let turns = counted(session.unpriced_turns, "turn", "turns");
            let text = format!(
                "stopped at its limit of cost after {count}: the cost of {turns} is unknown"
            );
            (StepSeverity::Bad, text, why)
        }
        Some(SessionOutcome::Limit { limit }) => (
            StepSeverity::Bad,
            format!("stopped at its limit of {} after {count}", limit.name()),
            why,
        ),
        Some(SessionOutcome::Cancelled) if session.plan.worker.is_none() => {
            (StepSeverity::Bad, format!("cancelled after {count}"), resume)
        }
        Some(SessionOutcome::Cancelled) => {
            (StepSeverity::Bad, format!("cancelled after {count}"), log)
        }
        Some(SessionOutcome::Interrupted) => {
            (StepSeverity::Bad, format!("interrupted after {count}"), log)
        }
        None => (StepSeverity::Plain, format!("paused after {count}"), resume),
    }
}

/// Describes the outputs and messages that no prompt contained when the session ended; none if no later turn needs
/// them.
///
/// A session that can be resumed keeps them. A session that is complete needs them no more, unless its final turn
/// failed.
pub(crate) fn outputs_left(session: &Session) -> Option<String> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if session.lost_outputs > 0 {
        let lost = counted(number(session.lost_outputs), "output of a hook", "outputs of hooks");
        return Some(format!("{lost} did not reach the agent: its final turn failed"));
    }
    let can_resume = session.plan.worker.is_none()
        && !session.plan.is_external()
        && !matches!(session.outcome, Some(SessionOutcome::Complete { .. }));
    (can_resume && !session.pending.is_empty()).then(|| {
        let count = number(session.pending.len());
        format!("{} for the next prompt", counted(count, "text is pending", "texts are pending"))
    })
}

/// Returns the advice for a session that ended because no file changed.
pub(crate) fn no_changes_advice(session: &Session) -> Option<&'static str> {
    match &session.outcome {
        Some(SessionOutcome::NeedsHuman { reason }) if reason.starts_with(NO_CHANGES) => {
            Some(NO_CHANGES_OK)
        }
        _ => None,
    }
}

/// Whether turns of unknown cost ended a session at its limit of cost.
pub(crate) fn is_unpriced_limit(session: &Session) -> bool {
    let limits = &session.plan.limits;
    session.usage.cost_micros < limits.max_cost_micros
        && session.unpriced_turns >= limits.max_unpriced_turns
}

/// Returns the reason why a complete session is not proven.
pub(crate) fn why_unproven(session: &Session) -> String {
    if !session.tasks_unproven.is_empty() {
        let names: Vec<String> = session.tasks_unproven.iter().map(ToString::to_string).collect();
        format!("no gate passed for {}", some(&names))
    } else {
        match session.judged.as_ref().filter(|judged| judged.gates > 0) {
            None => "no gate ran".to_owned(),
            Some(judged) if judged.is_proof() => "files changed after the gates passed".to_owned(),
            Some(judged) => format!("no gate passed{}", results_of_gates(judged)),
        }
    }
}

/// Names the gates that were skipped or failed without blocking.
fn results_of_gates(judged: &GatesEvaluated) -> String {
    let kinds = [(&judged.skipped, "skipped"), (&judged.failed, "failed without blocking")];
    let named = kinds.into_iter().filter(|(names, _)| !names.is_empty());
    let named: Vec<String> =
        named.map(|(names, result)| format!("{} {result}", some(names))).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join("; ")) }
}

/// Returns the outcome of a session in a few words.
pub(crate) fn outcome(outcome: &SessionOutcome) -> String {
    match outcome {
        SessionOutcome::Complete { unproven: false } => "complete".to_owned(),
        SessionOutcome::Complete { unproven: true } => "accepted without proof".to_owned(),
        SessionOutcome::NeedsHuman { reason } => format!("needs a human: {reason}"),
        SessionOutcome::Limit { limit } => format!("stopped at its limit of {}", limit.name()),
        SessionOutcome::Cancelled => "cancelled".to_owned(),
        SessionOutcome::Interrupted => "interrupted".to_owned(),
    }
}
