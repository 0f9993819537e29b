//! The stored format of events: names, meanings, and schemas of their data.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::*;

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the data of this `{kind}` event is damaged")]
    Data {
        kind: String,
        #[source]
        source: serde_json::Error,
    },
}

/// A type of event, for readers of logs.
#[derive(Clone, Debug)]
pub struct EventType {
    pub name: &'static str,
    /// The topic of the type.
    pub about: &'static str,
    pub meaning: &'static str,
    /// The JSON Schema of its data.
    pub schema: Value,
}

/// Returns the schema of written data. Optional fields may be missing there.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

impl EventBody {
    /// Reads stored data. A type or format that this version does not know becomes [`EventBody::Other`].
    pub fn decode(kind: &str, format: u32, data: &str) -> Result<EventBody, DecodeError> {
        let damaged = |source| DecodeError::Data { kind: kind.to_owned(), source };
        let current = renamed::current_name(kind, format, data).map_err(damaged)?;
        EventBody::decode_data(current, format, data)
    }

    /// Returns every type that this version writes.
    pub fn types() -> Vec<EventType> {
        EventBody::written_types()
    }
}

macro_rules! stored_types {
    ($($about:literal {
        $($(#[doc = $meaning:literal])+ $variant:ident($data:ty) => $name:literal,)*
    })*) => {
        impl EventBody {
            /// Returns the event's type, as stored and as hooks and filters spell it.
            pub fn kind(&self) -> &str {
                match self {
                    $($(EventBody::$variant(_) => $name,)*)*
                    EventBody::Other(other) => &other.kind,
                }
            }

            fn decode_data(kind: &str, format: u32, data: &str) -> Result<EventBody, DecodeError> {
                let damaged = |source| DecodeError::Data { kind: kind.to_owned(), source };
                match kind {
                    $($($name if format <= FORMAT => {
                        serde_json::from_str(data).map(EventBody::$variant).map_err(damaged)
                    })*)*
                    _ => {
                        let data = serde_json::from_str(data).map_err(damaged)?;
                        Ok(EventBody::Other(OtherEvent { kind: kind.to_owned(), data }))
                    }
                }
            }

            /// Returns the name of every type that this version writes.
            pub fn type_names() -> &'static [&'static str] {
                &[$($($name,)*)*]
            }

            fn written_types() -> Vec<EventType> {
                vec![$($(EventType {
                    name: $name,
                    about: $about,
                    meaning: concat!($($meaning),+).trim_ascii(),
                    schema: schema_of::<$data>(),
                },)*)*]
            }
        }
    };
}

stored_types! {
    "Tasks" {
        /// A task was added.
        TaskCreated(TaskSpec) => "task_created",
        /// Work on a task began; with a claim, by its agent.
        TaskStarted(TaskStarted) => "task_started",
        /// A claim ended before the work was done. The task may be started again.
        TaskReleased(TaskReleased) => "task_released",
        /// The work was submitted, and waits to be merged if the project delivers.
        TaskSubmitted(TaskSubmitted) => "task_submitted",
        /// A commit is about to be pushed to the task's branch.
        PushPlanned(PushPlanned) => "push_planned",
        /// A gate of `before_merge` reviewed a submission.
        TaskReviewed(TaskReviewed) => "task_reviewed",
        /// A merge is about to be made. A process that finds no result checks whether it was made.
        MergePlanned(MergePlanned) => "merge_planned",
        /// The submission is in its base branch.
        TaskMerged(TaskMerged) => "task_merged",
        /// A submission needs a person before it can be merged; without a reason, it no longer does.
        MergeBlocked(MergeBlocked) => "merge_blocked",
        /// The forge waits before it merges a submission: for checks, reviews or its merge queue. Without a reason, the wait is over.
        MergeAwaited(AwaitedMerge) => "merge_awaited",
        /// A person approved a submission, regardless of reviews.
        TaskApproved(TaskApproved) => "task_approved",
        /// A submitted task was sent back to be worked on again.
        TaskReturned(TaskReturned) => "task_returned",
        /// The task is completed, which is final.
        TaskCompleted(TaskOutcome) => "task_completed",
        /// The task is blocked until a person acts.
        TaskBlocked(TaskObstacle) => "task_blocked",
        /// The task is no longer blocked.
        TaskUnblocked(NoData) => "task_unblocked",
        /// The task was deleted. Its id is not used again.
        TaskDeleted(TaskDeleted) => "task_deleted",
        /// An agent registered a stop condition for the task by a tool.
        StopHookRegistered(StopHook) => "stop_hook_registered",
        /// The registered stop conditions of the task were removed.
        StopHooksCleared(NoData) => "stop_hooks_cleared",
        /// A note was added to the task, for its next holder.
        TaskNoted(TaskNoted) => "task_noted",
        /// An agent stored a checkpoint of its work on the task.
        TaskCheckpointed(TaskCheckpointed) => "task_checkpointed",
        /// A person allowed changes of tests in the work on the task.
        TestChangesAllowed(AllowedFindings) => "test_changes_allowed",
    }
    "The graph" {
        /// A task depends on another.
        DependencyAdded(TaskDependency) => "dependency_added",
        /// A task no longer depends on another.
        DependencyRemoved(RemovedDependency) => "dependency_removed",
        /// The last dependency of a task was completed. Announced by the hook `check-dependency-satisfaction`.
        DependencySatisfied(DependencySatisfied) => "dependency_satisfied",
        /// Bookkeeping: an edge between existing tasks was added; the next such edge is checked against this.
        GraphAdvanced(NoData) => "graph_advanced",
    }
    "Hooks and workflows" {
        /// The duration of an agent's task, recorded by the hook `track-agent-task-lifecycle`.
        AgentMetrics(AgentMetrics) => "agent_metrics",
        /// A hook that starts a process was run.
        HookRan(HookRan) => "hook_ran",
        /// A reaction failed.
        HookError(HookError) => "hook_error",
        /// An action of a hook was refused or cannot be read. Other actions of the same answer take effect.
        ActionError(ActionError) => "action_error",
        /// A cascade of hooks reached a limit, and its further actions were dropped.
        CascadeLimitReached(CascadeLimitReached) => "cascade_limit_reached",
        /// A person enabled a hook.
        HookEnabled(HookSwitch) => "hook_enabled",
        /// A person disabled a hook.
        HookDisabled(HookSwitch) => "hook_disabled",
        /// A person trusted the repository's hooks and gates as they were then.
        HooksTrusted(HooksTrusted) => "hooks_trusted",
        /// A person trusted the repository's agents as they were then.
        AgentsTrusted(AgentsTrusted) => "agents_trusted",
        /// Bookkeeping: the position up to which reactions are done.
        CursorMoved(CursorMoved) => "cursor_moved",
        /// A workflow is to run, with these steps.
        WorkflowRequested(WorkflowRequested) => "workflow_requested",
        /// A step of a workflow is done.
        WorkflowStepCompleted(WorkflowStep) => "workflow_step_completed",
        /// A step of a workflow failed, which ends the run.
        WorkflowFailed(WorkflowFailed) => "workflow_failed",
        /// All steps of a workflow are done.
        WorkflowCompleted(NoData) => "workflow_completed",
    }
    "Sessions" {
        /// A session began, with its plan.
        SessionStarted(SessionPlan) => "session_started",
        /// The hooks of a point have run.
        HookPointCompleted(HookPointCompleted) => "hook_point_completed",
        /// Text waits for the agent's next prompt.
        OutputPiped(PipedOutput) => "output_piped",
        /// A reaction to an event of the session failed, or one of its actions was refused. The session continues.
        ReactionFailed(ReactionFailed) => "reaction_failed",
        /// The project's files between turns, by digest.
        WorktreeSnapshotted(WorktreeSnapshotted) => "worktree_snapshotted",
        /// A prompt is about to be sent.
        IterationStarted(IterationStarted) => "iteration_started",
        /// A turn that is no iteration is about to begin: recovery or final delivery.
        TurnStarted(TurnStarted) => "turn_started",
        /// The agent reported by a tool, during its turn, that it is done or can't continue.
        CompletionClaimed(CompletionClaimed) => "completion_claimed",
        /// A turn and every process that it started have ended.
        TurnEnded(TurnEnded) => "turn_ended",
        /// The stop conditions decided whether the iteration was the last one.
        StopEvaluated(StopEvaluated) => "stop_evaluated",
        /// The record of one gate's run. It holds for one state of the project's files.
        ReceiptRecorded(Receipt) => "receipt_recorded",
        /// The results of the single checks of one gate's run: tests, findings of linters.
        ChecksRecorded(ChecksRecorded) => "checks_recorded",
        /// The joint verdict of the gates on a claim.
        GatesEvaluated(GatesEvaluated) => "gates_evaluated",
        /// The agent reports that it is done, or its work is to be submitted, and nothing changed since the
        /// work began.
        EmptyDifferenceFound(EmptyDifferenceFound) => "empty_difference_found",
        /// A session is about to end without progress, and its gates were run on work that the agent did not report
        /// as complete. Nothing is completed by it.
        UnclaimedWorkChecked(UnclaimedWorkChecked) => "unclaimed_work_checked",
        /// The result of submitting a task's work.
        SubmissionEvaluated(SubmissionEvaluated) => "submission_evaluated",
        /// The gates have failed as often as the retry limit allows, and a decision is requested.
        DecisionRequested(DecisionRequested) => "decision_requested",
        /// The decision at the retry limit.
        DecisionMade(DecisionMade) => "decision_made",
        /// The session claimed a task.
        SessionTaskClaimed(SessionTaskClaimed) => "session_task_claimed",
        /// The session no longer has its task.
        SessionTaskReleased(SessionTaskReleased) => "session_task_released",
        /// A hook stored a checkpoint for later prompts.
        CheckpointMade(CheckpointMade) => "checkpoint_made",
        /// Hooks differ from those that the session began with. The session continues with the hooks that it
        /// began with.
        TrustDriftDetected(TrustDriftDetected) => "trust_drift_detected",
        /// hookloop recreated the worktree of the session's task from its branch: the old one was gone or damaged.
        WorktreeRecreated(WorktreeRecreated) => "worktree_recreated",
        /// A pause was requested before the next iteration of the session.
        PauseRequested(NoData) => "pause_requested",
        /// A person requested that the session stops now. Its agent and hooks are ended.
        StopRequested(NoData) => "stop_requested",
        /// A person restored files to a state before or after a turn of the session.
        FilesRestored(FilesRestored) => "files_restored",
        /// The session is paused.
        SessionPaused(NoData) => "session_paused",
        /// A program resumed the session.
        SessionResumed(SessionResumed) => "session_resumed",
        /// The outcome of a session that is about to end. Pending output is delivered first.
        SessionEnding(SessionOutcome) => "session_ending",
        /// The outcome of a session, and whether its work is proven.
        SessionEnded(SessionEnded) => "session_ended",
        /// A person reopened a session that had ended. The session is paused until it is resumed.
        SessionReopened(SessionReopened) => "session_reopened",
    }
    "The budget" {
        /// Bookkeeping: a part of the shared budget is reserved for a turn, or the reservation is extended.
        BudgetReserved(BudgetReserved) => "budget_reserved",
        /// The shared budget does not allow another turn.
        BudgetExhausted(Shortage) => "budget_exhausted",
    }
    "The inbox" {
        /// A person dismissed a problem.
        ProblemDismissed(ProblemDismissed) => "problem_dismissed",
        /// A process is about to send a notification.
        NotificationClaimed(NotificationClaimed) => "notification_claimed",
        /// A notification was sent.
        NotificationSent(NoData) => "notification_sent",
        /// The problem of a notification was solved before the notification was sent.
        NotificationDropped(NoData) => "notification_dropped",
        /// A notification could not be sent, and is retried.
        NotificationFailed(NotificationFailed) => "notification_failed",
    }
    "Schedules" {
        /// Bookkeeping: a task was claimed under a WIP limit.
        WipPermitAcquired(WipPermitAcquired) => "wip_permit_acquired",
        /// A schedule was added or changed.
        ScheduleSet(Box<ScheduleSet>) => "schedule_set",
        /// A schedule was paused.
        SchedulePaused(NoData) => "schedule_paused",
        /// A schedule was resumed.
        ScheduleResumed(ScheduleResumed) => "schedule_resumed",
        /// A schedule was removed.
        ScheduleRemoved(NoData) => "schedule_removed",
        /// A schedule was due, or a person triggered it.
        ScheduleFired(ScheduleFired) => "schedule_fired",
    }
    "The fleet" {
        /// An operator set a fleet directive.
        FleetDirectiveSet(FleetDirectiveSet) => "fleet_directive_set",
        /// An operator cleared a fleet directive.
        FleetDirectiveCleared(FleetDirectiveCleared) => "fleet_directive_cleared",
        /// An operator set the budget of the fleet.
        FleetBudgetSet(BudgetSet) => "fleet_budget_set",
        /// A provider or forge returned a rate limit. Workers wait until `until`.
        RateLimited(RateLimitReported) => "rate_limited",
    }
    "The log itself" {
        /// A person accepted that acknowledged events are gone, with `hookloop rebuild --accept-loss`.
        LossAccepted(LossAccepted) => "log_loss_accepted",
        /// A person accepted the foreign messages in a shared log, with `hookloop verify --accept-foreign`.
        ForeignAccepted(ForeignAccepted) => "foreign_messages_accepted",
        /// A message in a shared log is no event of hookloop. Every reader skips the message and shows this in its place.
        MessageQuarantined(QuarantinedMessage) => "message_quarantined",
    }
}

impl EventBody {
    /// Returns the data as stored JSON.
    pub fn data(&self) -> Value {
        match self {
            EventBody::Other(other) => other.data.clone(),
            body => serde_json::to_value(body).unwrap_or(Value::Null),
        }
    }

    /// Returns the data as the JSON text that is stored and hashed.
    pub fn encode(&self) -> String {
        let text = match self {
            EventBody::Other(other) => serde_json::to_string(&other.data),
            body => serde_json::to_string(body),
        };
        text.unwrap_or_else(|_| "null".to_owned())
    }

    /// Whether the event is bookkeeping, which readers of the log can ignore.
    pub fn is_bookkeeping(&self) -> bool {
        matches!(
            self,
            EventBody::CursorMoved(_)
                | EventBody::GraphAdvanced(_)
                | EventBody::BudgetReserved(_)
                | EventBody::WipPermitAcquired(_)
        )
    }
}
