//! The facts a log holds, and their stored format.
//!
//! An event is stored as its type, the version of that type's format, and its data as JSON. An
//! unknown type is kept unchanged, because an older program may read a newer log.

mod renamed;
mod seed_names;
mod stored;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{Action, CoreLog};
use crate::cascade::EventCause;
use crate::fleet::{BudgetSet, FleetDirectiveCleared, FleetDirectiveSet, RateLimitReported};
use crate::id::{EventId, RunId, Subject, TaskId};
use crate::payload::delivery::{
    AwaitedMerge, DeliveryFact, MergeBlocked, MergePlanned, PushPlanned, TaskApproved, TaskMerged,
    TaskReturned, TaskReviewed,
};
use crate::payload::evidence::ChecksRecorded;
use crate::payload::inbox::{NotificationClaimed, NotificationFailed, ProblemDismissed};
use crate::payload::piped::{HookPointCompleted, PipedOutput};
use crate::payload::plan::SessionPlan;
use crate::payload::session::{
    AllowedFindings, CheckpointMade, FilesRestored, SessionEnded, SessionOutcome, SessionReopened,
    SessionResumed, SessionTaskClaimed, SessionTaskReleased, TrustDriftDetected, WorktreeRecreated,
};
use crate::payload::turn::{CompletionClaimed, IterationStarted, TurnEnded, TurnStarted};
use crate::payload::verdict::{
    DecisionMade, DecisionRequested, EmptyDifferenceFound, GatesEvaluated, Receipt, StopEvaluated,
    SubmissionEvaluated, UnclaimedWorkChecked,
};
use crate::remark::{StopHook, TaskCheckpointed, TaskNoted};
use crate::schedule::{ScheduleFired, ScheduleResumed, ScheduleSet};
use crate::shared_budget::Shortage;
use crate::task::{TaskObstacle, TaskOutcome, TaskSpec};
use crate::time::Timestamp;

pub use crate::payload::NoData;
pub use crate::payload::hook_run::{
    ActionError, AgentsTrusted, CascadeLimitReached, CursorMoved, CursorPart, HookError, HookRan,
    HookSwitch, HooksTrusted, ReactionFailed,
};
pub use crate::payload::log::{ForeignAccepted, LossAccepted, QuarantinedMessage};
pub use crate::payload::session::WorktreeSnapshotted;
pub use crate::payload::task::{
    AgentMetrics, DependencySatisfied, EdgeType, RemovedDependency, TaskDeleted, TaskDependency,
    TaskReleased, TaskStarted, TaskSubmitted, WipPermitAcquired,
};
pub use crate::payload::turn::BudgetReserved;
pub use crate::point::HOOK_NAMESPACE;
pub use stored::{DecodeError, EventType};

/// The version of the stored format that this program writes.
pub const FORMAT: u32 = 2;

/// The node of events that are about no task.
pub const SYSTEM_NODE: &str = "system";

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub at: Timestamp,
    pub subject: Subject,
    /// The actor: a user's name, or `hook:<name>`.
    pub actor: String,
    pub cause: Option<EventCause>,
    /// Reactions to this event have not run in the batch that stored it; the dispatcher owes them.
    pub due: bool,
    pub body: EventBody,
}

