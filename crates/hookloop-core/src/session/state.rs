//! The state of a session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::progress::Progress;
use crate::id::TaskId;
use crate::payload::delivery::Submission;
use crate::payload::piped::PipedOutput;
use crate::payload::plan::SessionPlan;
use crate::payload::session::{SessionOutcome, SessionTaskClaimed, TaskExit, WorktreeSnapshotted};
use crate::payload::turn::{CompletionClaimed, TurnEnded, TurnKind};
use crate::payload::verdict::{GatesEvaluated, Receipt, StopEvaluated, UnclaimedWorkChecked};
use crate::shared_budget::Shortage;
use crate::usage::Usage;

pub use crate::payload::piped::MESSAGE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPhase {
    /// The hooks of session_start are due.
    Starting,
    /// The worktree of the task must be prepared.
    Settling,
    /// The next iteration is due.
    Ready,
    /// A turn is running, or was running when the program ended.
    Turn(TurnKind),
    /// The hooks of post_iteration are due.
    After,
    /// The stop conditions must be evaluated.
    Deciding,
    /// The gates must run.
    Gating,
    /// The hooks of on_error are due.
    Failed {
        error: String,
    },
    /// A recovery turn with the output of on_error may be due.
    Recovering,
    /// The gates have reached the retry limit.
    AtRetryLimit,
    /// The gates passed, and the task's work must be submitted.
    Submitting,
    /// The hooks of after_submit are due.
    Submitted,
    /// The session is about to leave its task.
    TaskOver {
        how: TaskExit,
        reason: Option<String>,
    },
    /// Final delivery, then session_end.
    Ending,
    Paused,
    Ended,
}

/// An output that waits until its work continues.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WithheldOutput {
    pub(super) task: Option<TaskId>,
    pub(super) piped: PipedOutput,
}

/// A conversation with the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConversation {
    /// The agent's id of the conversation.
    pub id: String,
    /// The usage of all its turns.
    pub usage: Usage,
}

