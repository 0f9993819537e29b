//! Claims and releases of tasks, and the fence before every other change.

use super::{Decided, TEXT_MAX_BYTES, begun, bounded, not_from, on_task};
use crate::claim::{AGENT_MAX_BYTES, Claim, Fence, LEASE_MAX_MS, LEASE_MIN_MS, ReleaseReason};
use crate::event::{EventBody, TaskReleased, TaskStarted};
use crate::id::TaskId;
use crate::refusal::{ClaimStanding, Refusal};
use crate::slots::WipPermit;
use crate::task::{Task, TaskState};

/// Checks that `fence` permits the change `verb` of the task.
pub fn check_fence(task: &Task, fence: Fence, verb: &'static str) -> Result<(), Refusal> {
    match (fence, &task.claim) {
        (Fence::Override, _) | (Fence::None, None) => Ok(()),
        (Fence::Epoch(epoch), Some(claim)) if claim.epoch == epoch => Ok(()),
        (Fence::None, Some(claim)) => Err(claimed(&task.id, claim, verb)),
        (Fence::Epoch(yours), _) => Err(stale(task, yours)),
    }
}

fn claimed(id: &TaskId, claim: &Claim, verb: &'static str) -> Refusal {
    Refusal::Claimed { id: id.clone(), agent: claim.agent.clone(), epoch: claim.epoch, verb }
}

fn stale(task: &Task, yours: u64) -> Refusal {
    let now = match &task.claim {
        Some(claim) => ClaimStanding::Held { agent: claim.agent.clone(), epoch: claim.epoch },
        None => ClaimStanding::Unclaimed(task.state),
    };
    Refusal::StaleClaim { id: task.id.clone(), yours, now }
}

pub(super) fn claim(
    task: &Task,
    agent: &str,
    lease_ms: u64,
    slot: &WipPermit,
) -> Result<Vec<Decided>, Refusal> {
    let claim = next_claim(task, agent, lease_ms)?;
    match (task.state, &task.claim) {
        (TaskState::Ready, _) => {
            begun(task, TaskStarted { claim: Some(claim), ..TaskStarted::default() }, slot)
        }
        (_, Some(held)) => Err(claimed(&task.id, held, "claim")),
        _ => Err(not_from(task, "claimed", TaskState::Active)),
    }
}

/// Ends a claim that missed its heartbeats and begins the next one.
///
/// One event does both, so no third claim can come between.
pub(super) fn take_over(
    task: &Task,
    agent: &str,
    lease_ms: u64,
    silent_epoch: u64,
) -> Result<Vec<Decided>, Refusal> {
    let claim = next_claim(task, agent, lease_ms)?;
    match &task.claim {
        Some(silent) if silent.epoch == silent_epoch => {
            let took_over = Some(silent.agent.clone());
            let started = TaskStarted { claim: Some(claim), took_over, ..TaskStarted::default() };
            Ok(vec![on_task(&task.id, EventBody::TaskStarted(started))])
        }
        _ => Err(stale(task, silent_epoch)),
    }
}

fn next_claim(task: &Task, agent: &str, lease_ms: u64) -> Result<Claim, Refusal> {
    if agent.trim().is_empty() {
        return Err(Refusal::NoAgent);
    }
    bounded("agent", Some(agent), AGENT_MAX_BYTES)?;
    if !(LEASE_MIN_MS..=LEASE_MAX_MS).contains(&lease_ms) {
        return Err(Refusal::LeaseRange { ms: lease_ms });
    }
    Ok(Claim { agent: agent.to_owned(), epoch: task.epoch + 1, lease_ms })
}

