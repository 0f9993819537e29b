//! The record of a task that is done: the sessions, the receipts, the reviews and the returns.

use std::collections::HashSet;

use hookloop_core::claim::{Claim, ReleaseReason};
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::session::plan::counted;
use hookloop_core::session::{Receipt, Session, SessionPlan};
use hookloop_engine::project::Project;

use super::RECORD_MAX;
use crate::error::CliResult;
use crate::present::{evidence, on_tree};

/// Events of a session that are read for its work on a task.
const SESSION_EVENTS_MAX: usize = 100_000;

/// Returns the history of a task: sessions, receipts, submissions, reviews and returns, oldest first.
pub(super) fn record(project: &Project, id: &TaskId) -> CliResult<Vec<String>> {
    let mut lines = Vec::new();
    for stored in project.log().history(&Subject::Task(id.clone()), RECORD_MAX)? {
        match &stored.event.body {
            EventBody::TaskStarted(started) => {
                if let Some(claim) = &started.claim {
                    lines.extend(started_lines(project, id, claim)?);
                }
            }
            EventBody::TaskReleased(released) => {
                let note = released.note.as_deref().map_or("", first_line);
                let reason = release_reason(released.reason);
                lines.push(format!("released: {reason} {note}"));
            }
            EventBody::TaskSubmitted(submitted) => {
                let Some(submission) = &submitted.submission else { continue };
                let url = submission.url.as_deref().unwrap_or_default();
                lines.push(format!("submitted {} at {} {url}", submission.branch, submission.head));
            }
            EventBody::TaskReviewed(review) => {
                let word = if review.passed { "approved" } else { "rejected" };
                lines.push(format!("{} {word} {}", review.gate, review.head));
            }
            EventBody::TaskReturned(returned) => {
                lines.push(format!("returned: {}", first_line(&returned.reason)));
            }
            _ => {}
        }
    }
    Ok(lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn release_reason(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Released => "by its claimant",
        ReleaseReason::Expired => "its lease expired",
        ReleaseReason::Requeued => "requeued by a person",
        ReleaseReason::NeedsContinuation => "the next claimant continues the work",
    }
}

/// Returns the session that claimed the task, and its receipts.
fn started_lines(project: &Project, id: &TaskId, claim: &Claim) -> CliResult<Vec<String>> {
    let session = claim.agent.strip_prefix("session:").and_then(|id| id.parse().ok());
    let work = session.map(|session| work_on(project, &session, (id, claim.epoch)));
    let Some(WorkOnTask { plan, iterations, receipts }) = work.transpose()?.flatten() else {
        return Ok(vec![format!("{} claimed the task", claim.agent)]);
    };
    let of = plan.worker.as_ref().map_or(String::new(), |name| format!(" of worker {name}"));
    let session = claim.agent.replacen(':', " ", 1);
    let iterations = counted(iterations, "iteration", "iterations");
    let mut lines = vec![format!("{session}{of} claimed the task: {} in {iterations}", plan.agent)];
    for receipt in receipts {
        let tree = on_tree(receipt.tree.as_deref());
        let evidence = evidence(&receipt);
        lines.push(format!("gate {} {} {tree}{evidence}", receipt.gate, receipt.status));
    }
    Ok(lines)
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
) -> CliResult<Option<WorkOnTask>> {
    let history = project.log().history(&Subject::Session(session.clone()), SESSION_EVENTS_MAX)?;
    let is_taken = |body: &EventBody| match body {
        EventBody::SessionTaskClaimed(taken) => taken.task == *task && taken.epoch == epoch,
        _ => false,
    };
    let is_left = |body: &EventBody| match body {
        EventBody::SessionTaskReleased(left) => left.task == *task,
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
        own.iter().any(|body| matches!(body, EventBody::ReceiptRecorded(made) if made == receipt))
    };
    let iterations = u32::try_from(iterations.len()).unwrap_or(u32::MAX);
    let receipts = state.receipts.into_iter().filter(is_own).collect();
    Ok(Some(WorkOnTask { plan: state.plan, iterations, receipts }))
}
