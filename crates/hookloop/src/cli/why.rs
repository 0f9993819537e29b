//! `hookloop why`

use std::collections::HashSet;

use hookloop_core::claim::ReleaseReason;
use hookloop_core::event::EventBody;
use hookloop_core::id::{EventId, SessionId, Subject, TaskId};
use hookloop_core::inbox::ProblemSubject;
use hookloop_core::session::{
    Receipt, Session, SessionLimit, SessionOutcome, SessionPhase, SessionPlan, TurnEnded, stop,
};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use hookloop_engine::gate_agreement;
use hookloop_engine::inbox::decision_record::flag_of;
use hookloop_engine::project::Project;
use hookloop_engine::session::open;
use hookloop_engine::store::SessionRow;
use serde_json::json;

use super::session::{now, runner, words};
use super::{Context, machine};
use crate::error::CliError;
use crate::ids;
use crate::output::{BOLD, DIM, Result, plain};

/// Failures of hooks that are shown, the last ones.
const FAILURES_SHOWN: usize = 5;
/// Events of a task that are looked at for how it came to be done.
const RECORD_MAX: usize = 1_000;
/// Events of a session that are read for its work on a task.
const SESSION_EVENTS_MAX: usize = 100_000;

/// How a reason begins that is a gate's receipt.
pub(crate) const RECEIPT: &str = "receipt: ";

/// Why a session or a task is where it is, and what to do about it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A session or a task: its id, or the start of it
    what: String,
}

/// What keeps something where it is.
pub(crate) struct Reason {
    pub(crate) state: String,
    pub(crate) reasons: Vec<String>,
    /// What to type.
    pub(crate) next: Option<String>,
}

enum Named {
    Session(Box<SessionRow>),
    Task(TaskId),
}

/// The session or task of that id. A whole id comes before the start of another one.
fn named(project: &Project, text: &str) -> Result<Named> {
    let task = ids::resolve(project, text);
    match (open::find(project, text), task) {
        (Ok(row), _) if row.id.as_str() == text || row.name == text => {
            Ok(Named::Session(Box::new(row)))
        }
        (_, Ok(id)) if id.as_str() == text => Ok(Named::Task(id)),
        (Ok(row), Ok(id)) => {
            let message = format!("`{text}` could be the session {} or the task {id}", row.id);
            Err(CliError::refused(message).hint(format!("hookloop why {id}")))
        }
        (Ok(row), Err(_)) => Ok(Named::Session(Box::new(row))),
        (Err(_), Ok(id)) => Ok(Named::Task(id)),
        (Err(_), Err(_)) => {
            let message = format!("there is no session and no task `{text}`");
            Err(CliError::refused(message).hint("hookloop sessions list"))
        }
    }
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project_to_read()?;
        let (id, reason, record) = match named(&project, &self.what)? {
            Named::Session(row) => {
                let session = open::session(&project, &row.id)?;
                let is_running = open::is_running(runner(&project)?, &row.id);
                let mut reason = of_session(&row, &session, is_running);
                reason.reasons.extend(failed_reactions(&project, &row.id)?);
                reason.reasons.extend(trust_changes(&project)?);
                let record = now::of(&project, &row.id);
                if let Some(record) = record.as_ref().filter(|_| session.outcome.is_none()) {
                    reason.replace_step(&session, now::lines(record, project.now()));
                }
                (row.id.to_string(), reason, record)
            }
            Named::Task(id) => {
                let record = session_of_task(&project, &id)?.and_then(|id| now::of(&project, &id));
                (id.to_string(), of_task(&project, &id)?, record)
            }
        };
        let out = &mut context.out;
        if out.json {
            let Reason { state, reasons, next } = reason;
            return out.json(&json!({
                "id": id, "state": state, "reasons": reasons, "next": next, "now": record,
            }));
        }
        out.line(format_args!("{BOLD}{id}{BOLD:#} {}", reason.state))?;
        for reason in &reason.reasons {
            out.line(format_args!("  {}", plain(reason)))?;
        }
        match reason.next {
            Some(next) => out.line(format_args!("  {DIM}try:{DIM:#} {next}")),
            None => Ok(()),
        }
    }
}

impl Reason {
    /// Puts the step that a running session is at in the place of the step that its events tell.
    pub(crate) fn replace_step(&mut self, session: &Session, lines: Vec<String>) {
        let told = of_phase(session);
        if self.reasons.first() == Some(&told) {
            self.reasons.splice(..1, lines);
        }
    }
}

