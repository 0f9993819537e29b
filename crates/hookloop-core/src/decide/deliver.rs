//! Submissions, and the events that may follow them.

use super::{
    Decided, KnownFacts, TEXT_MAX_BYTES, WORD_MAX_BYTES, bounded, check_fence, not_from, on_task,
};
use crate::claim::Fence;
use crate::delivery::{
    AwaitedMerge, DeliveryFact, MergeBlocked, PushPlanned, Submission, TaskApproved, TaskReturned,
};
use crate::event::{EventBody, TaskSubmitted};
use crate::refusal::Refusal;
use crate::task::{Task, TaskState};

pub(super) fn submit(
    task: &Task,
    fence: Fence,
    submission: &Option<Submission>,
) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, fence, "submit")?;
    if let Some(Submission { branch, head, base, url, .. }) = submission {
        for (what, text) in [("branch", Some(branch)), ("base", Some(base)), ("url", url.as_ref())]
        {
            bounded(what, text.map(String::as_str), WORD_MAX_BYTES)?;
        }
        bounded("head", Some(head), WORD_MAX_BYTES)?;
    }
    match task.state {
        TaskState::Active => {
            let submitted = TaskSubmitted { submission: submission.clone() };
            Ok(vec![on_task(&task.id, EventBody::TaskSubmitted(submitted))])
        }
        _ => Err(not_from(task, "submitted", TaskState::Submitted)),
    }
}

/// Decides a push to the task's branch. Only the holder of the task may push.
pub(super) fn push(task: &Task, fence: Fence, head: &str) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, fence, "push")?;
    bounded("head", Some(head), WORD_MAX_BYTES)?;
    let head = head.to_owned();
    Ok(vec![on_task(&task.id, EventBody::PushPlanned(PushPlanned { head }))])
}

/// Records an event of the submitted commit. An event of another commit is refused as outdated.
pub(super) fn record(
    task: &Task,
    fact: &DeliveryFact,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    check_head(task, fact.head(), facts)?;
    if let DeliveryFact::Held(MergeBlocked { reason, .. }) = fact {
        bounded("reason", reason.as_deref(), TEXT_MAX_BYTES)?;
    }
    if let DeliveryFact::Awaited(AwaitedMerge { reason, queue, .. }) = fact {
        bounded("reason", reason.as_deref(), TEXT_MAX_BYTES)?;
        let state = queue.as_ref().map(|place| place.state.as_str());
        bounded("state", state, WORD_MAX_BYTES)?;
    }
    if let DeliveryFact::Reviewed(reviewed) = fact {
        bounded("gate", Some(&reviewed.gate), WORD_MAX_BYTES)?;
        bounded("reason", reviewed.reason.as_deref(), TEXT_MAX_BYTES)?;
    }
    Ok(vec![on_task(&task.id, fact.clone().into())])
}

pub(super) fn give_back(
    task: &Task,
    returned: &TaskReturned,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    check_head(task, &returned.head, facts)?;
    bounded("reason", Some(&returned.reason), TEXT_MAX_BYTES)?;
    Ok(vec![on_task(&task.id, EventBody::TaskReturned(returned.clone()))])
}

/// Approves the submission that stands. A task that is worked on again has none.
pub(super) fn approve(
    task: &Task,
    head: &str,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, Fence::None, "approve")?;
    if !matches!(task.state, TaskState::Submitted | TaskState::Blocked) {
        let (id, state) = (task.id.clone(), task.state);
        return Err(Refusal::WrongState { id, state, wanted: "approved" });
    }
    match facts.submission_stands && facts.submitted_head.as_deref() == Some(head) {
        true => {
            let approved = TaskApproved { head: head.to_owned() };
            Ok(vec![on_task(&task.id, EventBody::TaskApproved(approved))])
        }
        false => Err(Refusal::NotSubmitted { id: task.id.clone(), head: head.to_owned() }),
    }
}

fn check_head(task: &Task, head: &str, facts: &KnownFacts) -> Result<(), Refusal> {
    check_fence(task, Fence::None, "merge")?;
    if task.state != TaskState::Submitted {
        return Err(not_from(task, "merged", TaskState::Completed));
    }
    match facts.submitted_head.as_deref() == Some(head) {
        true => Ok(()),
        false => Err(Refusal::NotSubmitted { id: task.id.clone(), head: head.to_owned() }),
    }
}
