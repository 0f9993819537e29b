//! The reasons of a task.

use std::collections::HashSet;

use hookloop_core::claim::Claim;
use hookloop_core::event::EventBody;
use hookloop_core::id::{EventId, SessionId, Subject, TaskId};
use hookloop_core::inbox::ProblemSubject;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::gate_agreement;
use hookloop_engine::project::Project;
use hookloop_engine::session::lookup;

use super::session::resume_options;
use super::task_record::record;
use super::{FAILURES_SHOWN, RECORD_MAX, StateReasons};
use crate::error::{CliError, CliResult};
use crate::present::now;
use crate::present::session::is_interrupted;

/// Reasons, and the command that comes next.
type ReasonsAndNext = (Vec<String>, String);

/// Returns the reasons of a task.
pub(crate) fn of_task(project: &Project, id: &TaskId) -> CliResult<StateReasons> {
    let row = project.read(|view| view.task(id))?;
    let row = row.ok_or_else(|| CliError::refused(format!("there is no task `{id}`")))?;
    let task = row.task;
    let (mut reasons, next) = match task.state {
        TaskState::Created => of_created(project, &task)?,
        TaskState::Ready => of_ready(project, &task)?,
        TaskState::Active => of_active(project, &task)?,
        TaskState::Submitted => of_submitted(project, id)?,
        TaskState::Completed => {
            let result = task.outcome.as_ref().and_then(|outcome| outcome.result.clone());
            let mut reasons = vec![result.unwrap_or_else(|| "the task is completed".to_owned())];
            reasons.extend(record(project, id)?);
            (reasons, format!("hookloop log --task {id}"))
        }
        TaskState::Blocked => {
            let obstacle = task.obstacle.as_ref().map(|obstacle| obstacle.reason.clone());
            let reasons = vec![obstacle.unwrap_or_else(|| "no reason given".to_owned())];
            let problem =
                project.read(|view| view.problem_of(&ProblemSubject::Task(id.clone())))?;
            let next = match problem {
                Some(problem) => format!("hookloop inbox show {}", problem.key),
                None => format!("hookloop task unblock {id}"),
            };
            (reasons, next)
        }
    };
    reasons.extend(failures_of_hooks(project, id)?);
    Ok(StateReasons { state: task.state.to_string(), reasons, next: Some(next) })
}

fn of_created(project: &Project, task: &Task) -> CliResult<ReasonsAndNext> {
    let id = &task.id;
    if let Some(time) = task.waits_until() {
        let reason = format!("waits for its start time: {}", time.brief());
        return Ok((vec![reason], format!("hookloop task show {id}")));
    }
    let needs = project.read(|view| view.dependencies(id))?;
    let open = needs.iter().map(|row| &row.task);
    let open = open.filter(|needed| needed.state != TaskState::Completed);
    let reasons = open.map(|needed| format!("waits for {} ({})", needed.id, needed.state));
    Ok((reasons.collect(), format!("hookloop task graph {id}")))
}

fn of_ready(project: &Project, task: &Task) -> CliResult<ReasonsAndNext> {
    let (reason, resume) = match given_back(project, &task.id)? {
        Some((reason, next)) => (reason, next),
        None => ("no worker or session has claimed it".to_owned(), None),
    };
    let mut reasons = vec![reason];
    let kind = task.spec.kind.as_deref();
    reasons.extend(kind.and_then(|kind| project.rules().implementers_in_words(kind)));
    let delivery = project.read(|view| view.delivery(&task.id))?;
    if let Some(reason) = delivery.reason {
        reasons.push(format!("returned: {}", reason.lines().next().unwrap_or_default()));
    }
    let weakened = gate_agreement::weakened_lines(project);
    if weakened.is_empty() {
        let next = resume.unwrap_or_else(|| "hookloop run --tasks --agent …".to_owned());
        return Ok((reasons, next));
    }
    let text = "no session starts: gates changed since you trusted them";
    reasons.push(text.to_owned());
    reasons.extend(weakened);
    Ok((reasons, "hookloop hooks trust".to_owned()))
}

fn of_active(project: &Project, task: &Task) -> CliResult<ReasonsAndNext> {
    let id = &task.id;
    let session = session_of_task(project, id)?;
    // A session that this machine's view does not have yet is not known to be interrupted.
    let row = session.as_ref().and_then(|id| lookup::find(project, id.as_str()).ok());
    if let Some(row) = row.filter(|row| is_interrupted(project, row)) {
        let reason = format!("session {} was interrupted: its program died", row.id);
        return Ok((vec![reason], format!("hookloop resume {}", row.id)));
    }
    let claimed = |claim: &Claim| format!("claimed by {}", claim.agent);
    let mut reasons =
        vec![task.claim.as_ref().map_or_else(|| "started without a claim".to_owned(), claimed)];
    let record = session.and_then(|id| now::of(project, &id));
    reasons.extend(record.iter().flat_map(|record| now::lines(record, project.now())));
    Ok((reasons, format!("hookloop log --task {id}")))
}

fn of_submitted(project: &Project, id: &TaskId) -> CliResult<ReasonsAndNext> {
    let delivery = project.read(|view| view.delivery(id))?;
    let mut reasons = vec!["waits to be merged".to_owned()];
    let is_delivered = delivery.submission.is_some();
    if let Some(submission) = delivery.submission {
        reasons.push(format!("{} at {}", submission.branch, submission.head));
        reasons.extend(submission.url);
    }
    for review in &delivery.reviews {
        let word = if review.passed { "approved" } else { "rejected" };
        reasons.push(format!("{} {word}", review.gate));
    }
    if let Some(awaited) = delivery.awaited {
        let reason = awaited.reason.unwrap_or_default();
        reasons.push(match awaited.queue {
            Some(place) => format!("{reason}: {place}"),
            None => reason,
        });
    }
    reasons.extend(delivery.held.map(|held| format!("a human is needed: {held}")));
    let next = if is_delivered {
        "hookloop merge".to_owned()
    } else {
        format!("hookloop log --task {id}")
    };
    Ok((reasons, next))
}

/// Returns the session that has claimed a task.
pub(crate) fn session_of_task(project: &Project, id: &TaskId) -> CliResult<Option<SessionId>> {
    let row = project.read(|view| view.task(id))?;
    let claim = row.and_then(|row| row.task.claim);
    Ok(claim.and_then(|claim| claim.agent.strip_prefix("session:")?.parse().ok()))
}

/// Says why the last session released a task that is ready again, with the command that continues the work.
fn given_back(project: &Project, id: &TaskId) -> CliResult<Option<(String, Option<String>)>> {
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
        // A session whose events can't be read is named without a command; `hookloop verify` reports the damage.
        let session = lookup::session(project, session_id).ok()?;
        let options = session.is_over().then(|| resume_options(&session, false)).flatten()?;
        Some(format!("hookloop resume {session_id}{options}"))
    });
    let by = session.map_or_else(|| actor.clone(), |id| format!("session {id}"));
    Ok(Some((format!("{by} released it: {note}"), next)))
}

/// Returns the last hooks of a task's events that failed, then their actions that were refused.
fn failures_of_hooks(project: &Project, id: &TaskId) -> CliResult<Vec<String>> {
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
            let hook = &cause.hook;
            let action = &error.action_type;
            let why = &error.error;
            lines.push(format!("hook `{hook}` could not {action}: {why}"));
        }
    }
    Ok(lines.split_off(lines.len().saturating_sub(FAILURES_SHOWN)))
}