/// Releases a task. Only a person can release a task that was started without a claim.
pub(super) fn release(
    task: &Task,
    fence: Fence,
    reason: ReleaseReason,
    note: &Option<String>,
) -> Result<Vec<Decided>, Refusal> {
    bounded("reason", note.as_deref(), TEXT_MAX_BYTES)?;
    check_fence(task, fence, "release")?;
    match (task.state, fence) {
        (TaskState::Active | TaskState::Submitted, Fence::None) => {
            Err(Refusal::NotClaimed(task.id.clone()))
        }
        (TaskState::Active | TaskState::Submitted, Fence::Epoch(_) | Fence::Override) => {
            let released = TaskReleased { epoch: task.epoch, reason, note: note.clone() };
            Ok(vec![on_task(&task.id, EventBody::TaskReleased(released))])
        }
        _ => Err(not_from(task, "released", TaskState::Ready)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KnownFacts, decide};
    use super::*;
    use crate::command::{Command, DependentsOfDeleted};
    use crate::task::{TaskObstacle, TaskOutcome, TaskSpec};
    use crate::time::Timestamp;

    const LEASE: u64 = 60_000;

    /// Returns task `t` with `epoch` claims so far, claimed by `holder` if it is given.
    fn task(state: TaskState, epoch: u64, holder: Option<&str>) -> Task {
        let claim = holder.map(|agent| Claim { agent: agent.into(), epoch, lease_ms: LEASE });
        Task {
            id: id(),
            spec: TaskSpec { goal: "g".into(), ..TaskSpec::default() },
            state,
            open_dependencies: 0,
            satisfaction_announced: false,
            epoch,
            claim,
            created_at: Timestamp(0),
            started_at: None,
            completed_at: None,
            obstacle: None,
            outcome: None,
        }
    }

    fn id() -> TaskId {
        "t".parse().unwrap()
    }

    /// Compares the types of the events of `command` on `task`, or the refusal.
    fn check(task: &Task, command: &Command, expected: Result<&[&str], &str>) {
        let facts = KnownFacts { task: Some(task.clone()), ..KnownFacts::default() };
        let decided = decide(command, &facts);
        let real = match &decided {
            Ok(events) => Ok(events.iter().map(|(_, body)| body.kind()).collect::<Vec<_>>()),
            Err(refusal) => Err(refusal.to_string()),
        };
        match (&real, expected) {
            (Ok(kinds), Ok(expected)) => assert_eq!(kinds, expected, "{command:?}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{command:?}: {why}"),
            _ => panic!("{command:?} on {task:?}: {real:?}, not {expected:?}"),
        }
    }

    fn claim_by(agent: &str, lease_ms: u64) -> Command {
        Command::ClaimTask { id: id(), agent: agent.into(), lease_ms }
    }

    fn take_over_of(silent_epoch: u64) -> Command {
        Command::TakeOverTask { id: id(), agent: "b".into(), lease_ms: LEASE, silent_epoch }
    }

    fn release_by(fence: Fence) -> Command {
        Command::ReleaseTask { id: id(), fence, reason: ReleaseReason::Released, note: None }
    }

    /// Returns the claim that the first event of `command` makes.
    fn claim_of(task: &Task, command: &Command) -> (Claim, Option<String>) {
        let facts = KnownFacts { task: Some(task.clone()), ..KnownFacts::default() };
        match decide(command, &facts).unwrap().remove(0).1 {
            EventBody::TaskStarted(started) => (started.claim.unwrap(), started.took_over),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_ready_task_can_be_claimed() {
        let claim = claim_by("a", LEASE);
        check(&task(TaskState::Ready, 0, None), &claim, Ok(&["task_started"]));
        check(&task(TaskState::Active, 0, None), &claim, Err("already active"));
        check(&task(TaskState::Active, 3, Some("b")), &claim, Err("claimed by `b`, epoch 3"));
        check(&task(TaskState::Blocked, 3, None), &claim, Err("can't be claimed"));
        check(&task(TaskState::Created, 0, None), &claim, Err("still waits"));
        check(&task(TaskState::Completed, 1, None), &claim, Err("can't be claimed"));
        let (made, took_over) = claim_of(&task(TaskState::Ready, 3, None), &claim);
        assert_eq!((made.agent.as_str(), made.epoch, made.lease_ms), ("a", 4, LEASE));
        assert_eq!(took_over, None);
    }

    #[test]
    fn lease_and_agent_name_of_a_claim_are_limited() {
        let ready = task(TaskState::Ready, 0, None);
        for lease_ms in [LEASE_MIN_MS, LEASE_MAX_MS] {
            check(&ready, &claim_by("a", lease_ms), Ok(&["task_started"]));
        }
        for lease_ms in [0, LEASE_MIN_MS - 1, LEASE_MAX_MS + 1, u64::MAX] {
            check(&ready, &claim_by("a", lease_ms), Err("out of range: 1 s to 24 h"));
        }
        check(&ready, &claim_by(" ", LEASE), Err("name of an agent"));
        check(
            &ready,
            &claim_by(&"a".repeat(AGENT_MAX_BYTES + 1), LEASE),
            Err("`agent` is too long"),
        );
    }

    #[test]
    fn only_the_claim_of_the_given_epoch_is_taken_over() {
        let held = task(TaskState::Active, 3, Some("a"));
        check(&held, &take_over_of(3), Ok(&["task_started"]));
        check(
            &held,
            &take_over_of(2),
            Err("claim 2 of task `t` is over: `a` holds it now, epoch 3"),
        );
        let ready = task(TaskState::Ready, 3, None);
        check(&ready, &take_over_of(3), Err("it is ready, and nobody holds it"));
        let (made, took_over) = claim_of(&held, &take_over_of(3));
        assert_eq!((made.agent.as_str(), made.epoch), ("b", 4));
        assert_eq!(took_over.as_deref(), Some("a"));
    }

    #[test]
    fn a_claimed_task_is_changed_by_its_holder_or_by_force() {
        type Make = fn(Fence) -> Command;
        let complete: Make =
            |fence| Command::CompleteTask { id: id(), outcome: TaskOutcome::default(), fence };
        let block: Make =
            |fence| Command::BlockTask { id: id(), obstacle: TaskObstacle::default(), fence };
        let submit: Make = |fence| Command::SubmitTask { id: id(), fence, submission: None };
        let all: [(Make, &str); 4] = [
            (complete, "task_completed"),
            (block, "task_blocked"),
            (submit, "task_submitted"),
            (release_by, "task_released"),
        ];
        let held = task(TaskState::Active, 3, Some("a"));
        for (make, kind) in all {
            check(&held, &make(Fence::None), Err("claimed by `a`, epoch 3"));
            check(&held, &make(Fence::Epoch(2)), Err("claim 2 of task `t` is over: `a` holds it"));
            check(&held, &make(Fence::Epoch(3)), Ok(&[kind]));
            check(&held, &make(Fence::Override), Ok(&[kind]));
        }
        for (make, _) in all {
            let ready = task(TaskState::Ready, 3, None);
            check(&ready, &make(Fence::Epoch(3)), Err("it is ready, and nobody holds it"));
        }
        let unclaimed = task(TaskState::Active, 0, None);
        for (make, kind) in &all[..3] {
            check(&unclaimed, &make(Fence::None), Ok(&[kind]));
        }
    }

    #[test]
    fn an_unclaimed_active_task_is_released_only_by_force() {
        let started = task(TaskState::Active, 0, None);
        check(&started, &release_by(Fence::None), Err("nobody has claimed task `t`"));
        check(&started, &release_by(Fence::Override), Ok(&["task_released"]));
        let ready = task(TaskState::Ready, 1, None);
        check(&ready, &release_by(Fence::Override), Err("already ready"));
        let blocked = task(TaskState::Blocked, 1, None);
        check(&blocked, &release_by(Fence::Override), Err("can't be released"));
    }

    #[test]
    fn a_claimed_task_is_deleted_by_force_alone() {
        let delete =
            |force| Command::DeleteTask { id: id(), dependents: DependentsOfDeleted::Block, force };
        for state in [TaskState::Active, TaskState::Submitted] {
            check(&task(state, 1, Some("a")), &delete(false), Err("can't be deleted"));
            check(&task(state, 1, Some("a")), &delete(true), Ok(&["task_deleted"]));
        }
    }
}