/// The session that holds a task.
fn session_of_task(project: &Project, id: &TaskId) -> Result<Option<SessionId>> {
    let row = project.read(|view| view.task(id))?;
    let claim = row.and_then(|row| row.task.claim);
    Ok(claim.and_then(|claim| claim.agent.strip_prefix("session:")?.parse().ok()))
}

pub(crate) fn of_session(row: &SessionRow, session: &Session, is_running: bool) -> Reason {
    let mut reasons = Vec::new();
    let limits = &session.plan.limits;
    match &session.outcome {
        Some(SessionOutcome::NeedsHuman { reason }) => reasons.push(reason.clone()),
        Some(SessionOutcome::Limit { limit: SessionLimit::Purse }) => {
            reasons.push("the purse of all sessions does not have another turn".to_owned());
            reasons.extend(session.shortage.map(|shortage| shortage.to_string()));
            reasons.push(
                "more is in it tomorrow (UTC) if it is for a day, or with a larger `limits: {purse: …}`"
                    .to_owned(),
            );
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Cost })
            if words::is_unpriced_limit(session) =>
        {
            reasons.push(format!(
                "its limit of cost was reached: the cost of {} is unknown, and {} are allowed \
                 (`--max-unpriced-turns`)",
                words::counted(session.unpriced_turns, "turn", "turns"),
                limits.unpriced_turns
            ));
        }
        Some(SessionOutcome::Limit { limit }) => {
            reasons.push(session.limit_reached(*limit));
        }
        Some(SessionOutcome::Complete { unproven: true }) => {
            reasons.push("gates said no, and the work was accepted as it is".to_owned());
        }
        Some(SessionOutcome::Complete { .. }) if session.had_nothing_to_do() => {
            reasons.push("there was nothing to do".to_owned());
        }
        Some(SessionOutcome::Complete { .. }) if !session.is_proven() => {
            let why = words::why_unproven(session);
            reasons.push(format!("the agent reported COMPLETE, and it is not proven: {why}"));
        }
        Some(SessionOutcome::Complete { .. }) => {
            reasons.push("its gates passed on the files as they were then".to_owned())
        }
        Some(SessionOutcome::Cancelled) => reasons.push("a person stopped it".to_owned()),
        Some(SessionOutcome::Interrupted) => {
            reasons.push("its program died, and another session was begun".to_owned())
        }
        None => reasons.push(of_phase(session)),
    }
    if let Some(why) = session.last.as_ref().and_then(TurnEnded::failure_line) {
        reasons.push(format!("the last turn failed: {why}"));
    }
    if let Some(both) = session.last.as_ref().and_then(|last| stop::contradiction(&last.promises)) {
        reasons.push(both);
    }
    for near_miss in session.last.iter().flat_map(|last| &last.near_misses) {
        reasons.push(format!("the agent's last message reports nothing: {near_miss}"));
    }
    for check in session.failing.iter().flatten() {
        reasons.push(format!("fails: {check}"));
    }
    for receipt in &session.receipts {
        let tree = receipt.tree.as_deref().unwrap_or("no tree");
        reasons.push(format!("{RECEIPT}{} {} on {tree}", receipt.gate, receipt.status));
    }
    reasons.push(format!(
        "{} of {}, {} of {}, {} of {} without progress, {} in a row",
        session.iteration,
        words::counted(limits.iterations, "iteration", "iterations"),
        session.retries.min(limits.hook_retries),
        words::counted(limits.hook_retries, "retry", "retries"),
        session.progress.stalled,
        words::counted(limits.no_progress, "iteration", "iterations"),
        words::counted(session.errors, "error", "errors"),
    ));
    if !session.pending.is_empty() {
        let count = u32::try_from(session.pending.len()).unwrap_or(u32::MAX);
        let waits = words::counted(count, "output waits", "outputs wait");
        reasons.push(format!("{waits} for a prompt"));
    }
    let is_broke = session.outcome == Some(SessionOutcome::Limit { limit: SessionLimit::Purse });
    let next = match session.is_over() || is_running {
        true if is_broke => "hookloop usage".to_owned(),
        true => match next_of(session, is_running) {
            Some(next) => format!("hookloop resume {}{next}", row.id),
            None => format!("hookloop sessions show {}", row.id),
        },
        false => format!("hookloop resume {}", row.id),
    };
    Reason {
        state: words::state(row, is_running, &machine()).to_string(),
        reasons,
        next: Some(next),
    }
}

