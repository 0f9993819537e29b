//! The facts a log holds, and their stored format.
//!
//! An event is stored as its type, the version of that type's format, and its data as JSON. A type
//! this version does not know is kept as it is: an older program may read a newer log.

mod stored;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Action;
use crate::cascade::{CascadeLimit, Cause};
use crate::claim::{Claim, ReleaseReason};
use crate::delivery::{
    Approved, AwaitedMerge, Held, Merged, Planned, Pushing, Returned, Reviewed, Submission,
};
use crate::fleet::{BudgetSet, Lifted, Ordered, Slowed};
use crate::id::{EventId, RunId, SessionId, Subject, TaskId};
use crate::inbox::{Dismissed, NoticeClaimed, NoticeFailed};
use crate::purse::{Amount, Shortage};
use crate::remark::{Checkpointed, Noted, StopHook};
use crate::schedule::{Fired, Resumed, Set};
use crate::session::facts::{
    CheckpointMade, Claimed, EmptyDifferenceFound, GatesJudged, IterationStarted,
    Outcome as SessionOutcome, Piped, PointPassed, Receipt, RetryLimitAnswered, RetryLimitAsked,
    SessionEnded, SessionReopened, SessionResumed, StopDecided, SubmitJudged, TaskLeft, TaskTaken,
    TrustDrifted, TurnEnded, TurnStarted, UnclaimedWorkChecked, WorktreeRecreated,
};
use crate::session::plan::Plan;
use crate::task::{Obstacle, Outcome, Priority, TaskSpec};
use crate::time::Timestamp;

pub use stored::{DecodeError, EventType};

/// The version of the stored format that this program writes.
pub const FORMAT: u32 = 1;

/// The eight events that hooks can follow, as every configuration spells them.
pub const LIFECYCLE: [&str; 8] = [
    "task_created",
    "task_started",
    "task_completed",
    "task_blocked",
    "task_deleted",
    "dependency_added",
    "dependency_removed",
    "dependency_satisfied",
];

/// The node of events that are about no task.
pub const SYSTEM_NODE: &str = "system";

/// The start of every type that a hook's `log` action may write.
pub const HOOK_NAMESPACE: &str = "hook.";

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub at: Timestamp,
    pub subject: Subject,
    /// Who asked: a user's name, or `hook:<name>`.
    pub actor: String,
    pub cause: Option<Cause>,
    /// Reactions to this event have not run in the batch that stored it; the dispatcher owes them.
    pub due: bool,
    pub body: EventBody,
}

