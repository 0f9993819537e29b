//! The reasons of a session.

use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::facts::FILES_CHANGED;
use hookloop_core::session::plan::counted;
use hookloop_core::session::{
    Session, SessionLimit, SessionOutcome, SessionPhase, TurnEnded, stop,
};
use hookloop_core::time::Timestamp;
use hookloop_engine::inbox::decision_record::flag_of;
use hookloop_engine::project::Project;
use hookloop_engine::store::SessionRow;

use super::{FAILURES_SHOWN, RECORD_MAX, StateReasons};
use crate::environment::machine;
use crate::error::CliResult;
use crate::present::outcome::{is_unpriced_limit, no_changes_advice, why_unproven};
use crate::present::{evidence, files_after, now, on_tree, session as sessions};

/// The start of a reason that is a receipt of a gate.
pub(crate) const RECEIPT: &str = "receipt: ";

/// Returns the reasons of a session.
pub(crate) fn of_session(row: &SessionRow, session: &Session, is_running: bool) -> StateReasons {
    let mut reasons = of_outcome(session);
    reasons.extend(no_changes_advice(session).map(str::to_owned));
    reasons.extend(of_last_turn(session));
    for check in session.failing.iter().flatten() {
        let verb = if check.starts_with(FILES_CHANGED) { "" } else { "fails: " };
        reasons.push(format!("{verb}{check}"));
    }
    for receipt in &session.receipts {
        let tree = on_tree(receipt.tree.as_deref());
        let evidence = evidence(receipt);
        reasons.push(format!("{RECEIPT}{} {} {tree}{evidence}", receipt.gate, receipt.status));
    }
    reasons.extend(files_after(session.turns, session.last_tree.as_deref()));
    reasons.push(counts(session));
    if !session.pending.is_empty() {
        let count = u32::try_from(session.pending.len()).unwrap_or(u32::MAX);
        let pending = counted(count, "text is pending", "texts are pending");
        reasons.push(format!("{pending} for the next prompt"));
    }
    StateReasons {
        state: sessions::state(row, is_running, &machine()).name().to_owned(),
        reasons,
        next: Some(next_command(row, session, is_running)),
    }
}

/// Returns the reasons that the outcome gives, or the step of a session that has none.
fn of_outcome(session: &Session) -> Vec<String> {
    let limits = &session.plan.limits;
    let reason = match &session.outcome {
        Some(SessionOutcome::NeedsHuman { reason }) => reason.clone(),
        Some(SessionOutcome::Limit { limit: SessionLimit::Budget }) => return of_shortage(session),
        Some(SessionOutcome::Limit { limit: SessionLimit::Cost }) if is_unpriced_limit(session) => {
            format!(
                "its limit of cost was reached: the cost of {} is unknown, and {} are allowed \
             (`--max-unpriced-turns`)",
                counted(session.unpriced_turns, "turn", "turns"),
                limits.max_unpriced_turns
            )
        }
        Some(SessionOutcome::Limit { limit }) => session.limit_reached(*limit),
        Some(SessionOutcome::Complete { unproven: true }) => {
            "gates failed, and the work was accepted without passing them".to_owned()
        }
        Some(SessionOutcome::Complete { .. }) if session.had_nothing_to_do() => {
            "there was nothing to do".to_owned()
        }
        Some(SessionOutcome::Complete { .. }) if !session.is_proven() => {
            let why = why_unproven(session);
            format!("the agent reported COMPLETE, and it is not proven: {why}")
        }
        Some(SessionOutcome::Complete { .. }) => {
            "its gates passed on the files as they were then".to_owned()
        }
        Some(SessionOutcome::Cancelled) => "a person stopped it".to_owned(),
        Some(SessionOutcome::Interrupted) => {
            "its program died, and another session was started".to_owned()
        }
        None => of_phase(session),
    };
    vec![reason]
}

fn of_shortage(session: &Session) -> Vec<String> {
    let mut reasons = vec!["the budget of all sessions does not allow another turn".to_owned()];
    reasons.extend(session.shortage.map(|shortage| shortage.to_string()));
    reasons.push(
        "a daily budget starts again at 00:00 UTC; `limits.budget` sets the amount".to_owned(),
    );
    reasons
}

/// Returns the failure, the contradiction and the near misses of the last turn.
fn of_last_turn(session: &Session) -> Vec<String> {
    let Some(last) = &session.last else { return Vec::new() };
    let failure = TurnEnded::failure_line(last).map(|why| format!("the last turn failed: {why}"));
    let mut reasons: Vec<String> =
        failure.into_iter().chain(stop::contradiction(&last.promises)).collect();
    for near_miss in &last.near_misses {
        reasons.push(format!("the agent's last message reports nothing: {near_miss}"));
    }
    reasons
}

