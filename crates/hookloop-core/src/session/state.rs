//! The state of a session.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::progress::Progress;
use crate::id::TaskId;
use crate::payload::delivery::Submission;
use crate::payload::piped::Piped;
use crate::payload::plan::Plan;
use crate::payload::session::{FilesSeen, Left, Outcome, TaskTaken};
use crate::payload::turn::{Claimed, TurnEnded, TurnKind};
use crate::payload::verdict::{GatesJudged, Receipt, StopDecided, UnclaimedWorkChecked};
use crate::purse::Shortage;
use crate::usage::Usage;

pub use crate::payload::piped::MESSAGE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// session_start is due.
    Starting,
    /// The task's own place is to be made ready.
    Settling,
    /// The next iteration is.
    Ready,
    /// A turn is under way, or was when the program ended.
    Turn(TurnKind),
    /// post_iteration is due.
    After,
    /// Whether that was the last iteration is to be decided.
    Deciding,
    /// The gates are to be asked.
    Gating,
    /// on_error is due.
    Failed {
        error: String,
    },
    /// What on_error says may be due at once.
    Recovering,
    /// The gates said no once too often.
    AtRetryLimit,
    /// The gates said yes; the task's work is to be submitted.
    Submitting,
    /// after_submit is due.
    Submitted,
    /// The session is done with its task.
    TaskOver {
        how: Left,
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
    pub(super) piped: Piped,
}

/// A conversation with the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talk {
    /// The agent's name for it.
    pub id: String,
    /// What all its turns used.
    pub usage: Usage,
}

/// What a session's events amount to.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub plan: Plan,
    /// How often a program took it on.
    pub run: u32,
    pub phase: Phase,
    /// The last iteration that began.
    pub iteration: u32,
    /// Of the turn that began last.
    pub attempt: u32,
    /// Turns that ended.
    pub turns: u32,
    /// What waits for a prompt, oldest first.
    pub pending: VecDeque<Piped>,
    /// What is in the prompt of the turn that is under way.
    pub bound: Vec<Piped>,
    /// Outputs that no turn followed because a person had to decide: the next prompt about the same work has them.
    pub(super) withheld: Vec<WithheldOutput>,
    pub task: Option<TaskTaken>,
    /// Failed turns in a row.
    pub errors: u32,
    /// Why no agent of the session can take another turn before a person has done something.
    pub fault: Option<String>,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u32,
    /// How many agents were given up.
    pub fallen_back: usize,
    /// Turns in a row that were told to wait.
    pub waits: u32,
    /// Until when, if that was told.
    pub wait_until_ms: Option<u64>,
    /// The last one, which a turn may go on with.
    pub conversation: Option<Talk>,
    /// Gates that said no without the work having got better.
    pub retries: u32,
    /// A gate has sent the agent back in this work.
    pub was_sent_back: bool,
    /// How often the hooks of a submission have sent the agent back in this work.
    pub remediations: u32,
    /// The failure of the last submission that the agent was told about.
    pub submit_failure: Option<String>,
    /// How often a submission has changed the files that gates had passed.
    pub regates: u32,
    /// How often a submission did not work out, and may another time.
    pub submit_tries: u32,
    /// How often the worktree of this task was made anew.
    pub recreations: u32,
    /// What the gates passed, as a git tree.
    pub gated_tree: Option<String>,
    /// What is about to be submitted.
    pub submission: Option<Submission>,
    /// The task whose after_submit is due.
    pub submitted: Option<TaskId>,
    pub progress: Progress,
    pub usage: Usage,
    /// What the purse lacks for another turn.
    pub shortage: Option<Shortage>,
    pub active_ms: u64,
    /// What the agent has said by tools in the turn that is under way, and why.
    pub claims: Vec<Claimed>,
    /// The last iteration's turn.
    pub last: Option<TurnEnded>,
    /// What the ways to stop said last.
    pub decided: Option<StopDecided>,
    /// The gates' results on work that was not claimed, since the last turn.
    pub unclaimed: Option<UnclaimedWorkChecked>,
    /// The checks that failed last.
    pub failing: Option<BTreeSet<String>>,
    /// Of the gates' last run.
    pub receipts: Vec<Receipt>,
    /// The last verdict of the gates.
    pub judged: Option<GatesJudged>,
    /// The last verdict of the gates is proof: at least one gate passed, and none blocks.
    pub is_proof: bool,
    /// The files that the work at hand began with.
    pub start: Option<FilesSeen>,
    /// Turns have changed nothing in the work at hand: `start` is still the state before the agent's work.
    pub is_unchanged: bool,
    /// A turn has begun in the work at hand.
    pub has_worked: bool,
    /// The agent was asked why nothing changed.
    pub was_asked_for_changes: bool,
    /// The files as the last look found them.
    pub(super) files: Option<String>,
    /// The last turn changed files, and no gate has seen them since.
    pub is_unjudged: bool,
    /// What the files were when the gates said yes.
    pub(super) green: Option<Option<String>>,
    /// The gates have not seen what the files are now.
    pub is_stale: bool,
    pub checkpoint: Option<Value>,
    /// Files that decide what hooks are and that changed since it began.
    pub drifted: BTreeSet<String>,
    pub pause_requested: bool,
    /// A person wants it to stop now.
    pub stop_requested: bool,
    pub outcome: Option<Outcome>,
    /// Turns of final delivery.
    pub deliveries: u32,
    /// What no prompt had at the end.
    pub undelivered: usize,
    /// Those of them that were meant for a final turn which failed.
    pub lost_outputs: usize,
    /// Those that a newer output of the same hook replaced before a prompt had them.
    pub replaced_outputs: usize,
    /// A task was taken as it is, without proof.
    pub has_accepted: bool,
    /// The task at hand was.
    pub is_accepted: bool,
    /// Hooks of `before_submit` have checked the files that are submitted.
    pub(super) is_submission_proof: bool,
    pub tasks_completed: Vec<TaskId>,
    pub tasks_submitted: Vec<TaskId>,
    pub tasks_blocked: Vec<TaskId>,
    /// Completed and submitted tasks whose work no gate has proven.
    pub tasks_unproven: Vec<TaskId>,
    /// Tasks that this session worked on and somebody else completed, released or took over.
    pub tasks_lost: Vec<TaskId>,
}

impl Session {
    pub fn new(plan: Plan) -> Session {
        Session {
            plan,
            run: 1,
            phase: Phase::Starting,
            iteration: 0,
            attempt: 0,
            turns: 0,
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