/// The options of `hookloop resume` that let a session continue; none if it can't.
fn next_of(session: &Session, is_running: bool) -> Option<String> {
    if is_running || session.plan.worker.is_some() || session.plan.has_guest() {
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

/// Why the last session gave a task back that is ready again, and the command that continues the work.
fn given_back(project: &Project, id: &TaskId) -> Result<Option<(String, Option<String>)>> {
    let events = project.log().history(&Subject::Task(id.clone()), RECORD_MAX)?;
    let last = events.iter().rev().find_map(|stored| match &stored.event.body {
        EventBody::TaskReleased(released) => Some((&stored.event.actor, released)),
        _ => None,
    });
    let Some((actor, released)) = last else { return Ok(None) };
    let note = released.note.as_deref().map_or("", |note| note.lines().next().unwrap_or_default());
    if note.is_empty() {
        return Ok(None);
    }
    let session = actor.strip_prefix("session:").and_then(|id| id.parse::<SessionId>().ok());
    let next = session.as_ref().and_then(|session_id| {
        let session = open::session(project, session_id).ok()?;
        let options = session.is_over().then(|| next_of(&session, false)).flatten()?;
        Some(format!("hookloop resume {session_id}{options}"))
    });
    let by = session.map_or_else(|| actor.clone(), |id| format!("session {id}"));
    Ok(Some((format!("{by} gave it back: {note}"), next)))
}

/// The reactions to the session's own events that failed, the last of them.
fn failed_reactions(project: &Project, id: &SessionId) -> Result<Vec<String>> {
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

/// The hooks of a task's events that failed, then their actions that were refused; the last of them.
fn failures_of_hooks(project: &Project, id: &TaskId) -> Result<Vec<String>> {
    let events = project.log().history(&Subject::Task(id.clone()), RECORD_MAX)?;
    let own: HashSet<EventId> = events.iter().map(|stored| stored.event.id).collect();
    let mut lines = Vec::new();
    for stored in &events {
        if let EventBody::HookError(error) = &stored.event.body {
            lines.push(format!("hook `{}` failed: {}", error.hook_name, error.error));
        }
    }
    for stored in project.log().history(&Subject::Project, RECORD_MAX)? {
        let Some(cause) = stored.event.cause.as_ref().filter(|cause| own.contains(&cause.event))
        else {
            continue;
        };
        if let EventBody::ActionError(error) = &stored.event.body {
            let (hook, action, why) = (&cause.hook, &error.action_type, &error.error);
            lines.push(format!("hook `{hook}` could not {action}: {why}"));
        }
    }
    Ok(lines.split_off(lines.len().saturating_sub(FAILURES_SHOWN)))
}

/// The last decisions of people that left sessions with other gates, each in a line.
fn trust_changes(project: &Project) -> Result<Vec<String>> {
    let (mut trusted, mut switched) = (None, None);
    for stored in project.log().history(&Subject::Project, RECORD_MAX)? {
        let (actor, at) = (&stored.event.actor, stored.event.at.brief());
        match &stored.event.body {
            EventBody::HooksTrusted(trust) if !trust.changes.is_empty() => {
                let changes = trust.changes.join("; ");
                trusted = Some(format!("{actor} agreed to other gates on {at}: {changes}"));
            }
            EventBody::HookSwitched(switch) => {
                let state = if switch.enabled { "on" } else { "off" };
                switched = Some(format!("{actor} switched `{}` {state} on {at}", switch.name));
            }
            _ => {}
        }
    }
    Ok(trusted.into_iter().chain(switched).collect())
}

fn of_phase(session: &Session) -> String {
    match &session.phase {
        SessionPhase::Turn(_) => format!("iteration {}: the agent has the turn", session.iteration),
        SessionPhase::Gating => "its gates are asked".to_owned(),
        SessionPhase::Paused => "somebody asked for a pause".to_owned(),
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

/// One session's work on one task.
struct WorkOnTask {
    plan: SessionPlan,
    iterations: u32,
    receipts: Vec<Receipt>,
}

/// Returns a session's work on a task from the claim of that epoch until the session left the task. A session may
/// work on other tasks before and after.
fn work_on(
    project: &Project,
    session: &SessionId,
    (task, epoch): (&TaskId, u64),
) -> Result<Option<WorkOnTask>> {
    let history = project.log().history(&Subject::Session(session.clone()), SESSION_EVENTS_MAX)?;
    let is_taken = |body: &EventBody| match body {
        EventBody::TaskTaken(taken) => taken.task == *task && taken.epoch == epoch,
        _ => false,
    };
    let is_left = |body: &EventBody| match body {
        EventBody::TaskLeft(left) => left.task == *task,
        _ => false,
    };
    let bodies: Vec<&EventBody> = history.iter().map(|stored| &stored.event.body).collect();
    let Some(start) = bodies.iter().position(|body| is_taken(body)) else { return Ok(None) };
    let end = bodies[start..].iter().position(|body| is_left(body));
    let end = end.map_or(bodies.len(), |length| start + length);
    let Some(state) = Session::of(bodies[..end].iter().copied()) else { return Ok(None) };
    let own = &bodies[start..end];
    let iterations: HashSet<u32> = own
        .iter()
        .filter_map(|body| match body {
            EventBody::IterationStarted(started) => Some(started.number),
            _ => None,
        })
        .collect();
    let is_own = |receipt: &Receipt| {
        own.iter().any(|body| matches!(body, EventBody::ReceiptMade(made) if made == receipt))
    };
    let iterations = u32::try_from(iterations.len()).unwrap_or(u32::MAX);
    let receipts = state.receipts.into_iter().filter(is_own).collect();
    Ok(Some(WorkOnTask { plan: state.plan, iterations, receipts }))
}

/// How a task came to be done: who worked on it, what proved the work, who reviewed it, what went back.
fn record(project: &Project, id: &TaskId) -> Result<Vec<String>> {
    let first = |reason: &str| reason.lines().next().unwrap_or_default().to_owned();
    let mut lines = Vec::new();
    for stored in project.log().history(&Subject::Task(id.clone()), RECORD_MAX)? {
        match &stored.event.body {
            EventBody::TaskStarted(started) => {
                let Some(claim) = &started.claim else { continue };
                let session = claim.agent.strip_prefix("session:").and_then(|id| id.parse().ok());
                let work = session.map(|session| work_on(project, &session, (id, claim.epoch)));
                let Some(WorkOnTask { plan, iterations, receipts }) = work.transpose()?.flatten()
                else {
                    lines.push(format!("{} took it", claim.agent));
                    continue;
                };
                let of = plan.worker.as_ref();
                let of = of.map_or(String::new(), |name| format!(" of worker {name}"));
                let agent = &plan.agent;
                lines.push(format!(
                    "{}{of} took it: {agent} in {}",
                    claim.agent.replacen(':', " ", 1),
                    words::counted(iterations, "iteration", "iterations"),
                ));
                for receipt in receipts {
                    let tree = receipt.tree.as_deref().unwrap_or("no tree");
                    lines.push(format!("gate {} {} on {tree}", receipt.gate, receipt.status));
                }
            }
            EventBody::TaskReleased(released) => {
                let note = released.note.as_deref().map_or(String::new(), first);
                let reason = match released.reason {
                    ReleaseReason::Released => "its holder let it go",
                    ReleaseReason::Expired => "its holder was silent for its lease",
                    ReleaseReason::Requeued => "somebody put it back",
                    ReleaseReason::NeedsContinuation => "who takes it next goes on with it",
                };
                lines.push(format!("it was given back: {reason} {note}"));
            }
            EventBody::TaskSubmitted(submitted) => {
                let Some(submission) = &submitted.submission else { continue };
                let url = submission.url.as_deref().unwrap_or_default();
                lines.push(format!("submitted {} at {} {url}", submission.branch, submission.head));
            }
            EventBody::TaskReviewed(review) => {
                let word = if review.passed { "said yes" } else { "said no" };
                lines.push(format!("{} {word} to {}", review.gate, review.head));
            }
            EventBody::TaskReturned(returned) => {
                lines.push(format!("it went back: {}", first(&returned.reason)));
            }
            _ => {}
        }
    }
    Ok(lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
}

pub(crate) fn of_task(project: &Project, id: &TaskId) -> Result<Reason> {
    let row = project.read(|view| view.task(id))?;
    let row = row.ok_or_else(|| CliError::refused(format!("there is no task `{id}`")))?;
    let task = row.task;
    let mut reasons = Vec::new();
    let next = match task.state {
        TaskState::Created if task.waits_until().is_some() => {
            let time = task.waits_until().map_or(String::new(), |time| time.brief());
            reasons.push(format!("its time has not come: {time}"));
            format!("hookloop task show {id}")
        }
        TaskState::Created => {
            let needs = project.read(|view| view.dependencies(id))?;
            let open = needs
                .iter()
                .map(|row| &row.task)
                .filter(|needed| needed.state != TaskState::Completed);
            reasons
                .extend(open.map(|needed| format!("waits for {} ({})", needed.id, needed.state)));
            format!("hookloop task graph {id}")
        }
        TaskState::Ready => {
            let given_back = given_back(project, id)?;
            let mut resume = None;
            match given_back {
                Some((text, next)) => {
                    reasons.push(text);
                    resume = next;
                }
                None => reasons.push("nobody has taken it yet".to_owned()),
            }
            let kind = task.spec.kind.as_deref();
            reasons.extend(kind.and_then(|kind| project.rules().implementers_in_words(kind)));
            let delivery = project.read(|view| view.delivery(id))?;
            let first = |reason: String| reason.lines().next().unwrap_or_default().to_owned();
            reasons
                .extend(delivery.reason.map(|reason| format!("it went back: {}", first(reason))));
            let weakened = gate_agreement::weakened_lines(project);
            if weakened.is_empty() {
                resume.unwrap_or_else(|| "hookloop run --tasks --agent …".to_owned())
            } else {
                let text = "no session starts: the gates are fewer or weaker than you agreed to";
                reasons.push(text.to_owned());
                reasons.extend(weakened);
                "hookloop hooks trust".to_owned()
            }
        }
        TaskState::Active => {
            let session = session_of_task(project, id)?;
            let row = session.as_ref().and_then(|id| open::find(project, id.as_str()).ok());
            if let Some(row) = row.filter(|row| words::is_interrupted(project, row)) {
                reasons.push(format!("session {} was interrupted: its program died", row.id));
                format!("hookloop resume {}", row.id)
            } else {
                let holder = task.claim.as_ref().map_or("somebody", |claim| claim.agent.as_str());
                reasons.push(format!("{holder} works on it"));
                let record = session.and_then(|id| now::of(project, &id));
                reasons.extend(record.iter().flat_map(|record| now::lines(record, project.now())));
                format!("hookloop log -t {id}")
            }
        }
        TaskState::Submitted => {
            let delivery = project.read(|view| view.delivery(id))?;
            reasons.push("it waits to be merged".to_owned());
            let is_delivered = delivery.submission.is_some();
            if let Some(submission) = delivery.submission {
                reasons.push(format!("{} at {}", submission.branch, submission.head));
                reasons.extend(submission.url);
            }
            let said = delivery.reviews.iter().map(|review| {
                let word = if review.passed { "said yes" } else { "said no" };
                format!("{} {word}", review.gate)
            });
            reasons.extend(said);
            if let Some(awaited) = delivery.awaited {
                let reason = awaited.reason.unwrap_or_default();
                reasons.push(match awaited.queue {
                    Some(place) => format!("{reason}: {place}"),
                    None => reason,
                });
            }
            reasons.extend(delivery.held.map(|held| format!("a human is needed: {held}")));
            match is_delivered {
                true => "hookloop merge".to_owned(),
                false => format!("hookloop log -t {id}"),
            }
        }
        TaskState::Completed => {
            let result = task.outcome.as_ref().and_then(|outcome| outcome.result.clone());
            reasons.push(result.unwrap_or_else(|| "it is done".to_owned()));
            reasons.extend(record(project, id)?);
            format!("hookloop log -t {id}")
        }
        TaskState::Blocked => {
            let obstacle = task.obstacle.as_ref().map(|obstacle| obstacle.reason.clone());
            reasons.push(obstacle.unwrap_or_else(|| "nobody said why".to_owned()));
            match project.read(|view| view.problem_of(&ProblemSubject::Task(id.clone())))? {
                Some(problem) => format!("hookloop inbox show {}", problem.key),
                None => format!("hookloop task unblock {id}"),
            }
        }
    };
    reasons.extend(failures_of_hooks(project, id)?);
    Ok(Reason { state: task.state.to_string(), reasons, next: Some(next) })
}
