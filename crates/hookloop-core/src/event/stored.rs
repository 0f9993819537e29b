//! How events are stored: their types, what each means, and the shape of its data.

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

/// A type of event, for those who read logs.
#[derive(Clone, Debug)]
pub struct EventType {
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    pub meaning: &'static str,
    /// The JSON Schema of its data.
    pub schema: Value,
}

/// The shape of what is written: what is left out there need not be there.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

macro_rules! stored_types {
    ($($about:literal {
        $($(#[doc = $meaning:literal])+ $variant:ident($data:ty) => $name:literal,)*
    })*) => {
        impl EventBody {
            /// The event's type, as stored and as hooks and filters spell it.
            pub fn kind(&self) -> &str {
                match self {
                    $($(EventBody::$variant(_) => $name,)*)*
                    EventBody::Other(other) => &other.kind,
                }
            }

            /// Reads stored data. A type or format this program does not know becomes [`EventBody::Other`].
            pub fn decode(kind: &str, format: u32, data: &str) -> Result<EventBody, DecodeError> {
                let damaged = |source| DecodeError::Data { kind: kind.to_owned(), source };
                match kind {
                    $($($name if format <= FORMAT => {
                        serde_json::from_str(data).map(EventBody::$variant).map_err(damaged)
                    })*)*
                    _ => {
                        let data = serde_json::from_str(data).map_err(damaged)?;
                        Ok(EventBody::Other(Other { kind: kind.to_owned(), data }))
                    }
                }
            }

            /// Every type that this version writes.
            pub fn types() -> Vec<EventType> {
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
        /// Work began; with a claim, in the hands of its agent.
        TaskStarted(Started) => "task_started",
        /// A claim ended and the work did not: it may be started again.
        TaskReleased(Released) => "task_released",
        /// The work is handed in, and waits to be merged if the project delivers.
        TaskSubmitted(Submitted) => "task_submitted",
        /// A commit is about to be pushed to the task's branch.
        PushPlanned(Pushing) => "push_planned",
        /// A gate of `before_merge` said what it thinks of a submission.
        TaskReviewed(Reviewed) => "task_reviewed",
        /// A merge is about to be made. Whoever finds this and no more looks whether it was.
        MergePlanned(Planned) => "merge_planned",
        /// It is in the base.
        TaskMerged(Merged) => "task_merged",
        /// A submission can't be merged without a human; without a reason, it can again.
        MergeHeld(Held) => "merge_held",
        /// The forge waits before it merges a submission: for checks, reviews or its merge queue. Without a reason, the wait is over.
        MergeAwaited(AwaitedMerge) => "merge_awaited",
        /// A person takes a submission as it is, whatever reviewers said.
        TaskApproved(Approved) => "task_approved",
        /// What was submitted is to be worked on again.
        TaskReturned(Returned) => "task_returned",
        /// It is done, and stays done.
        TaskCompleted(Outcome) => "task_completed",
        /// It can't go on without somebody.
        TaskBlocked(Obstacle) => "task_blocked",
        /// It can.
        TaskUnblocked(Empty) => "task_unblocked",
        /// It was deleted; its id is not used again.
        TaskDeleted(Deleted) => "task_deleted",
        /// A way to stop was registered for it, by an agent's tool.
        StopHookRegistered(StopHook) => "stop_hook_registered",
        /// Those that were registered hold no longer.
        StopHooksCleared(Empty) => "stop_hooks_cleared",
        /// Somebody said something about it, for whoever takes it.
        TaskNoted(Noted) => "task_noted",
        /// An agent keeps where it is.
        TaskCheckpointed(Checkpointed) => "task_checkpointed",
    }
    "The graph" {
        /// A task waits for another.
        DependencyAdded(Dependency) => "dependency_added",
        /// It no longer does.
        DependencyRemoved(RemovedDependency) => "dependency_removed",
        /// The last dependency of a task was completed. Announced by the hook `check-dependency-satisfaction`.
        DependencySatisfied(Satisfied) => "dependency_satisfied",
        /// Bookkeeping: an edge between existing tasks was added; the next such edge is checked against this.
        GraphAdvanced(Empty) => "graph_advanced",
    }
    "Hooks and workflows" {
        /// How long an agent took, by the hook `track-agent-task-lifecycle`.
        AgentMetrics(AgentMetrics) => "agent_metrics",
        /// A hook that starts something was run.
        HookRan(HookRan) => "hook_ran",
        /// A reaction failed.
        HookError(HookError) => "hook_error",
        /// An action of a hook was refused or cannot be read. Other actions of the same answer take effect.
        ActionError(ActionError) => "action_error",
        /// Hooks that set off hooks were ended at a limit.
        CascadeCut(CascadeCut) => "cascade_cut",
        /// Somebody switched a hook on or off.
        HookSwitched(HookSwitched) => "hook_switched",
        /// A person agreed to the repository's hooks and gates, as they were then.
        HooksTrusted(HooksTrusted) => "hooks_trusted",
        /// A person agreed to the repository's agents, as they were then.
        AgentsTrusted(AgentsTrusted) => "agents_trusted",
        /// Bookkeeping: up to where reactions are done.
        CursorMoved(CursorMoved) => "cursor_moved",
        /// A workflow is to run, with these steps.
        WorkflowRequested(WorkflowRequested) => "workflow_requested",
        /// One of its steps is done.
        WorkflowStepCompleted(WorkflowStep) => "workflow_step_completed",
        /// A step could not be done, which ends the run.
        WorkflowFailed(WorkflowFailed) => "workflow_failed",
        /// All of its steps are done.
        WorkflowCompleted(Empty) => "workflow_completed",
    }
    "Sessions" {
        /// A session began, with all that was decided for it.
        SessionStarted(Plan) => "session_started",
        /// The hooks of a point have run.
        PointPassed(PointPassed) => "point_passed",
        /// Text waits for the agent's next prompt.
        OutputPiped(Piped) => "output_piped",
        /// A reaction to an event of the session failed, or one of its actions was refused. The session continues.
        ReactionFailed(ReactionFailed) => "reaction_failed",
        /// The project's files between turns, by digest.
        FilesSeen(FilesSeen) => "files_seen",
        /// A prompt is about to be sent.
        IterationStarted(IterationStarted) => "iteration_started",
        /// A turn that is no iteration is about to begin: recovery or final delivery.
        TurnStarted(TurnStarted) => "turn_started",
        /// The agent said by a tool, during its turn, that it is done or can't go on.
        TurnClaimed(Claimed) => "turn_claimed",
        /// A turn is over, with everything that it started.
        TurnEnded(TurnEnded) => "turn_ended",
        /// Whether the iteration was the last one.
        StopDecided(StopDecided) => "stop_decided",
        /// The record of one gate's run. It holds for one state of the project's files.
        ReceiptMade(Receipt) => "receipt_made",
        /// What the gates said together to a claim.
        GatesJudged(GatesJudged) => "gates_judged",
        /// The agent claims to be done, or its work is to be submitted, and nothing changed since the work began.
        EmptyDifferenceFound(EmptyDifferenceFound) => "empty_difference_found",
        /// A session is about to end without progress, and its gates were run on work that the agent did not report
        /// as complete. Nothing is completed by it.
        UnclaimedWorkChecked(UnclaimedWorkChecked) => "unclaimed_work_checked",
        /// What came of submitting a task's work.
        SubmitJudged(SubmitJudged) => "submit_judged",
        /// Gates have sent the agent back as often as they may, and somebody is asked what to do.
        RetryLimitAsked(RetryLimitAsked) => "retry_limit_asked",
        /// What is done about gates that have sent the agent back as often as they may.
        RetryLimitAnswered(RetryLimitAnswered) => "retry_limit_answered",
        /// The session has a task.
        TaskTaken(TaskTaken) => "task_taken",
        /// It has it no longer.
        TaskLeft(TaskLeft) => "task_left",
        /// A hook keeps something for later prompts.
        CheckpointMade(CheckpointMade) => "checkpoint_made",
        /// Hooks are not what they were when the session began. It goes on with those that it had.
        TrustDrifted(TrustDrifted) => "trust_drift",
        /// hookloop recreated the worktree of the session's task from its branch: the old one was gone or damaged.
        WorktreeRecreated(WorktreeRecreated) => "worktree_recreated",
        /// It is to rest before its next iteration.
        PauseRequested(Empty) => "pause_requested",
        /// A person wants the session to stop now: its agent and hooks are ended.
        StopRequested(Empty) => "stop_requested",
        /// It rests.
        SessionPaused(Empty) => "session_paused",
        /// A program took it on.
        SessionResumed(SessionResumed) => "session_resumed",
        /// How it will end; what is left to say is delivered first.
        SessionEnding(SessionOutcome) => "session_ending",
        /// How the session ended, and whether its work is proven.
        SessionEnded(SessionEnded) => "session_ended",
        /// A person lets a session that ended continue. The session is paused until it is resumed.
        SessionReopened(SessionReopened) => "session_reopened",
    }
    "The purse" {
        /// Bookkeeping: something is set aside for a turn that is about to begin, or needs more.
        TurnReserved(TurnReserved) => "turn_reserved",
        /// There is not enough for another turn.
        PurseExhausted(Shortage) => "purse_exhausted",
    }
    "The inbox" {
        /// A person wants to hear no more of a problem.
        ProblemDismissed(Dismissed) => "problem_dismissed",
        /// Somebody is about to send a message.
        NoticeClaimed(NoticeClaimed) => "notice_claimed",
        /// It was sent.
        NoticeSent(Empty) => "notice_sent",
        /// What it was about was dealt with before it was sent.
        NoticeDropped(Empty) => "notice_dropped",
        /// It could not be sent, and is tried again.
        NoticeFailed(NoticeFailed) => "notice_failed",
    }
    "Schedules" {
        /// Bookkeeping: a task came into somebody's hands where their number is bounded.
        SlotTaken(SlotTaken) => "slot_taken",
        /// There is a schedule, or it is another now.
        ScheduleSet(Box<Set>) => "schedule_set",
        /// It adds no tasks.
        SchedulePaused(Empty) => "schedule_paused",
        /// It does again.
        ScheduleResumed(Resumed) => "schedule_resumed",
        /// There is none any more.
        ScheduleRemoved(Empty) => "schedule_removed",
        /// Its time has come, or a person did not wait for it.
        ScheduleFired(Fired) => "schedule_fired",
    }
    "The fleet" {
        /// Those who run the fleet want something.
        FleetOrdered(Ordered) => "fleet_ordered",
        /// They do not want it any more.
        FleetOrderLifted(Lifted) => "fleet_order_lifted",
        /// What all of it may spend from now on.
        FleetBudgetSet(BudgetSet) => "fleet_budget_set",
        /// Somebody that many workers ask wants to be left alone.
        Slowed(Slowed) => "slowed",
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
    /// The data as stored JSON.
    pub fn data(&self) -> Value {
        match self {
            EventBody::Other(other) => other.data.clone(),
            body => serde_json::to_value(body).unwrap_or(Value::Null),
        }
    }

    /// The data as the JSON text that is stored and hashed.
    pub fn encode(&self) -> String {
        let text = match self {
            EventBody::Other(other) => serde_json::to_string(&other.data),
            body => serde_json::to_string(body),
        };
        text.unwrap_or_else(|_| "null".to_owned())
    }

    /// Whether the event only keeps the books, and tells a reader of the log nothing.
    pub fn is_bookkeeping(&self) -> bool {
        matches!(
            self,
            EventBody::CursorMoved(_)
                | EventBody::GraphAdvanced(_)
                | EventBody::TurnReserved(_)
                | EventBody::SlotTaken(_)
        )
    }
}