/// The state of a session, folded from its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub plan: SessionPlan,
    /// The number of starts of the session.
    pub run: u32,
    pub phase: SessionPhase,
    /// The last iteration that began.
    pub iteration: u32,
    /// The attempt of the last turn.
    pub attempt: u32,
    /// Turns that ended.
    pub turns: u32,
    /// The git tree of all files after the last turn; none if it is unknown.
    pub last_tree: Option<String>,
    /// The texts that wait for a prompt, oldest first.
    pub pending: VecDeque<PipedOutput>,
    /// The texts in the prompt of the running turn.
    pub bound: Vec<PipedOutput>,
    /// Outputs that no turn followed because a person had to decide: the next prompt about the same work has them.
    pub(super) withheld: Vec<WithheldOutput>,
    pub task: Option<SessionTaskClaimed>,
    /// Failed turns in a row.
    pub errors: u32,
    /// The reason why no agent of the session can take another turn before a person acts.
    pub fault: Option<String>,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u32,
    /// Number of agents that the session has given up on.
    pub fallen_back: usize,
    /// Rate-limited turns in a row.
    pub waits: u32,
    /// The end of the rate limit, if it is known.
    pub wait_until_ms: Option<u64>,
    /// The last conversation, which a turn may continue.
    pub conversation: Option<AgentConversation>,
    /// Gate failures without an improvement of the work.
    pub retries: u32,
    /// A gate has failed in this work.
    pub was_sent_back: bool,
    /// Remediation turns that hooks of a submission caused in this work.
    pub remediations: u32,
    /// The failure of the last submission that the agent received.
    pub submit_failure: Option<String>,
    /// Number of submissions that changed the files after gates had passed.
    pub regates: u32,
    /// The number of retries of the submission.
    pub submit_tries: u32,
    /// Number of times that the worktree of this task was recreated.
    pub recreations: u32,
    /// The git tree on which the gates passed.
    pub gated_tree: Option<String>,
    /// The submission that is about to be recorded.
    pub submission: Option<Submission>,
    /// The task whose after_submit is due.
    pub submitted: Option<TaskId>,
    pub progress: Progress,
    pub usage: Usage,
    /// The shortage of the shared budget, if it does not allow another turn.
    pub shortage: Option<Shortage>,
    pub active_ms: u64,
    /// The agent's reports by tools in the running turn.
    pub claims: Vec<CompletionClaimed>,
    /// The last iteration's turn.
    pub last: Option<TurnEnded>,
    /// The last decision of the stop conditions.
    pub decided: Option<StopEvaluated>,
    /// The gates' results on work that was not claimed, since the last turn.
    pub unclaimed: Option<UnclaimedWorkChecked>,
    /// The checks that failed last.
    pub failing: Option<BTreeSet<String>>,
    /// The receipts of the gates' last run.
    pub receipts: Vec<Receipt>,
    /// The last verdict of the gates.
    pub judged: Option<GatesEvaluated>,
    /// The last verdict of the gates is proof: at least one gate passed, and none blocks.
    pub is_proof: bool,
    /// The files at the beginning of the current work.
    pub start: Option<WorktreeSnapshotted>,
    /// Whether turns have changed nothing in the current work, so that `start` is still current.
    pub is_unchanged: bool,
    /// Whether a turn has begun in the current work.
    pub has_worked: bool,
    /// Whether the agent was asked why nothing changed.
    pub was_asked_for_changes: bool,
    /// Whether the agent was told of tests of the base that no longer hold.
    pub was_told_of_tests: bool,
    /// The digests of findings that a person allowed, with the person.
    pub allowed_findings: BTreeMap<String, String>,
    /// A person allowed changes of tests, so that the gates judge the claim again.
    pub(super) is_claim_kept: bool,
    /// The digest of the last known files.
    pub(super) files: Option<String>,
    /// The last turn changed files, and no gate has seen them since.
    pub is_unjudged: bool,
    /// The digest of the files on which the gates passed.
    pub(super) green: Option<Option<String>>,
    /// The gates have not passed on the current files.
    pub is_stale: bool,
    pub checkpoint: Option<Value>,
    /// Files that define hooks and changed since the session began.
    pub drifted: BTreeSet<String>,
    pub pause_requested: bool,
    /// A person requested a stop.
    pub stop_requested: bool,
    pub outcome: Option<SessionOutcome>,
    /// Turns of final delivery.
    pub deliveries: u32,
    /// The number of texts that no prompt contained at the end.
    pub undelivered: usize,
    /// Undelivered texts that were meant for a failed final turn.
    pub lost_outputs: usize,
    /// Texts that a newer output of the same hook replaced before a prompt contained them.
    pub replaced_outputs: usize,
    /// A task was accepted without proof.
    pub has_accepted: bool,
    /// The current task was accepted without proof.
    pub is_accepted: bool,
    /// Hooks of `before_submit` have checked the files that are submitted.
    pub(super) is_submission_proof: bool,
    pub tasks_completed: Vec<TaskId>,
    pub tasks_submitted: Vec<TaskId>,
    pub tasks_blocked: Vec<TaskId>,
    /// Completed and submitted tasks whose work no gate has proven.
    pub tasks_unproven: Vec<TaskId>,
    /// Tasks of this session that another holder completed, released or took over.
    pub tasks_lost: Vec<TaskId>,
}

impl Session {
    pub fn new(plan: SessionPlan) -> Session {
        Session {
            plan,
            run: 1,
            phase: SessionPhase::Starting,
            iteration: 0,
            attempt: 0,
            turns: 0,
            last_tree: None,
            pending: VecDeque::new(),
            bound: Vec::new(),
            withheld: Vec::new(),
            task: None,
            errors: 0,
            fault: None,
            unpriced_turns: 0,
            fallen_back: 0,
            waits: 0,
            wait_until_ms: None,
            conversation: None,
            retries: 0,
            was_sent_back: false,
            remediations: 0,
            submit_failure: None,
            regates: 0,
            submit_tries: 0,
            recreations: 0,
            gated_tree: None,
            submission: None,
            submitted: None,
            progress: Progress::default(),
            usage: Usage::default(),
            shortage: None,
            active_ms: 0,
            claims: Vec::new(),
            last: None,
            decided: None,
            unclaimed: None,
            failing: None,
            receipts: Vec::new(),
            judged: None,
            is_proof: false,
            start: None,
            is_unchanged: true,
            has_worked: false,
            was_asked_for_changes: false,
            was_told_of_tests: false,
            allowed_findings: BTreeMap::new(),
            is_claim_kept: false,
            files: None,
            is_unjudged: false,
            green: None,
            is_stale: true,
            checkpoint: None,
            drifted: BTreeSet::new(),
            pause_requested: false,
            stop_requested: false,
            outcome: None,
            deliveries: 0,
            undelivered: 0,
            lost_outputs: 0,
            replaced_outputs: 0,
            has_accepted: false,
            is_accepted: false,
            is_submission_proof: false,
            tasks_completed: Vec::new(),
            tasks_submitted: Vec::new(),
            tasks_blocked: Vec::new(),
            tasks_unproven: Vec::new(),
            tasks_lost: Vec::new(),
        }
    }
}