impl Event {
    /// The task an event is about, or `system`.
    pub fn node_id(&self) -> &str {
        self.subject.task().map_or(SYSTEM_NODE, TaskId::as_str)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventBody {
    TaskCreated(TaskSpec),
    TaskStarted(Started),
    /// A claim ended and the work did not: it may be started again.
    TaskReleased(Released),
    TaskSubmitted(Submitted),
    PushPlanned(Pushing),
    TaskReviewed(Reviewed),
    MergePlanned(Planned),
    TaskMerged(Merged),
    /// A submission can't be merged without a human, or can again.
    MergeHeld(Held),
    /// The forge merges a submission later, or does not allow its merge yet.
    MergeAwaited(AwaitedMerge),
    /// A person takes a submission as it is, whatever reviewers said.
    TaskApproved(Approved),
    /// What was submitted is to be worked on again.
    TaskReturned(Returned),
    TaskCompleted(Outcome),
    TaskBlocked(Obstacle),
    TaskUnblocked(Empty),
    TaskDeleted(Deleted),
    StopHookRegistered(StopHook),
    StopHooksCleared(Empty),
    TaskNoted(Noted),
    TaskCheckpointed(Checkpointed),
    DependencyAdded(Dependency),
    DependencyRemoved(RemovedDependency),
    DependencySatisfied(Satisfied),
    /// An edge between existing tasks was added: the version that the next such edge is checked against.
    GraphAdvanced(Empty),
    AgentMetrics(AgentMetrics),
    /// A hook that starts something was run.
    HookRan(HookRan),
    HookError(HookError),
    ActionError(ActionError),
    CascadeCut(CascadeCut),
    HookSwitched(HookSwitched),
    /// Somebody agreed to the hooks and gates of the repository, as they were then.
    HooksTrusted(HooksTrusted),
    /// Somebody agreed to the agents of the repository, as they were then.
    AgentsTrusted(AgentsTrusted),
    CursorMoved(CursorMoved),
    WorkflowRequested(WorkflowRequested),
    WorkflowStepCompleted(WorkflowStep),
    WorkflowFailed(WorkflowFailed),
    WorkflowCompleted(Empty),
    SessionStarted(Plan),
    PointPassed(PointPassed),
    OutputPiped(Piped),
    /// A reaction to an event of the session failed, or one of its actions was refused.
    ReactionFailed(ReactionFailed),
    /// The project's files between turns.
    FilesSeen(FilesSeen),
    IterationStarted(IterationStarted),
    TurnStarted(TurnStarted),
    /// The agent said by a tool, during its turn, that it is done or can't go on.
    TurnClaimed(Claimed),
    TurnEnded(TurnEnded),
    StopDecided(StopDecided),
    ReceiptMade(Receipt),
    GatesJudged(GatesJudged),
    /// A claim or a submission changes nothing.
    EmptyDifferenceFound(EmptyDifferenceFound),
    UnclaimedWorkChecked(UnclaimedWorkChecked),
    /// What came of submitting a task's work.
    SubmitJudged(SubmitJudged),
    RetryLimitAsked(RetryLimitAsked),
    RetryLimitAnswered(RetryLimitAnswered),
    TaskTaken(TaskTaken),
    TaskLeft(TaskLeft),
    CheckpointMade(CheckpointMade),
    TrustDrifted(TrustDrifted),
    /// hookloop recreated the worktree of a held task.
    WorktreeRecreated(WorktreeRecreated),
    PauseRequested(Empty),
    /// A person wants the session to stop now.
    StopRequested(Empty),
    SessionPaused(Empty),
    SessionResumed(SessionResumed),
    SessionEnding(SessionOutcome),
    SessionEnded(SessionEnded),
    /// A person lets a session that ended continue.
    SessionReopened(SessionReopened),
    /// Something of the purse is set aside for a turn that is about to begin, or needs more.
    TurnReserved(TurnReserved),
    /// There is not enough in the purse for another turn.
    PurseExhausted(Shortage),
    /// A person wants to hear no more of a problem.
    ProblemDismissed(Dismissed),
    /// Somebody is about to send a message.
    NoticeClaimed(NoticeClaimed),
    NoticeSent(Empty),
    /// What it was about was dealt with before it was sent.
    NoticeDropped(Empty),
    NoticeFailed(NoticeFailed),
    /// A task came into somebody's hands where their number is bounded.
    SlotTaken(SlotTaken),
    ScheduleSet(Box<Set>),
    SchedulePaused(Empty),
    ScheduleResumed(Resumed),
    ScheduleRemoved(Empty),
    ScheduleFired(Fired),
    /// Those who run the fleet want something; or not any more.
    FleetOrdered(Ordered),
    FleetOrderLifted(Lifted),
    FleetBudgetSet(BudgetSet),
    /// Somebody that many workers ask wants to be left alone.
    Slowed(Slowed),
    /// A person accepted that acknowledged events are gone from the log.
    LossAccepted(LossAccepted),
    /// A person accepted the foreign messages in a shared log.
    ForeignAccepted(ForeignAccepted),
    /// A message in a shared log that is no event. Readers show it in place of the message; it is never written.
    MessageQuarantined(QuarantinedMessage),
    /// What a hook's `log` action wrote, or an event of a newer version.
    Other(Other),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Acknowledged events are gone, and a person goes on without them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossAccepted {
    /// The result of the check, in words.
    pub problem: String,
    /// The last event that was acknowledged.
    pub acknowledged: u64,
    /// The last event that was still there.
    pub found: u64,
    /// Messages that were removed from the stream of a shared log by then.
    #[serde(default)]
    pub removed: u64,
}

/// Foreign messages in a shared log, up to a place in it, are known to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignAccepted {
    /// The place of the last of these messages.
    pub through: u64,
    /// How many messages were quarantined by then.
    pub messages: u64,
}

/// The reason why a message in a shared log is no event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantinedMessage {
    /// The subject of the message on the server.
    pub subject: String,
    pub reason: String,
    pub bytes: u64,
}

/// Work began; with a claim, in the hands of its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    #[serde(default)]
    pub context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The silent agent whose claim this one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_over: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Which claim of the task it was.
    pub epoch: u64,
    pub reason: ReleaseReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Work is done; with a submission it waits to be merged, in nobody's hands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submitted {
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Submission>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    pub edges_removed: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeType {
    DependsOn,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// The task that waits.
    pub from_id: TaskId,
    /// The task that it waits for.
    pub to_id: TaskId,
    pub edge_type: EdgeType,
}

impl Dependency {
    /// `from` can't start before `to` is completed.
    pub fn new(from: TaskId, to: TaskId) -> Dependency {
        Dependency { from_id: from, to_id: to, edge_type: EdgeType::DependsOn }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedDependency {
    pub edge_id: String,
    pub from_id: TaskId,
    pub to_id: TaskId,
}

impl RemovedDependency {
    pub fn new(from: TaskId, to: TaskId) -> RemovedDependency {
        RemovedDependency { edge_id: format!("depends_on:{from}:{to}"), from_id: from, to_id: to }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Satisfied {
    /// The task that is ready.
    pub dependent_task_id: TaskId,
    /// Its last dependency.
    pub completed_task_id: TaskId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMetrics {
    pub goal: String,
    pub labels: Vec<String>,
    pub priority: Priority,
    /// From its start to its end; null if nobody started it.
    pub duration_ms: Option<i64>,
    pub deliverables: Vec<String>,
}

/// One run of a hook, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRan {
    /// The hook.
    pub hook_name: String,
    /// Where it ran.
    pub point: String,
    /// As [`crate::answer::Status`] names it.
    pub status: String,
    /// Its first process's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    /// When it ended: runs of several hooks are stored together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Runs that it took.
    pub attempts: u32,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A message for the user about the run, such as the parts of its answer that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Where this machine keeps the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The last lines of its output, if it failed and stopped nothing, or blocks and is no known test runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

/// A failure of a reaction, for the session that made the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReactionFailed {
    pub hook_name: String,
    /// The type of the event, or the hook point.
    pub point: String,
    /// The action that was not done; none if the hook itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    pub error: String,
    /// The last lines of the hook's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookError {
    pub hook_name: String,
    pub error: String,
    pub original_event: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionError {
    pub action_type: String,
    pub error: String,
    pub payload: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CascadeCut {
    pub hook_name: String,
    pub limit: CascadeLimit,
    /// Actions that were not done.
    pub dropped: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookSwitched {
    pub name: String,
    pub enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksTrusted {
    /// The digest of all hooks and gates, as `--trust` takes it.
    pub digest: String,
    /// The names of all gates.
    #[serde(default)]
    pub gates: Vec<String>,
    /// How the gates differ from those that were agreed to before, in words.
    #[serde(default)]
    pub changes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentsTrusted {
    /// The digest of everything that the repository has for agents.
    pub digest: String,
    /// The names of the agents and files.
    #[serde(default)]
    pub agents: Vec<String>,
}

/// Reactions are done for all due events up to `seq`; where `part` is set, that one is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorMoved {
    pub seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<CursorPart>,
}

/// A place inside the reactions to one event: too many dependents for one batch. Hooks are named,
/// because which ones there are may change between two batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorPart {
    pub hooks_done: Vec<String>,
    /// The hook that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Within that hook, the last dependent that was looked at.
    pub after: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRequested {
    pub run: RunId,
    pub workflow: String,
    pub steps: Vec<Action>,
    #[serde(default)]
    pub context: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesSeen {
    /// A digest of all of them.
    pub files: String,
    /// The commit that is checked out; none outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Only hooks and gates of this session had the files since the turn before, so changes are theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_hooks: bool,
}

/// What is set aside for a session's turn, beside what was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnReserved {
    pub session: SessionId,
    #[serde(flatten)]
    pub amount: Amount,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotTaken {
    pub task_id: TaskId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStep {
    pub step: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowFailed {
    pub step: usize,
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    #[serde(skip)]
    pub kind: String,
    #[serde(flatten)]
    pub data: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: &str, data: Value) {
        let text = data.to_string();
        let body = EventBody::decode(kind, FORMAT, &text).unwrap();
        assert_eq!(body.kind(), kind);
        assert_eq!(body.data(), data, "{kind}");
        assert_eq!(serde_json::from_str::<Value>(&body.encode()).unwrap(), data);
    }

    #[test]
    fn payloads_have_the_documented_fields() {
        check(
            "task_created",
            json!({"goal": "g", "deliverables": ["d"], "labels": ["l"], "priority": 0}),
        );
        check("task_started", json!({"context": null}));
        let claim = json!({"agent": "a", "epoch": 2, "leaseMs": 60000});
        check("task_started", json!({"context": null, "claim": claim, "tookOver": "b"}));
        check("task_released", json!({"epoch": 2, "reason": "expired"}));
        check("task_released", json!({"epoch": 2, "reason": "released", "note": "n"}));
        check("task_submitted", json!({}));
        check(
            "task_submitted",
            json!({"branch": "hookloop/a", "head": "c0ffee", "base": "main", "url": "u", "number": 7}),
        );
        check("task_reviewed", json!({"gate": "qa", "head": "c0ffee", "passed": true}));
        check("merge_planned", json!({"head": "c0ffee", "onto": "ba5e", "commit": "d00d"}));
        check("task_merged", json!({"head": "c0ffee", "commit": "d00d"}));
        check(
            "merge_awaited",
            json!({"head": "c0ffee", "reason": "r", "queue": {"position": 1, "state": "queued"}}),
        );
        check("task_returned", json!({"head": "c0ffee", "by": "qa", "reason": "r"}));
        check("task_completed", json!({"result": "r", "artifacts": ["a"]}));
        check("task_blocked", json!({"reason": "r", "requiredKnowledge": "k"}));
        check("task_deleted", json!({"edgesRemoved": 2}));
        check("dependency_added", json!({"fromId": "a", "toId": "b", "edgeType": "depends_on"}));
        check(
            "dependency_removed",
            json!({"edgeId": "depends_on:a:b", "fromId": "a", "toId": "b"}),
        );
        check("stop_hook_registered", json!({"id": "HOOK-1", "hookType": "default"}));
        check("task_noted", json!({"text": "t"}));
        check("task_checkpointed", json!({"id": "CP-1", "phase": "p", "step": 2}));
        check("turn_claimed", json!({"claim": "COMPLETE"}));
        let at = "2026-11-16T03:00:00.000Z";
        let (goal, spec) = ("g", json!({"deliverables": [], "labels": [], "priority": 2}));
        let with = |extra: Value| {
            let mut all = spec.as_object().unwrap().clone();
            all.extend(extra.as_object().unwrap().clone());
            Value::Object(all)
        };
        check("task_created", with(json!({"goal": goal, "notBefore": at})));
        check("slot_taken", json!({"taskId": "a"}));
        let task = with(json!({"goal": goal}));
        check(
            "schedule_set",
            json!({"cron": "0 3 * * *", "tz": "UTC", "overlap": "skip", "task": task, "next": at}),
        );
        check("schedule_resumed", json!({"next": at}));
        check("schedule_fired", json!({"slot": at, "taskId": "a", "next": at}));
        check("schedule_fired", json!({"slot": at, "byHand": true, "taskId": "a"}));
        check("schedule_fired", json!({"slot": at, "skippedFor": "a", "missedFrom": at}));
        check("dependency_satisfied", json!({"dependentTaskId": "a", "completedTaskId": "b"}));
    }

    #[test]
    fn what_a_newer_version_wrote_is_kept() {
        check("task_teleported", json!({"to": "mars"}));
        let newer = EventBody::decode("task_created", FORMAT + 1, r#"{"goals":["a"]}"#).unwrap();
        assert_eq!(newer.data(), json!({"goals": ["a"]}));
    }

    #[test]
    fn damage_is_an_error() {
        assert!(EventBody::decode("task_created", FORMAT, r#"{"goal":1}"#).is_err());
        assert!(EventBody::decode("task_created", FORMAT, "").is_err());
    }
}