impl Event {
    /// Returns the task an event is about, or `system`.
    pub fn node_id(&self) -> &str {
        self.subject.task().map_or(SYSTEM_NODE, TaskId::as_str)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventBody {
    TaskCreated(TaskSpec),
    TaskStarted(TaskStarted),
    /// A claim ended before the work was done. The task may be started again.
    TaskReleased(TaskReleased),
    TaskSubmitted(TaskSubmitted),
    PushPlanned(PushPlanned),
    TaskReviewed(TaskReviewed),
    MergePlanned(MergePlanned),
    TaskMerged(TaskMerged),
    /// A submission needs a person before it can be merged, or no longer does.
    MergeBlocked(MergeBlocked),
    /// The forge merges a submission later, or does not allow its merge yet.
    MergeAwaited(AwaitedMerge),
    /// A person approved a submission, regardless of reviews.
    TaskApproved(TaskApproved),
    /// A submitted task was sent back to be worked on again.
    TaskReturned(TaskReturned),
    TaskCompleted(TaskOutcome),
    TaskBlocked(TaskObstacle),
    TaskUnblocked(NoData),
    TaskDeleted(TaskDeleted),
    StopHookRegistered(StopHook),
    StopHooksCleared(NoData),
    TaskNoted(TaskNoted),
    TaskCheckpointed(TaskCheckpointed),
    /// A person allowed changes of tests in the work on a task.
    TestChangesAllowed(AllowedFindings),
    DependencyAdded(TaskDependency),
    DependencyRemoved(RemovedDependency),
    DependencySatisfied(DependencySatisfied),
    /// An edge between existing tasks was added: the version that the next such edge is checked against.
    GraphAdvanced(NoData),
    AgentMetrics(AgentMetrics),
    /// A hook that starts something was run.
    HookRan(HookRan),
    HookError(HookError),
    ActionError(ActionError),
    CascadeLimitReached(CascadeLimitReached),
    HookEnabled(HookSwitch),
    HookDisabled(HookSwitch),
    /// A person trusted the hooks and gates of the repository as they were then.
    HooksTrusted(HooksTrusted),
    /// A person trusted the agents of the repository as they were then.
    AgentsTrusted(AgentsTrusted),
    CursorMoved(CursorMoved),
    WorkflowRequested(WorkflowRequested),
    WorkflowStepCompleted(WorkflowStep),
    WorkflowFailed(WorkflowFailed),
    WorkflowCompleted(NoData),
    SessionStarted(SessionPlan),
    HookPointCompleted(HookPointCompleted),
    OutputPiped(PipedOutput),
    /// A reaction to an event of the session failed, or one of its actions was refused.
    ReactionFailed(ReactionFailed),
    /// The project's files between turns.
    WorktreeSnapshotted(WorktreeSnapshotted),
    IterationStarted(IterationStarted),
    TurnStarted(TurnStarted),
    /// The agent reported by a tool, during its turn, that it is done or can't continue.
    CompletionClaimed(CompletionClaimed),
    TurnEnded(TurnEnded),
    StopEvaluated(StopEvaluated),
    ReceiptRecorded(Receipt),
    ChecksRecorded(ChecksRecorded),
    GatesEvaluated(GatesEvaluated),
    /// A claim or a submission changes nothing.
    EmptyDifferenceFound(EmptyDifferenceFound),
    UnclaimedWorkChecked(UnclaimedWorkChecked),
    /// The result of submitting a task's work.
    SubmissionEvaluated(SubmissionEvaluated),
    DecisionRequested(DecisionRequested),
    DecisionMade(DecisionMade),
    SessionTaskClaimed(SessionTaskClaimed),
    SessionTaskReleased(SessionTaskReleased),
    CheckpointMade(CheckpointMade),
    TrustDriftDetected(TrustDriftDetected),
    /// hookloop recreated the worktree of a held task.
    WorktreeRecreated(WorktreeRecreated),
    PauseRequested(NoData),
    /// A person requested that the session stops now.
    StopRequested(NoData),
    /// A person restored files to a state before or after a turn.
    FilesRestored(FilesRestored),
    SessionPaused(NoData),
    SessionResumed(SessionResumed),
    SessionEnding(SessionOutcome),
    SessionEnded(SessionEnded),
    /// A person reopened a session that had ended.
    SessionReopened(SessionReopened),
    /// A part of the shared budget is reserved for a turn, or the reservation is extended.
    BudgetReserved(BudgetReserved),
    /// The shared budget does not allow another turn.
    BudgetExhausted(Shortage),
    /// A person dismissed a problem.
    ProblemDismissed(ProblemDismissed),
    /// A process is about to send a notification.
    NotificationClaimed(NotificationClaimed),
    NotificationSent(NoData),
    /// The problem of a notification was solved before it was sent.
    NotificationDropped(NoData),
    NotificationFailed(NotificationFailed),
    /// A task was claimed under a WIP limit.
    WipPermitAcquired(WipPermitAcquired),
    ScheduleSet(Box<ScheduleSet>),
    SchedulePaused(NoData),
    ScheduleResumed(ScheduleResumed),
    ScheduleRemoved(NoData),
    ScheduleFired(ScheduleFired),
    /// An operator set or cleared a fleet directive.
    FleetDirectiveSet(FleetDirectiveSet),
    FleetDirectiveCleared(FleetDirectiveCleared),
    FleetBudgetSet(BudgetSet),
    /// A provider or forge returned a rate limit.
    RateLimited(RateLimitReported),
    /// A person accepted that acknowledged events are gone from the log.
    LossAccepted(LossAccepted),
    /// A person accepted the foreign messages in a shared log.
    ForeignAccepted(ForeignAccepted),
    /// A message in a shared log that is no event. Readers show it in place of the message; it is never written.
    MessageQuarantined(QuarantinedMessage),
    /// An event of a hook's `log` action, or of a newer version.
    Other(OtherEvent),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRequested {
    pub run: RunId,
    pub workflow: String,
    pub steps: Vec<Action>,
    #[serde(default)]
    pub context: Value,
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
pub struct OtherEvent {
    #[serde(skip)]
    pub kind: String,
    #[serde(flatten)]
    pub data: Value,
}

impl From<DeliveryFact> for EventBody {
    fn from(fact: DeliveryFact) -> EventBody {
        match fact {
            DeliveryFact::Reviewed(reviewed) => EventBody::TaskReviewed(reviewed),
            DeliveryFact::Planned(planned) => EventBody::MergePlanned(planned),
            DeliveryFact::Merged(merged) => EventBody::TaskMerged(merged),
            DeliveryFact::Held(held) => EventBody::MergeBlocked(held),
            DeliveryFact::Awaited(awaited) => EventBody::MergeAwaited(awaited),
        }
    }
}

impl From<CoreLog> for EventBody {
    fn from(entry: CoreLog) -> EventBody {
        match entry {
            CoreLog::DependencySatisfied(satisfied) => EventBody::DependencySatisfied(satisfied),
            CoreLog::AgentMetrics(metrics) => EventBody::AgentMetrics(metrics),
        }
    }
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
        let claim = json!({"agent": "a", "epoch": 2, "lease_ms": 60000});
        check("task_started", json!({"context": null, "claim": claim, "took_over": "b"}));
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
        check("task_blocked", json!({"reason": "r", "required_knowledge": "k"}));
        check("task_deleted", json!({"edges_removed": 2}));
        check("dependency_added", json!({"from_id": "a", "to_id": "b", "edge_type": "depends_on"}));
        check(
            "dependency_removed",
            json!({"edge_id": "depends_on:a:b", "from_id": "a", "to_id": "b"}),
        );
        check("stop_hook_registered", json!({"id": "HOOK-1", "hook_type": "default"}));
        check("task_noted", json!({"text": "t"}));
        check("task_checkpointed", json!({"id": "CP-1", "phase": "p", "step": 2}));
        check("test_changes_allowed", json!({"by": "ada", "digests": ["0f"]}));
        check("completion_claimed", json!({"claim": "COMPLETE"}));
        let at = "2026-11-16T03:00:00.000Z";
        let (goal, spec) = ("g", json!({"deliverables": [], "labels": [], "priority": 2}));
        let with = |extra: Value| {
            let mut all = spec.as_object().unwrap().clone();
            all.extend(extra.as_object().unwrap().clone());
            Value::Object(all)
        };
        check("task_created", with(json!({"goal": goal, "not_before": at})));
        check("wip_permit_acquired", json!({"task_id": "a"}));
        let task = with(json!({"goal": goal}));
        check(
            "schedule_set",
            json!({"cron": "0 3 * * *", "tz": "UTC", "overlap": "skip", "task": task, "next": at}),
        );
        check("schedule_resumed", json!({"next": at}));
        check("schedule_fired", json!({"occurrence": at, "task_id": "a", "next": at}));
        check("schedule_fired", json!({"occurrence": at, "by_hand": true, "task_id": "a"}));
        check("schedule_fired", json!({"occurrence": at, "skipped_for": "a", "missed_from": at}));
        check("dependency_satisfied", json!({"dependent_task_id": "a", "completed_task_id": "b"}));
    }

    #[test]
    fn events_of_a_newer_version_are_kept() {
        check("task_teleported", json!({"to": "mars"}));
        let newer = EventBody::decode("task_created", FORMAT + 1, r#"{"goals":["a"]}"#).unwrap();
        assert_eq!(newer.data(), json!({"goals": ["a"]}));
    }

    #[test]
    fn an_event_with_damaged_data_is_an_error() {
        assert!(EventBody::decode("task_created", FORMAT, r#"{"goal":1}"#).is_err());
        assert!(EventBody::decode("task_created", FORMAT, "").is_err());
    }
}
