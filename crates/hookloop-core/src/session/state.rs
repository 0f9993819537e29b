//! From a session's events to its state.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::facts::{
    Answer, Claimed, Decision, GatesJudged, IterationStarted, Left, Outcome, Piped, PromptChannel,
    Receipt, SessionReopened, StopDecided, SubmitJudged, SubmitVerdict, TaskLeft, TaskTaken,
    TurnEnded, TurnKind, TurnResult, TurnStarted, UnclaimedWorkChecked, Usage, Verdict,
};
use super::plan::{Conversation, CostFigure, Count, Dollars, Limit, Plan, Work, counted};
use super::progress::Progress;
use crate::delivery::Submission;
use crate::event::{EventBody, FilesSeen};
use crate::excerpt::first_names;
use crate::id::TaskId;
use crate::options::Length;
use crate::point::Point;
use crate::purse::{Amount, Shortage};

/// Checks that a reason names.
const NAMED_MAX: usize = 4;
/// Outputs that wait for work to continue; of more the oldest are given up.
const WITHHELD_MAX: usize = 1_000;
/// Where a person's message is piped: no hook's point has that name.
pub const MESSAGE: &str = "message";
/// A submission that did not work out so often goes back.
pub const SUBMIT_TRIES_MAX: u32 = 10;
/// Rate-limited turns within one iteration. The next one counts as a failed turn.
pub const RATE_LIMITED_TURNS_MAX: u32 = 20;

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
struct WithheldOutput {
    task: Option<TaskId>,
    piped: Piped,
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
    withheld: Vec<WithheldOutput>,
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
    files: Option<String>,
    /// The last turn changed files, and no gate has seen them since.
    pub is_unjudged: bool,
    /// What the files were when the gates said yes.
    green: Option<Option<String>>,
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
    is_submission_proof: bool,
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