/// Counts iterations, retries and errors against their limits.
fn counts(session: &Session) -> String {
    let limits = &session.plan.limits;
    format!(
        "{} of {}, {} of {}, {} of {} without progress, {} in a row",
        session.iteration,
        counted(limits.max_iterations, "iteration", "iterations"),
        session.retries.min(limits.gate_retries),
        counted(limits.gate_retries, "retry", "retries"),
        session.progress.stalled,
        counted(limits.max_no_progress, "iteration", "iterations"),
        counted(session.errors, "error", "errors"),
    )
}

fn next_command(row: &SessionRow, session: &Session, is_running: bool) -> String {
    if !session.is_over() && !is_running {
        return format!("hookloop resume {}", row.id);
    }
    if session.outcome == (Some(SessionOutcome::Limit { limit: SessionLimit::Budget })) {
        return "hookloop usage".to_owned();
    }
    match resume_options(session, is_running) {
        Some(options) => format!("hookloop resume {}{options}", row.id),
        None => format!("hookloop sessions show {}", row.id),
    }
}

/// Returns the options of `hookloop resume` that let a session continue; none if it can't.
pub(super) fn resume_options(session: &Session, is_running: bool) -> Option<String> {
    if is_running || session.plan.worker.is_some() || session.plan.is_external() {
        return None;
    }
    Some(match &session.outcome {
        Some(SessionOutcome::Limit { limit }) => {
            flag_of(*limit).map_or(String::new(), |flag| format!(" {flag}"))
        }
        Some(SessionOutcome::NeedsHuman { .. }) if session.plan.work.is_of_tasks() => return None,
        Some(SessionOutcome::NeedsHuman { .. }) => " --answer \"…\"".to_owned(),
        Some(SessionOutcome::Cancelled) => String::new(),
        _ => return None,
    })
}

/// Returns the step of a session by its events.
pub(super) fn of_phase(session: &Session) -> String {
    match &session.phase {
        SessionPhase::Turn(_) => format!("iteration {}: the agent works", session.iteration),
        SessionPhase::Gating => "its gates run".to_owned(),
        SessionPhase::Paused => "a person requested a pause".to_owned(),
        SessionPhase::AtRetryLimit => {
            "the retry limit is reached: it waits for a person".to_owned()
        }
        SessionPhase::Ready if session.waits > 0 => match session.wait_until_ms {
            Some(ms) => {
                let until = Timestamp(i64::try_from(ms).unwrap_or(i64::MAX));
                format!("waits for the end of a rate limit until {}", now::until_text(until))
            }
            None => "waits for the end of a rate limit".to_owned(),
        },
        _ => format!("it is between two steps of iteration {}", session.iteration),
    }
}

/// Returns the last reactions to the session's own events that failed.
pub(crate) fn failed_reactions(project: &Project, id: &SessionId) -> CliResult<Vec<String>> {
    let events = project.log().history(&Subject::Session(id.clone()), RECORD_MAX)?;
    let failed = events.iter().filter_map(|stored| match &stored.event.body {
        EventBody::ReactionFailed(failed) => Some(failed),
        _ => None,
    });
    let lines = failed.map(|failed| {
        let what = failed
            .action_type
            .as_ref()
            .map_or("failed".to_owned(), |action| format!("could not {action}"));
        format!("hook `{}` at {} {what}: {}", failed.hook_name, failed.point, failed.error)
    });
    let lines: Vec<String> = lines.collect();
    Ok(lines[lines.len().saturating_sub(FAILURES_SHOWN)..].to_vec())
}

/// Returns the last decisions of people that changed the gates of sessions, each in a line.
pub(crate) fn trust_changes(project: &Project) -> CliResult<Vec<String>> {
    let mut trusted = None;
    let mut switched = None;
    for stored in project.log().history(&Subject::Project, RECORD_MAX)? {
        let actor = &stored.event.actor;
        let at = stored.event.at.brief();
        match &stored.event.body {
            EventBody::HooksTrusted(trust) if !trust.changes.is_empty() => {
                let changes = trust.changes.join("; ");
                trusted = Some(format!("{actor} trusted changed gates on {at}: {changes}"));
            }
            EventBody::HookEnabled(hook) => {
                switched = Some(format!("{actor} enabled `{}` on {at}", hook.name));
            }
            EventBody::HookDisabled(hook) => {
                switched = Some(format!("{actor} disabled `{}` on {at}", hook.name));
            }
            _ => {}
        }
    }
    Ok(trusted.into_iter().chain(switched).collect())
}