    /// The session that these events tell of; none if they do not begin with its start.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e EventBody>) -> Option<Session> {
        let mut events = events.into_iter();
        let Some(EventBody::SessionStarted(plan)) = events.next() else { return None };
        let mut session = Session::new(plan.clone());
        for event in events {
            session.apply(event);
        }
        Some(session)
    }

    /// Whether it is about to be complete, and the gates have not said yes to the files as they are. Tasks were
    /// proven one by one; after them only final delivery changes something.
    pub fn is_unproven(&self) -> bool {
        let has_changed = !self.plan.work.is_of_tasks() || self.deliveries > 0;
        self.outcome == Some(Outcome::Complete { unproven: false }) && self.is_stale && has_changed
    }

    /// Whether the session is complete and its work is proven: gates ran and passed on the files as they
    /// are, and nobody accepted anything without them. With tasks, this holds for each of them.
    pub fn is_proven(&self) -> bool {
        let is_green = self.is_proof && !self.is_stale;
        if self.outcome != (Some(Outcome::Complete { unproven: false })) {
            false
        } else if self.plan.work.is_of_tasks() {
            let has_done = !self.tasks_completed.is_empty() || !self.tasks_submitted.is_empty();
            has_done
                && self.tasks_unproven.is_empty()
                && self.tasks_lost.is_empty()
                && (self.deliveries == 0 || is_green)
        } else {
            is_green
        }
    }

    /// Whether the last verdict is of gates, and not of none.
    pub fn has_gates(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.gates > 0)
    }

    /// Whether the final turn of a session that reached its limit changed files that no gate has seen.
    pub fn has_unjudged_end(&self) -> bool {
        let is_at_limit = matches!(self.outcome, Some(Outcome::Limit { .. }));
        is_at_limit && self.deliveries > 0 && self.is_unjudged
    }

    /// Whether gates have proven the work on the task at hand.
    pub fn has_proven_task(&self) -> bool {
        !self.is_accepted && (self.is_proof && !self.is_stale || self.is_submission_proof)
    }

    /// Whether the agent's last turn ended without a claim, so that no gate has judged the files.
    pub fn is_unclaimed(&self) -> bool {
        let goes_on = |decided: &StopDecided| decided.decision == Decision::Continue;
        self.decided.as_ref().is_some_and(goes_on) && !self.plan.has_guest()
    }

    /// Whether the session was over before it did anything.
    pub fn had_nothing_to_do(&self) -> bool {
        self.turns == 0 && self.iteration == 0 && self.tasks_lost.is_empty()
    }

    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// What its turns cost.
    pub fn cost(&self) -> CostFigure {
        let unpriced_turns = u64::from(self.unpriced_turns);
        CostFigure { micros: self.usage.cost_micros, unpriced_turns }
    }

    /// What the session may still use by its own limits.
    pub fn left(&self) -> Amount {
        let limits = &self.plan.limits;
        let all =
            Amount { cost_micros: limits.cost_micros, tokens: limits.tokens, turns: u64::MAX };
        all.minus(self.usage.into())
    }

    /// That a limit was reached, with the amount that was used: "its limit of 5 iterations was reached".
    pub fn limit_reached(&self, limit: Limit) -> String {
        let limits = &self.plan.limits;
        match limit {
            Limit::Iterations => {
                let most = counted(limits.iterations, "iteration", "iterations");
                format!("its limit of {most} was reached")
            }
            Limit::Duration => {
                format!("its time limit of {} was reached", Length { ms: limits.duration_ms })
            }
            Limit::Errors => {
                let most = counted(limits.errors, "failed turn", "failed turns");
                format!("its limit of {most} in a row was reached")
            }
            Limit::Tokens => format!(
                "its token limit was reached: {} of {}",
                Count(self.usage.tokens()),
                Count(limits.tokens)
            ),
            Limit::Cost if self.usage.cost_micros < limits.cost_micros => format!(
                "its cost limit was reached: the cost of {} is unknown",
                counted(self.unpriced_turns, "turn", "turns")
            ),
            Limit::Cost => format!(
                "its cost limit was reached: {} of {}",
                Dollars(self.usage.cost_micros),
                Dollars(limits.cost_micros)
            ),
            Limit::Purse => "the budget of all sessions does not allow another turn".to_owned(),
        }
    }

    /// Who takes the next turn.
    pub fn agent(&self) -> &str {
        let fallback = self.plan.fallback.as_ref();
        let next = |place: usize| fallback.and_then(|fallback| fallback.agents.get(place));
        let instead = self.fallen_back.checked_sub(1).and_then(next);
        instead.unwrap_or(&self.plan.agent)
    }

    /// The conversation that a turn goes on with. What hooks say about a turn is said where it was taken.
    pub fn conversation(&self, kind: TurnKind) -> Option<&Talk> {
        let goes_on = match kind {
            // What stands in the way of a submission is said to who made it.
            TurnKind::Work => {
                self.plan.conversation == Conversation::Continue
                    || self.remediations > 0
                    || self.answers_feedback()
            }
            TurnKind::Recovery | TurnKind::Delivery => true,
        };
        self.conversation.as_ref().filter(|_| goes_on)
    }

    /// Whether the turn answers what a `stop` gate said, and goes on in the conversation for that alone.
    ///
    /// After a failed turn the feedback begins a new conversation: the old one may be the cause.
    pub fn answers_feedback(&self) -> bool {
        let is_of_gate = |piped: &Piped| matches!(piped.point.parse(), Ok(Point::Stop));
        let is_for_feedback =
            self.plan.conversation == Conversation::Fresh && self.remediations == 0;
        self.plan.keeps_feedback
            && is_for_feedback
            && self.errors == 0
            && self.bound.iter().any(is_of_gate)
    }

    /// The number of the next iteration: one that was only told to wait is not counted.
    pub fn next_iteration(&self) -> u32 {
        if self.waits > 0 { self.iteration } else { self.iteration + 1 }
    }

    /// Takes in the next event. Those that are not a session's change nothing.
    pub fn apply(&mut self, event: &EventBody) {
        if self.is_over() {
            if let EventBody::SessionReopened(reopened) = event {
                self.reopen(reopened);
            }
            return;
        }
        match event {
            EventBody::PointPassed(passed) => self.pass(&passed.point),
            EventBody::OutputPiped(piped) => self.pipe(piped.clone()),
            EventBody::IterationStarted(started) => self.start_iteration(started),
            EventBody::TurnStarted(started) => self.start_turn(started),
            EventBody::TurnClaimed(claimed) => self.claim(claimed),
            EventBody::TurnEnded(ended) => self.end_turn(ended),
            EventBody::StopDecided(decided) => self.decide(decided),
            EventBody::ReceiptMade(receipt) => self.keep(receipt.clone()),
            EventBody::GatesJudged(judged) => self.judge(judged),
            EventBody::EmptyDifferenceFound(found) => self.find_no_changes(found.was_asked),
            EventBody::UnclaimedWorkChecked(checked) => self.unclaimed = Some(checked.clone()),
            EventBody::SubmitJudged(judged) => self.judge_submission(judged),
            EventBody::RetryLimitAnswered(answered) => self.answer(answered.answer),
            EventBody::TaskTaken(taken) => self.take_task(taken.clone()),
            EventBody::TaskLeft(left) => self.leave_task(left),
            EventBody::CheckpointMade(made) => self.checkpoint = Some(made.data.clone()),
            EventBody::TrustDrifted(drift) => self.drifted.extend(drift.what.iter().cloned()),
            EventBody::FilesSeen(seen) => self.see_files(seen),
            EventBody::WorktreeRecreated(_) => self.lose_worktree(),
            EventBody::PauseRequested(_) => self.pause_requested = true,
            EventBody::StopRequested(_) => self.stop_requested = true,
            EventBody::SessionPaused(_) => self.phase = Phase::Paused,
            EventBody::SessionResumed(resumed) => {
                self.run = resumed.run;
                self.pause_requested = false;
                self.stop_requested = false;
                // There may be more in it by now.
                self.shortage = None;
                // The person who resumes the session may have logged in or upgraded the agent.
                self.fault = None;
                if let Some(hooks) = &resumed.hooks {
                    self.plan.hooks.clone_from(hooks);
                }
                if resumed.scripts.is_some() {
                    self.plan.scripts.clone_from(&resumed.scripts);
                }
                if self.phase == Phase::Paused {
                    self.phase = Phase::Ready;
                }
            }
            EventBody::PurseExhausted(shortage) => self.shortage = Some(*shortage),
            EventBody::SessionEnding(outcome) => self.begin_end(outcome.clone()),
            EventBody::SessionEnded(_) => {
                self.undelivered += self.pending.len();
                self.phase = Phase::Ended;
            }
            _ => {}
        }
    }

    /// Pauses a session that ended, so that it can be resumed. Its counters of failures start again; iterations, time,
    /// tokens and cost go on from where they were.
    fn reopen(&mut self, reopened: &SessionReopened) {
        if let Some(limits) = reopened.limits {
            self.plan.limits = limits;
        }
        // The next prompt has it after all.
        self.undelivered = self.undelivered.saturating_sub(self.pending.len());
        self.return_withheld(None);
        self.outcome = None;
        (self.errors, self.waits, self.wait_until_ms) = (0, 0, None);
        (self.fault, self.shortage) = (None, None);
        (self.retries, self.deliveries) = (0, 0);
        self.progress.forgive();
        self.claims.clear();
        (self.decided, self.unclaimed) = (None, None);
        self.was_asked_for_changes = false;
        (self.pause_requested, self.stop_requested) = (false, false);
        // With many tasks, each that is still blocked counts until it is claimed again.
        if let Work::Task(_) = self.plan.work {
            self.tasks_blocked.clear();
        }
        // A person knows that somebody else had them. The next claim tells whether one can be had again.
        self.tasks_lost.clear();
        self.void();
        self.phase = Phase::Paused;
    }

    /// Whether a look after hooks is news for the log.
    pub fn is_news(&self, seen: &FilesSeen) -> bool {
        let is_start = |start: &FilesSeen| (&start.files, &start.head) == (&seen.files, &seen.head);
        let moves_start = self.is_unchanged && !self.start.as_ref().is_some_and(is_start);
        self.files.as_ref() != Some(&seen.files) || moves_start
    }

    /// Takes in a look at the files between turns. Changes by hooks are not the agent's. When a program takes the
    /// session on, a person may have changed the files, and that counts as a change.
    fn see_files(&mut self, seen: &FilesSeen) {
        let files = seen.files.as_str();
        if self.has_worked && !seen.after_hooks && self.files.as_deref() != Some(files) {
            self.is_unchanged = false;
        }
        if !self.has_worked || seen.after_hooks && self.is_unchanged {
            self.start = Some(seen.clone());
        }
        self.files = Some(files.to_owned());
        self.progress.begin(files);
        // Hooks of the session's end run after the verdict, and a final turn voids the verdict itself.
        if seen.after_hooks && self.phase == Phase::Ending {
            return;
        }
        let is_green = |green: &Option<String>| green.as_deref() == Some(files);
        if self.green.as_ref().is_some_and(|green| !is_green(green)) {
            self.void();
            if let Phase::TaskOver { how: Left::Completed, reason: None } | Phase::Submitting =
                self.phase
            {
                self.phase = Phase::Gating;
            }
        }
    }

    /// The agent's files are not those that it made a claim about, so the claim is void and the agent goes on.
    fn lose_worktree(&mut self) {
        self.recreations = self.recreations.saturating_add(1);
        self.void();
        self.gated_tree = None;
        let has_claim = matches!(
            self.phase,
            Phase::After
                | Phase::Deciding
                | Phase::Gating
                | Phase::Submitting
                | Phase::AtRetryLimit
                | Phase::TaskOver { how: Left::Completed, .. }
        );
        if has_claim {
            self.phase = Phase::Ready;
        }
    }

    /// A change voids what the gates said, also one that is taken back.
    fn void(&mut self) {
        (self.is_stale, self.green) = (true, None);
        self.is_proof = false;
        self.is_submission_proof = false;
        self.receipts.clear();
    }

    fn pass(&mut self, point: &str) {
        self.phase = match (&self.phase, point.parse()) {
            (Phase::Starting | Phase::Settling, Ok(Point::SessionStart)) => Phase::Ready,
            (phase, Ok(Point::AfterSubmit)) => {
                self.submitted = None;
                match phase {
                    Phase::Submitted => Phase::Ready,
                    phase => phase.clone(),
                }
            }
            (Phase::After, Ok(Point::PostIteration)) => Phase::Deciding,
            (Phase::Failed { .. }, Ok(Point::OnError)) => Phase::Recovering,
            (phase, _) => phase.clone(),
        };
    }

    fn pipe(&mut self, piped: Piped) {
        if piped.point == MESSAGE {
            self.retries = 0;
            self.progress.forgive();
        }
        if is_renewed(&piped) {
            let before = self.pending.len();
            let is_same = |old: &Piped| (&old.from, &old.point) == (&piped.from, &piped.point);
            self.pending.retain(|old| !(is_renewed(old) && is_same(old)));
            self.replaced_outputs += before - self.pending.len();
        }
        self.pending.push_back(piped);
    }

    fn start_iteration(&mut self, started: &IterationStarted) {
        if started.attempt == 1 {
            self.bound = self.pending.drain(..count(started.items, &self.pending)).collect();
        }
        (self.iteration, self.attempt) = (started.number, started.attempt);
        self.has_worked = true;
        self.unclaimed = None;
        self.claims.clear();
        self.phase = Phase::Turn(TurnKind::Work);
    }

    fn start_turn(&mut self, started: &TurnStarted) {
        if started.attempt == 1 {
            self.bound = match started.turn {
                TurnKind::Recovery => self.take_piped_by_errors(),
                _ => self.pending.drain(..count(started.items, &self.pending)).collect(),
            };
            self.deliveries += u32::from(started.turn == TurnKind::Delivery);
        }
        self.attempt = started.attempt;
        self.phase = Phase::Turn(started.turn);
    }

    fn take_piped_by_errors(&mut self) -> Vec<Piped> {
        let (now, later): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(Session::is_of_error);
        self.pending = later.into();
        now
    }

    fn is_of_error(piped: &Piped) -> bool {
        piped.point == Point::OnError.name()
    }

    /// Whether on_error has something to say to the agent.
    pub(super) fn has_word_of_error(&self) -> bool {
        self.pending.iter().any(Session::is_of_error)
    }

    fn end_turn(&mut self, ended: &TurnEnded) {
        self.turns += 1;
        self.usage.add(ended.usage);
        self.unpriced_turns += u32::from(ended.has_unknown_cost());
        self.remember_conversation(ended);
        self.active_ms = self.active_ms.max(ended.active_ms);
        if ended.files.is_none() || self.green.as_ref() != Some(&ended.files) {
            self.void();
        }
        self.is_unjudged |= ended.files.is_none() || self.files != ended.files;
        self.is_unchanged = self.start.as_ref().is_some_and(|start| {
            ended.files.as_ref() == Some(&start.files) && ended.head == start.head
        });
        self.files.clone_from(&ended.files);
        match &ended.result {
            TurnResult::Finished => self.bound.clear(),
            _ => self.unbind(),
        }
        match ended.turn {
            TurnKind::Work => self.end_work(ended),
            TurnKind::Recovery => {
                match &ended.result {
                    TurnResult::Failed { .. } => self.count_failure(ended),
                    TurnResult::RateLimited { until_ms, .. } => self.count_wait(*until_ms),
                    TurnResult::Finished | TurnResult::Cancelled => {}
                }
                self.phase = Phase::Ready;
            }
            TurnKind::Delivery => {
                if ended.result != TurnResult::Finished {
                    let lost = self.pending.drain(..).count();
                    self.undelivered += lost;
                    self.lost_outputs += lost;
                }
                self.phase = Phase::Ending;
            }
        }
    }

    /// A prompt that came to nothing did not reach anybody: its parts are first in the next one.
    fn unbind(&mut self) {
        for piped in self.bound.drain(..).rev() {
            self.pending.push_front(piped);
        }
    }

    /// What is said between turns is said to nobody.
    fn claim(&mut self, claimed: &Claimed) {
        if self.phase == Phase::Turn(TurnKind::Work) {
            self.claims.push(claimed.clone());
        }
    }

    fn end_work(&mut self, ended: &TurnEnded) {
        let mut last = ended.clone();
        for claimed in &self.claims {
            if !last.promises.contains(&claimed.claim) {
                last.promises.push(claimed.claim);
            }
        }
        self.last = Some(last);
        self.phase = match &ended.result {
            TurnResult::Finished => {
                (self.errors, self.waits) = (0, 0);
                self.progress.files(ended.files.as_deref());
                Phase::After
            }
            TurnResult::Failed { error } => {
                self.count_failure(ended);
                Phase::Failed { error: error.clone() }
            }
            TurnResult::RateLimited { error, .. } if self.waits >= RATE_LIMITED_TURNS_MAX => {
                self.count_error();
                Phase::Failed { error: error.clone() }
            }
            TurnResult::RateLimited { until_ms, .. } => {
                self.count_wait(*until_ms);
                Phase::Ready
            }
            TurnResult::Cancelled => Phase::Ready,
        };
    }

    /// Counts a failed turn. A fault of the agent is not tried again: the next agent takes over at once, and without
    /// one the session ends.
    fn count_failure(&mut self, ended: &TurnEnded) {
        let Some(fault) = &ended.fault else { return self.count_error() };
        let agent = if ended.agent.is_empty() { self.agent() } else { &ended.agent };
        let why = ended.failure_line().unwrap_or_default();
        let reason = format!("{}: {why}. {}", fault.cause.about(agent), fault.remedy);
        (self.waits, self.errors) = (0, self.errors + 1);
        if self.has_next_agent() {
            self.fall_back();
        } else {
            self.fault = Some(reason);
        }
    }

    /// An agent that fails too often is given up, and the next one begins anew.
    fn count_error(&mut self) {
        (self.waits, self.errors) = (0, self.errors + 1);
        // Before it is too late for that.
        let limit = self.plan.limits.errors;
        let is_due = |after: u32| self.errors >= after.min(limit);
        let is_due = self.plan.fallback.as_ref().is_some_and(|others| is_due(others.after));
        if is_due && self.has_next_agent() {
            self.fall_back();
        }
    }

    fn has_next_agent(&self) -> bool {
        self.plan.fallback.as_ref().is_some_and(|others| self.fallen_back < others.agents.len())
    }

    fn fall_back(&mut self) {
        (self.fallen_back, self.errors, self.conversation) = (self.fallen_back + 1, 0, None);
    }

    fn count_wait(&mut self, until_ms: Option<u64>) {
        (self.waits, self.wait_until_ms) = (self.waits + 1, until_ms);
    }

    /// One in which turns fail again and again may be what they fail for.
    fn remember_conversation(&mut self, ended: &TurnEnded) {
        let is_failing = matches!(ended.result, TurnResult::Failed { .. }) && self.errors > 0;
        if is_failing {
            self.conversation = None;
        } else if let Some(id) = &ended.conversation {
            let known = self.conversation.take().filter(|known| known.id == *id);
            let mut usage = known.map_or_else(Usage::default, |known| known.usage);
            usage.add(ended.usage);
            self.conversation = Some(Talk { id: id.clone(), usage });
        }
    }

    fn decide(&mut self, decided: &StopDecided) {
        self.decided = Some(decided.clone());
        // A claim is judged by the gates: rules that pass do not set the mark for them.
        let failing = decided.failing.as_deref().filter(|_| decided.decision == Decision::Continue);
        let is_better = self.note_failing(failing);
        self.phase = match decided.decision {
            Decision::Complete => return self.phase = Phase::Gating,
            Decision::Continue => Phase::Ready,
            Decision::Escalate => self.in_need(decided.reason.clone()),
        };
        self.progress.judge(is_better);
    }

    /// Answers whether fewer checks fail than ever.
    fn note_failing(&mut self, failing: Option<&[String]>) -> bool {
        let Some(failing) = failing else { return false };
        self.failing = Some(failing.iter().cloned().collect());
        self.progress.failing(failing.len())
    }

    /// A gate's last word is the one that counts.
    fn keep(&mut self, receipt: Receipt) {
        let is_other =
            |known: &Receipt| (&known.gate, &known.point) != (&receipt.gate, &receipt.point);
        self.receipts.retain(is_other);
        self.receipts.push(receipt);
    }

    fn judge(&mut self, judged: &GatesJudged) {
        self.is_stale = judged.verdict != Verdict::Pass;
        self.is_proof = judged.is_proof();
        self.judged = Some(judged.clone());
        self.is_unjudged = false;
        if let Some(files) = &judged.files {
            self.files = Some(files.clone());
            // Files that gates write are no progress of the agent's next turn.
            self.progress.begin(files);
        }
        let is_better = self.note_failing(Some(&judged.failing));
        // A session that has reached its limit has its last turn judged for the record alone.
        if matches!(self.outcome, Some(Outcome::Limit { .. })) {
            self.withhold_pending();
            self.phase = Phase::Ending;
            return;
        }
        match &judged.verdict {
            Verdict::Pass => {
                self.green = Some(judged.files.clone());
                self.gated_tree.clone_from(&judged.tree);
                self.retries = 0;
                self.phase = match (&self.outcome, &self.task) {
                    // Final delivery has changed something, and it is still as it should be.
                    (Some(_), _) => Phase::Ending,
                    (None, Some(_)) if self.plan.delivers => Phase::Submitting,
                    (None, Some(_)) => self.complete_task(None),
                    (None, None) => {
                        self.outcome = Some(Outcome::Complete { unproven: false });
                        Phase::Ending
                    }
                };
            }
            Verdict::Block => {
                self.outcome = None;
                self.was_sent_back = true;
                self.retries = if is_better { 1 } else { self.retries + 1 };
                self.phase = match self.retries > self.plan.limits.hook_retries {
                    true => Phase::AtRetryLimit,
                    false => Phase::Ready,
                };
                self.progress.judge(is_better);
            }
            Verdict::Escalate { reason } => {
                self.outcome = None;
                self.phase = self.in_need(reason.clone());
            }
        }
    }

    /// Completes the task at hand, which releases the tasks that depend on it. Without proof that takes a
    /// person, unless the user wants no gates.
    fn complete_task(&self, reason: Option<String>) -> Phase {
        if self.has_proven_task() || self.is_accepted || self.plan.wants_no_gates {
            return Phase::TaskOver { how: Left::Completed, reason };
        }
        let id = self.task.as_ref().map(|taken| taken.task.to_string()).unwrap_or_default();
        let (result, other) = match &self.judged {
            Some(judged) if judged.gates > 0 => {
                (format!(" ({judged})"), "let one of its gates run and pass")
            }
            _ => (String::new(), "add a `stop` hook to hookloop.yaml"),
        };
        let reason = format!(
            "completed without proof: no gate passed{result}. Accept it with `hookloop task unblock {id} && \
             hookloop task complete {id}`, or {other}"
        );
        Phase::TaskOver { how: Left::Blocked, reason: Some(reason) }
    }

    /// The agent is asked once what that means, then a person.
    fn find_no_changes(&mut self, was_asked: bool) {
        self.outcome = None;
        self.phase = if was_asked {
            let since =
                if self.task.is_some() { "the task was taken" } else { "the session began" };
            self.in_need(format!(
                "no changes: the agent reported COMPLETE again, and no file changed since {since}"
            ))
        } else {
            self.was_asked_for_changes = true;
            Phase::Ready
        };
    }

    fn judge_submission(&mut self, judged: &SubmitJudged) {
        self.phase = match &judged.verdict {
            SubmitVerdict::Pass { submission } => {
                self.is_submission_proof = !judged.passed.is_empty();
                self.submission.clone_from(submission);
                match submission {
                    Some(_) => Phase::TaskOver { how: Left::Submitted, reason: None },
                    None => self.complete_task(Some("there is nothing to submit".to_owned())),
                }
            }
            SubmitVerdict::Block => {
                self.submit_failure.clone_from(&judged.failure);
                self.send_back(judged)
            }
            SubmitVerdict::Regate => {
                self.regates += 1;
                self.void();
                Phase::Gating
            }
            SubmitVerdict::Retry { .. } if self.submit_tries < SUBMIT_TRIES_MAX => {
                self.submit_tries += 1;
                Phase::Submitting
            }
            SubmitVerdict::Retry { reason } => {
                Phase::TaskOver { how: Left::Returned, reason: Some(reason.clone()) }
            }
            SubmitVerdict::Escalate { reason } => self.in_need(reason.clone()),
        };
    }

    /// The agent is asked to mend what stands in the way, as often as it may be.
    fn send_back(&mut self, judged: &SubmitJudged) -> Phase {
        self.was_sent_back = true;
        if self.remediations >= self.plan.limits.remediations {
            let turns = self.remediations;
            let turns = counted(turns, "remediation turn", "remediation turns");
            return self.in_need(match (&judged.obstacle, &judged.hook) {
                (Some(obstacle), _) => {
                    format!("the work is not submitted after {turns}: {obstacle}")
                }
                (None, Some(hook)) => format!("`{hook}` still fails after {turns}"),
                (None, None) => format!("the work can't be submitted after {turns}"),
            });
        }
        self.remediations += 1;
        Phase::Ready
    }

    fn answer(&mut self, answer: Answer) {
        // Of two who answer at once the first counts.
        if self.phase != Phase::AtRetryLimit {
            return;
        }
        // No turn follows in which the agent could act on what gates said, unless a person has the work continued.
        match answer {
            Answer::Continue => {}
            Answer::Accept => drop(self.take_pending()),
            Answer::Abort => self.withhold_pending(),
        }
        self.is_accepted = answer == Answer::Accept;
        self.phase = match answer {
            Answer::Continue => {
                self.retries = 0;
                self.progress.forgive();
                Phase::Ready
            }
            Answer::Accept if self.task.is_some() && self.plan.delivers => {
                self.has_accepted = true;
                // There is nothing that it would have to be like.
                (self.green, self.gated_tree) = (None, None);
                Phase::Submitting
            }
            Answer::Accept if self.task.is_some() => {
                self.has_accepted = true;
                let reason = Some("accepted as it is: its gates do not pass".to_owned());
                Phase::TaskOver { how: Left::Completed, reason }
            }
            Answer::Accept => {
                self.outcome = Some(Outcome::Complete { unproven: true });
                Phase::Ending
            }
            Answer::Abort => {
                let retries = counted(self.plan.limits.hook_retries, "retry", "retries");
                let failing: Vec<String> = self.failing.iter().flatten().cloned().collect();
                let failing = named(&failing);
                self.in_need(format!("gates still fail after {retries}{failing}"))
            }
        };
    }

    /// Gives up what waits for a prompt: with a task at hand, only what gates said about that task.
    fn take_pending(&mut self) -> Vec<Piped> {
        let has_task = self.task.is_some();
        let (taken, kept): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|piped| !has_task || is_feedback(piped));
        self.pending = kept.into();
        self.undelivered += taken.len();
        taken
    }

    /// Gives up what waits for a prompt until the work continues.
    fn withhold_pending(&mut self) {
        let task = self.task.as_ref().map(|taken| taken.task.clone());
        let taken = self.take_pending();
        // After the last task, no work continues that these outputs are about.
        if task.is_none() && self.plan.work.is_of_tasks() {
            return;
        }
        let withheld = taken.into_iter();
        let withheld = withheld.map(|piped| WithheldOutput { task: task.clone(), piped });
        self.withheld.extend(withheld);
        self.withheld.drain(..self.withheld.len().saturating_sub(WITHHELD_MAX));
    }

    /// The work on a task continues, or that of a session without one: the next prompt begins with its outputs.
    fn return_withheld(&mut self, task: Option<&TaskId>) {
        let withheld = std::mem::take(&mut self.withheld);
        let (own, others): (Vec<_>, Vec<_>) =
            withheld.into_iter().partition(|output| output.task.as_ref() == task);
        self.withheld = others;
        self.undelivered = self.undelivered.saturating_sub(own.len());
        for output in own.into_iter().rev() {
            self.pending.push_front(output.piped);
        }
    }

    /// Returns the outputs about a task that wait until somebody continues it.
    pub fn withheld_for(&self, task: &TaskId) -> impl Iterator<Item = &Piped> {
        let own = self.withheld.iter().filter(move |output| output.task.as_ref() == Some(task));
        own.map(|output| &output.piped)
    }

    /// Nobody goes on without a human: with the task, or with the session.
    fn in_need(&mut self, reason: String) -> Phase {
        match self.task {
            Some(_) => Phase::TaskOver { how: Left::Blocked, reason: Some(reason) },
            None => {
                self.outcome = Some(Outcome::NeedsHuman { reason });
                Phase::Ending
            }
        }
    }

    fn take_task(&mut self, taken: TaskTaken) {
        let used = taken.remediations;
        self.tasks_blocked.retain(|id| *id != taken.task);
        self.tasks_lost.retain(|id| *id != taken.task);
        self.return_withheld(Some(&taken.task));
        self.task = Some(taken);
        self.conversation = None;
        (self.retries, self.was_sent_back, self.failing) = (0, false, None);
        (self.remediations, self.regates, self.submit_tries) = (used, 0, 0);
        self.submit_failure = None;
        self.recreations = 0;
        (self.submission, self.start) = (None, None);
        (self.has_worked, self.was_asked_for_changes) = (false, false);
        self.is_unchanged = true;
        (self.is_accepted, self.is_submission_proof) = (false, false);
        self.progress.restart();
        self.phase = if self.plan.delivers { Phase::Settling } else { Phase::Ready };
    }

    fn leave_task(&mut self, left: &TaskLeft) {
        if matches!(left.how, Left::Completed | Left::Submitted) && !self.has_proven_task() {
            self.tasks_unproven.push(left.task.clone());
        }
        self.task = None;
        self.unbind();
        match left.how {
            Left::Completed => self.tasks_completed.push(left.task.clone()),
            Left::Submitted => {
                self.tasks_submitted.push(left.task.clone());
                self.submitted = Some(left.task.clone());
            }
            Left::Blocked => self.tasks_blocked.push(left.task.clone()),
            Left::Lost => self.tasks_lost.push(left.task.clone()),
            Left::Released | Left::Returned => {}
        }
        if !matches!(self.phase, Phase::Ending) {
            let is_owed = self.submitted.is_some();
            self.phase = if is_owed { Phase::Submitted } else { Phase::Ready };
        }
    }

    fn begin_end(&mut self, outcome: Outcome) {
        self.unbind();
        self.outcome = Some(outcome);
        self.phase = Phase::Ending;
    }
}

/// The first of these checks, after a colon; empty without one.
fn named(failing: &[String]) -> String {
    match failing.is_empty() {
        true => String::new(),
        false => format!(": {}", first_names(failing, NAMED_MAX)),
    }
}

/// Whether it is what a gate said about the work.
fn is_feedback(piped: &Piped) -> bool {
    let point = piped.point.parse();
    matches!(point, Ok(Point::Stop | Point::Validation | Point::BeforeSubmit))
}

/// Whether it is the output of a hook that runs again and again in the loop, so that only the newest output counts.
fn is_renewed(piped: &Piped) -> bool {
    let is_of_loop = matches!(
        piped.point.parse(),
        Ok(Point::SessionStart | Point::PreIteration | Point::PostIteration | Point::OnError)
    );
    is_of_loop && piped.channel() == PromptChannel::HookOutput
}

fn count(items: u32, pending: &VecDeque<Piped>) -> usize {
    (items as usize).min(pending.len())
}
