//! One step of a session after the other, until it ends or rests.

use std::collections::BTreeSet;

use hookloop_agents::{Report, clipped};
use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::delivery::{DeliveryFact, MergeHeld, Submission};
use hookloop_core::event::{EventBody, FilesSeen, NoData};
use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::hook_status::HookStatus;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::point::Point;
use hookloop_core::purse::Amount;
use hookloop_core::refusal::Refusal;
use hookloop_core::session::facts::{
    EmptyDifferenceFound, PointPassed, RetryLimitAnswered, RetryLimitAsked, TaskExit, TrustDrifted,
    TurnStarted,
};
use hookloop_core::session::plan::counted;
use hookloop_core::session::step::{ATTEMPTS_MAX, lost};
use hookloop_core::session::stop::ValidationResult;
use hookloop_core::session::{
    AtRetryLimit, IterationPause, IterationStarted, LimitDecision, NextStep, PipedOutput,
    PromptChannel, Session, SessionEnded, SessionOutcome, SessionPhase, SessionWork, TaskLeft,
    TaskTaken, TurnEnded, TurnKind, TurnResult, next_step,
};
use hookloop_core::task::{Task, TaskObstacle, TaskOutcome, TaskState};
use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_hooks::hook_context::DeliveryFacts;
use hookloop_hooks::hook_run::{HookRun, PIPED_MAX, describe};
use hookloop_store::log::StoredEvent;

use super::journal::Journal;
use super::judge::Proof;
use super::open::Opened;
use super::place::needs_place;
use super::prompt::{self, PromptGate};
use super::purse::Allowance;
use super::world::{Notice, PauseReason, Turn, World};
use crate::claim::{ClaimRequest, Wanted, WhyNone};
use crate::command_outcome::Done;
use crate::error::{EngineError, Taken};
use crate::project::{Project, is_in_ledger};

/// The most of what waits that one prompt takes; the rest waits for the next.
const PROMPT_PIPED_MAX: usize = 256 * 1024;
/// Between two looks at the log in a long pause.
const LISTEN_EVERY_MS: u64 = 5_000;
/// Files that a turn's record names.
const CHANGED_MAX: usize = 200;
/// Notes on a task that its first prompt has, and what they are called there.
const NOTES_TOLD: usize = 10;
const NOTE: &str = "note";
/// The sender of instructions that no hook gives.
pub(super) const US: &str = "hookloop";
/// Events of a task that are searched for the session that had it before, the latest.
const TASK_EVENTS_MAX: usize = 1_000;
/// Blocked tasks that a reason names.
const BLOCKED_NAMED: usize = 4;
/// How long a task is held without a sign of life.
pub(crate) const LEASE: std::time::Duration = std::time::Duration::from_secs(90);

/// A session that this program performs.
#[expect(missing_debug_implementations, reason = "a world has none")]
pub struct Driver<'p, W> {
    pub(crate) journal: Journal<'p>,
    pub(super) world: W,
    /// The hooks that the session had when it began.
    pub(crate) hooks: HookRegistry,
    pub(crate) task: Option<Task>,
    /// What validation rules said in this iteration.
    pub(crate) validated: Vec<ValidationResult>,
    /// Gates that have run on what the files are now.
    pub(super) proof: Option<Proof>,
    /// Gates whose command has been executed by this process.
    pub(super) executed: BTreeSet<String>,
    /// Set aside for the turn that is about to begin.
    pub(super) reserved: Amount,
    /// The delivery that hooks run for, while they do.
    pub(super) delivery: Option<DeliveryFacts>,
    /// How often the worktree was restored since the last turn.
    pub(super) restorations: u32,
    /// How long the session had run before this program took it on.
    active_before_ms: u64,
}

impl<'p, W: World> Driver<'p, W> {
    /// Takes on the session `id` of a project in the log; none if there is none of that id.
    pub fn open(
        project: &'p Project,
        id: &SessionId,
        world: W,
        hooks: HookRegistry,
    ) -> Result<Option<Driver<'p, W>>, EngineError> {
        let journal = Journal::open(project, id)?;
        Ok(journal.map(|journal| Driver::with(journal, world, hooks)))
    }

    /// Takes on a session that this program has opened, unless another has done so since.
    pub(crate) fn of(
        project: &'p Project,
        opened: &Opened,
        world: W,
        hooks: HookRegistry,
    ) -> Result<Option<Driver<'p, W>>, EngineError> {
        match Driver::open(project, &opened.id, world, hooks)? {
            Some(driver) if driver.session().run != opened.run => {
                Err(EngineError::SessionTaken(Taken))
            }
            driver => Ok(driver),
        }
    }

    pub(crate) fn with(journal: Journal<'p>, world: W, hooks: HookRegistry) -> Driver<'p, W> {
        let active_before_ms = journal.session.active_ms;
        let (task, validated, proof) = (None, Vec::new(), None);
        let reserved = Amount::default();
        Driver {
            journal,
            world,
            hooks,
            task,
            validated,
            proof,
            executed: BTreeSet::new(),
            reserved,
            delivery: None,
            restorations: 0,
            active_before_ms,
        }
    }

    pub(crate) fn into_parts(self) -> (Journal<'p>, W) {
        (self.journal, self.world)
    }

    /// The session had run for so long already, if the log does not know better.
    #[must_use]
    pub fn after(mut self, active_ms: u64) -> Driver<'p, W> {
        self.active_before_ms = self.active_before_ms.max(active_ms);
        self
    }

    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    pub fn session(&self) -> &Session {
        &self.journal.session
    }

    /// Performs the session until it ends or rests.
    pub fn run(&mut self) -> Result<(), EngineError> {
        if matches!(self.journal.session.phase, SessionPhase::Ended | SessionPhase::Paused) {
            return Ok(());
        }
        self.pick_up()?;
        while let NextStep::Turn(kind) = self.advance(|_| false)? {
            self.turn(kind)?;
        }
        Ok(())
    }

    /// Does what is due until a turn is, the session ends or rests, or the next step is one to halt at.
    /// Answers which.
    pub(crate) fn advance(
        &mut self,
        halts: impl Fn(&NextStep) -> bool,
    ) -> Result<NextStep, EngineError> {
        loop {
            if self.journal.session.outcome.is_none() {
                self.world.rest();
            }
            self.heed_user();
            let step = next_step(&self.journal.session, self.active_ms());
            let is_left = self.journal.session.plan.has_guest() && self.world.is_cancelled();
            if matches!(step, NextStep::Turn(_) | NextStep::Rest) || halts(&step) || is_left {
                self.commit()?;
                return Ok(step);
            }
            if needs_place(&step) && !self.keep_place(&step)? {
                continue;
            }
            match step {
                NextStep::Hooks(point) => self.pass(&point)?,
                NextStep::TakeTask => self.take_task()?,
                NextStep::Settle => self.settle()?,
                NextStep::Submit { pause_ms } => self.submit(pause_ms)?,
                NextStep::Begin(pause) => self.begin(pause)?,
                NextStep::StartTurn(kind) => self.start_turn(kind)?,
                NextStep::Decide => self.decide()?,
                NextStep::Gate => self.gate()?,
                NextStep::CheckUnclaimed => self.check_unclaimed()?,
                NextStep::AnswerRetryLimit => self.answer_retry_limit()?,
                NextStep::LeaveTask { how, reason } => self.leave_task(how, reason)?,
                NextStep::End(outcome) => self.journal.note(EventBody::SessionEnding(outcome)),
                NextStep::Pause => self.rest(),
                NextStep::Turn(_) | NextStep::Rest => {}
            }
        }
    }

    fn rest(&mut self) {
        self.see_files_before_rest();
        self.journal.note(EventBody::SessionPaused(NoData {}));
    }

    /// Stores what was noted, and shows it.
    pub(crate) fn commit(&mut self) -> Result<(), EngineError> {
        let stored = self.journal.commit()?;
        self.tell_stored(&stored)
    }

    /// Shows what is in the log now, to who watches and to the fleet.
    pub(super) fn tell_stored(&mut self, stored: &[StoredEvent]) -> Result<(), EngineError> {
        self.world.notice(Notice::Stored(stored));
        let project = self.journal.project;
        match &project.books {
            Some(books) if stored.iter().any(|stored| is_in_ledger(&stored.event.body)) => {
                books.follow(project, &self.journal.id)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn active_ms(&self) -> u64 {
        self.active_before_ms.saturating_add(self.world.elapsed_ms())
    }

    pub(super) fn error(&self) -> Option<String> {
        match &self.journal.session.phase {
            SessionPhase::Failed { error } => Some(error.clone()),
            _ => None,
        }
    }

    /// Whether the session's time is over, or the user wants it to stop: what runs is being ended.
    pub(super) fn is_stopping(&self) -> bool {
        self.world.is_cancelled()
            || self.active_ms() >= self.journal.session.plan.limits.duration_ms
    }

    fn heed_user(&mut self) {
        let session = &self.journal.session;
        // A guest that does not wait for the answer may come back for it.
        if session.plan.has_guest() {
            return;
        }
        // What is complete but for its proof will not be proven any more.
        let is_ending = match session.phase {
            SessionPhase::Ending => !session.is_unproven() && !session.has_unjudged_end(),
            SessionPhase::Ended => true,
            _ => false,
        };
        if (self.world.is_cancelled() || session.stop_requested) && !is_ending {
            self.journal.note(EventBody::SessionEnding(SessionOutcome::Cancelled));
        }
    }

    /// What a program that died has left.
    fn pick_up(&mut self) -> Result<(), EngineError> {
        let recreations = self.journal.session.recreations;
        self.pick_up_task()?;
        let has_lost_work = self.journal.session.recreations > recreations;
        self.pick_up_turn(has_lost_work)?;
        self.see_files();
        Ok(())
    }

    /// What the files are now is not what a turn made of them.
    pub(crate) fn see_files(&mut self) {
        if let Some(seen) = self.files_seen(false) {
            self.journal.note(EventBody::FilesSeen(seen));
        }
    }

    /// Looks at the files after hooks, so that their changes are not taken for those of the agent or of a person.
    /// A guest works at any time, so its changes can't be told from those of hooks.
    fn see_files_of_hooks(&mut self) {
        if self.journal.session.plan.has_guest() {
            return;
        }
        let seen = self.files_seen(true);
        if let Some(seen) = seen.filter(|seen| self.journal.session.is_news(seen)) {
            self.journal.note(EventBody::FilesSeen(seen));
        }
    }

    /// Looks at the files before a session rests, so that a resume can tell changes by a person from those of hooks.
    fn see_files_before_rest(&mut self) {
        let plan = &self.journal.session.plan;
        if plan.must_change_files() && !plan.work.is_of_tasks() {
            self.see_files_of_hooks();
        }
    }

    fn files_seen(&mut self, after_hooks: bool) -> Option<FilesSeen> {
        let files = self.world.look_at_files()?.digest;
        Some(FilesSeen { files, head: self.compared_head(), after_hooks })
    }

    /// The commit that is checked out, where a commit counts as a change.
    fn compared_head(&mut self) -> Option<String> {
        let is_compared = self.journal.session.plan.must_change_files();
        is_compared.then(|| self.world.head()).flatten()
    }

    /// Whether the agent's turns left the files and the commit as they found them, or the files and the commit are
    /// those that the work at hand began with. Unknown is not equal.
    pub(super) fn has_changed_nothing(&mut self) -> bool {
        if self.journal.session.is_unchanged {
            return true;
        }
        let Some(start) = self.journal.session.start.clone() else { return false };
        let now = self.world.look_at_files().map(|look| look.digest);
        now.as_deref() == Some(start.files.as_str()) && self.world.head() == start.head
    }

    /// Whether work that changes nothing needs an explanation.
    pub(super) fn must_change_files(&self) -> bool {
        let kind = self.task.as_ref().and_then(|task| task.spec.kind.as_deref());
        let is_allowed = self.journal.project.rules().allows_no_changes(kind);
        self.journal.session.plan.must_change_files() && !is_allowed
    }

    /// Asks the agent why nothing changed, or a person if the agent was asked before.
    pub(super) fn find_no_changes(&mut self, finding: &str) {
        let was_asked = self.journal.session.was_asked_for_changes;
        if !was_asked {
            let question = format!(
                "You reported COMPLETE, but {finding}. If something has to change, \
                 change it. If nothing has to change, say why and report COMPLETE again."
            );
            self.instruct(US, &Point::Stop, question);
        }
        let found = EmptyDifferenceFound { was_asked };
        self.journal.note(EventBody::EmptyDifferenceFound(found));
    }

    pub(crate) fn pick_up_task(&mut self) -> Result<(), EngineError> {
        let held = self.journal.session.task.clone();
        if let Some(taken) = held {
            let row = self.journal.project.read(|view| view.task(&taken.task))?;
            let task = row.map(|row| row.task);
            let is_held =
                |task: &Task| task.claim.as_ref().is_some_and(|claim| claim.epoch == taken.epoch);
            if let Some(task) = task.filter(is_held) {
                // One that is about to be settled goes there then.
                let is_there = !self.journal.session.plan.delivers
                    || matches!(self.journal.session.phase, SessionPhase::Settling);
                let entered =
                    if is_there { Ok(None) } else { self.world.enter(&task, PlaceEntry::Again) };
                self.hold(Some(task.clone()), taken.epoch);
                match entered {
                    Ok(None) => {}
                    Ok(Some(loss)) => {
                        self.note_loss(&task, loss)?;
                        self.prepare_again()?;
                    }
                    Err(_) if self.is_stopping() => {}
                    Err(trouble) => self.leave_without_place(&trouble)?,
                }
            } else {
                let reason = Some("its claim ended meanwhile".to_owned());
                let left = TaskLeft { task: taken.task, how: TaskExit::Lost, reason };
                self.journal.note(EventBody::TaskLeft(left));
            }
        }
        Ok(())
    }

    /// A turn that was under way begins again. If its worktree was lost, another turn begins instead, whose prompt
    /// says so.
    fn pick_up_turn(&mut self, has_lost_work: bool) -> Result<(), EngineError> {
        if let SessionPhase::Turn(kind) = self.journal.session.phase {
            if has_lost_work {
                let ended = self.turn_ended(kind, Report::cancelled(), 0);
                self.journal.note(ended);
                return Ok(());
            }
            let attempt = self.journal.session.attempt + 1;
            let again = |session: &Session| match kind {
                TurnKind::Work => EventBody::IterationStarted(IterationStarted {
                    number: session.iteration,
                    attempt,
                    items: 0,
                }),
                turn => EventBody::TurnStarted(TurnStarted { turn, attempt, items: 0 }),
            };
            if attempt > ATTEMPTS_MAX {
                let error = format!("this program ended in the middle of it, {ATTEMPTS_MAX} times");
                let ended = self.turn_ended(kind, Report::failed(error), 0);
                self.journal.note(ended);
            } else if !self.begin_turn(again)? {
                let ended = self.turn_ended(kind, Report::cancelled(), 0);
                self.journal.note(ended);
            }
        }
        Ok(())
    }

    /// The hooks of a point that only has to be passed.
    fn pass(&mut self, point: &Point) -> Result<(), EngineError> {
        if *point == Point::SessionEnd {
            // Somebody may have said something meanwhile: then that comes first.
            self.commit()?;
            if next_step(&self.journal.session, self.active_ms()) != NextStep::Hooks(point.clone())
            {
                return Ok(());
            }
            self.world.begin_end();
            self.run_point(point)?;
            self.see_files_before_rest();
            let outcome = self.journal.session.outcome.clone();
            let outcome = outcome.unwrap_or(SessionOutcome::Interrupted);
            let proven = self.journal.session.is_proven();
            self.journal.note(EventBody::SessionEnded(SessionEnded { outcome, proven }));
            return Ok(());
        }
        match point {
            // Each task has a place of its own, and it is made ready there.
            Point::SessionStart if self.journal.session.plan.delivers => {}
            Point::AfterSubmit => self.run_after_submit()?,
            point => drop(self.run_point(point)?),
        }
        self.journal.note(EventBody::PointPassed(PointPassed { point: point.name().to_owned() }));
        Ok(())
    }

    fn run_after_submit(&mut self) -> Result<(), EngineError> {
        let submitted = self.journal.session.submitted.clone();
        let Some(id) = submitted else { return Ok(()) };
        let row = self.journal.project.read(|view| view.task(&id))?;
        let delivery = self.journal.project.read(|view| view.delivery(&id))?;
        self.task = row.map(|row| row.task);
        self.delivery = delivery.submission.as_ref().map(DeliveryFacts::of_submission);
        let ran = self.run_point(&Point::AfterSubmit);
        (self.task, self.delivery) = (None, None);
        // What the hooks have led to.
        self.settle_reactions()?;
        ran.map(drop)
    }

    /// Fixes the next iteration's prompt.
    fn begin(&mut self, pause: IterationPause) -> Result<(), EngineError> {
        self.pause(pause)?;
        if !self.may_begin()? {
            return Ok(());
        }
        let mut what = self.world.drifted();
        // Each visit of a guest compares anew: what is in the log already is not news.
        if self.journal.session.plan.has_guest() {
            what.retain(|path| !self.journal.session.drifted.contains(path));
        }
        if !what.is_empty() {
            self.journal.note(EventBody::TrustDrifted(TrustDrifted { what }));
        }
        self.run_point(&Point::PreIteration)?;
        // A worktree that a hook has damaged is restored before the prompt is fixed.
        if !self.may_begin()? || self.check_place().is_err() {
            return Ok(());
        }
        self.see_files_of_hooks();
        let started = |session: &Session| {
            let (number, items) = (session.next_iteration(), items(session));
            EventBody::IterationStarted(IterationStarted { number, attempt: 1, items })
        };
        self.begin_turn(started).map(drop)
    }

    /// Waits, and hears meanwhile who wants something else.
    fn pause(&mut self, pause: IterationPause) -> Result<(), EngineError> {
        let began_ms = self.world.elapsed_ms();
        // By the clock on the wall where it is about a moment: the other one stands still in a suspend.
        let left_ms = |world: &W| {
            let gone_ms = world.elapsed_ms().saturating_sub(began_ms);
            match pause {
                IterationPause::For { ms } => ms.saturating_sub(gone_ms),
                IterationPause::Until { ms, least_ms } => {
                    ms.saturating_sub(world.now_ms()).max(least_ms.saturating_sub(gone_ms))
                }
            }
        };
        let mut left = left_ms(&self.world);
        if left == 0 {
            return Ok(());
        }
        self.commit()?;
        let reason = match self.journal.session.waits {
            0 => PauseReason::FailedTurn,
            _ => PauseReason::RateLimit,
        };
        self.world.notice(Notice::Pause { ms: left, reason });
        while left > 0 && self.may_begin()? {
            self.world.pause(left.min(LISTEN_EVERY_MS));
            left = left_ms(&self.world);
        }
        Ok(())
    }

    /// Whether an iteration is still what comes next: others may have said something meanwhile, a hook may
    /// have asked for a human, and one that was ended has not said all.
    fn may_begin(&mut self) -> Result<bool, EngineError> {
        self.journal.look()?;
        let next = next_step(&self.journal.session, self.active_ms());
        Ok(matches!(next, NextStep::Begin(_)) && !self.is_stopping())
    }

    fn start_turn(&mut self, turn: TurnKind) -> Result<(), EngineError> {
        self.journal.look()?;
        self.see_files_of_hooks();
        let started = |session: &Session| {
            let items = items(session);
            EventBody::TurnStarted(TurnStarted { turn, attempt: 1, items })
        };
        let has_begun = self.begin_turn(started)?;
        // Nobody waits for a last word whom the user told to stop.
        if !has_begun && turn == TurnKind::Delivery && self.is_stopping() {
            let body = self.turn_ended(turn, Report::cancelled(), 0);
            self.journal.note(body);
        }
        Ok(())
    }

    fn turn(&mut self, kind: TurnKind) -> Result<(), EngineError> {
        self.commit()?;
        let session = &self.journal.session;
        self.world.notice(Notice::Turn { kind, iteration: session.iteration });
        let limits = &session.plan.limits;
        let left_ms = limits.duration_ms.saturating_sub(self.active_ms());
        let allowance =
            Allowance::new(self.journal.project, &self.journal.id, self.reserved, session.left())?;
        let gates = self.prompt_gates();
        let turn = Turn {
            id: &self.journal.id,
            session,
            kind,
            task: self.task.as_ref(),
            gates: &gates,
            judge: self.claim_judge(),
            timeout_ms: limits.turn_ms.min(left_ms),
            allowance: allowance.as_ref(),
        };
        let before = self.world.elapsed_ms();
        self.restorations = 0;
        // The turn is not started in any other directory than the task's.
        let report = match self.check_place() {
            Ok(()) => self.world.take_turn(&turn),
            Err(damage) => Report::failed(format!("the turn was not started: {damage}")),
        };
        let report = match self.check_place() {
            Err(damage) if report.result == TurnResult::Finished => {
                let error = format!("the agent left no working directory: {damage}");
                Report { result: TurnResult::Failed { error }, ..report }
            }
            _ => report,
        };
        let shortage = allowance.as_ref().and_then(Allowance::shortage);
        let duration_ms = self.world.elapsed_ms().saturating_sub(before);
        let is_ended_by_us = self.is_stopping() || shortage.is_some();
        let report = match is_ended_by_us && report.result != TurnResult::Finished {
            true => Report { result: TurnResult::Cancelled, fault: None, ..report },
            false => report,
        };
        self.end_turn(kind, report, duration_ms)?;
        if let Some(shortage) = shortage {
            self.journal.note(EventBody::PurseExhausted(shortage));
        }
        Ok(())
    }

    pub(crate) fn end_turn(
        &mut self,
        kind: TurnKind,
        report: Report,
        duration_ms: u64,
    ) -> Result<(), EngineError> {
        (self.validated, self.proof) = (Vec::new(), None);
        self.settle_reactions()?;
        // What the agent has said by tools came in meanwhile.
        self.journal.look()?;
        let body = self.turn_ended(kind, report, duration_ms);
        self.journal.note(body);
        Ok(())
    }

    /// Runs the reactions to what hooks and agents did with `hookloop`, which did not run them itself.
    pub(super) fn settle_reactions(&self) -> Result<(), EngineError> {
        let project = self.journal.project;
        if !project.has_pending()? {
            return Ok(());
        }
        project.settle_reactions(&mut Done::default())?;
        if project.reactions_left().is_some() || project.has_dispatcher()? {
            return Ok(());
        }
        project.run_workflows()
    }

    pub(super) fn turn_ended(
        &mut self,
        turn: TurnKind,
        report: Report,
        duration_ms: u64,
    ) -> EventBody {
        let look = self.world.look_at_files();
        let (files, mut changed) =
            look.map_or((None, Vec::new()), |look| (Some(look.digest), look.changed));
        changed.truncate(CHANGED_MAX);
        let head = self.compared_head();
        let (mut promises, near_misses) = if turn == TurnKind::Work {
            self.counted_promises(report.promises, &report.message)
        } else {
            (report.promises, Vec::new())
        };
        let plan = &self.journal.session.plan;
        promises.retain(|promise| plan.ends_with(*promise));
        EventBody::TurnEnded(TurnEnded {
            turn,
            result: report.result,
            agent: self.journal.session.agent().to_owned(),
            duration_ms,
            active_ms: self.active_ms(),
            usage: report.usage,
            is_partial: report.is_partial,
            is_unpriced: report.is_unpriced,
            stderr: report.stderr,
            fault: report.fault,
            message: report.message,
            promises,
            near_misses,
            files,
            head,
            changed,
            refused: report.refused,
            artifact: report.artifact,
            conversation: report.conversation,
        })
    }

    fn answer_retry_limit(&mut self) -> Result<(), EngineError> {
        if self.world.can_ask() {
            let Session { failing, plan, .. } = &self.journal.session;
            let failing = failing.iter().flatten().cloned().collect();
            let asked = RetryLimitAsked { retries: plan.limits.hook_retries, failing };
            self.journal.note(EventBody::RetryLimitAsked(asked));
        }
        self.commit()?;
        let (world, journal) = (&mut self.world, &mut self.journal);
        let session = journal.session.clone();
        // What can't be looked at now can't be stored later either, and that says why.
        let mut is_answered =
            || journal.look().is_err() || journal.session.phase != SessionPhase::AtRetryLimit;
        let asked = world.ask(&session, &mut is_answered);
        if self.is_stopping() {
            return Ok(());
        }
        self.journal.look()?;
        if self.journal.session.phase != SessionPhase::AtRetryLimit {
            return Ok(());
        }
        // A session that began before the policy does not go by what it began with.
        let at_limit = match self.journal.project.rules().policy.no_accepting() {
            Some(_) => AtRetryLimit::NeedsHuman,
            None => self.journal.session.plan.at_retry_limit,
        };
        let (answer, by) = match (asked, at_limit) {
            (Some(answer), _) => (answer, "user"),
            (None, AtRetryLimit::Accept) => (LimitDecision::Accept, "at_retry_limit"),
            (None, AtRetryLimit::NeedsHuman) => (LimitDecision::Abort, "at_retry_limit"),
        };
        let by = by.to_owned();
        self.journal.note(EventBody::RetryLimitAnswered(RetryLimitAnswered { answer, by }));
        Ok(())
    }

    /// Claims the most urgent task that is ready; without one the session is over.
    fn take_task(&mut self) -> Result<(), EngineError> {
        self.commit()?;
        let project = self.journal.project;
        let agent = self.journal.id.actor();
        // A program that died may have claimed one and not have said so.
        let held = project.read(|view| view.held_by(&agent))?;
        let taken = match held {
            Some(row) => row.task.claim.clone().map(|claim| (row.task, claim.epoch)),
            None => {
                let wanted = match &self.journal.session.plan.work {
                    SessionWork::Task(id) => Wanted::Task(id.clone()),
                    _ => Wanted::Any,
                };
                // What has come due meanwhile may be the next one.
                project.fire_schedules(project.now())?;
                let worker = self.journal.session.agent().to_owned();
                let request =
                    ClaimRequest { agent, worker, lease: LEASE, wanted, labels: Vec::new() };
                match project.claim(&request) {
                    Ok(claimed) => claimed.map(|claimed| (claimed.task, claimed.epoch)),
                    // The one that is wanted can't be had.
                    Err(EngineError::Refused(refusal)) => {
                        let outcome = self.without_the_task(&refusal)?;
                        self.journal.note(EventBody::SessionEnding(outcome));
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let Some((task, epoch)) = taken else {
            self.journal.note(EventBody::SessionEnding(self.without_tasks()?));
            return Ok(());
        };
        let id = task.id.clone();
        let remediations = project.read(|view| view.delivery(&id))?.remediations;
        self.journal.note(EventBody::TaskTaken(TaskTaken { task: id, epoch, remediations }));
        self.tell_withheld(&task.id)?;
        self.tell_notes(&task.id)?;
        self.hold(Some(task), epoch);
        Ok(())
    }

    /// Tells the agent the results of the checks that stopped another session's work on the task, if that session was
    /// the last one to have the task. The outputs of this session itself are in its own state.
    fn tell_withheld(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let project = self.journal.project;
        let own = self.journal.id.actor();
        let events = project.log().history(&Subject::Task(task.clone()), TASK_EVENTS_MAX)?;
        let is_own_claim = |body: &EventBody| match body {
            EventBody::TaskStarted(started) => {
                started.claim.as_ref().is_some_and(|claim| claim.agent == own)
            }
            _ => false,
        };
        let last = events.iter().rev().skip_while(|stored| !is_own_claim(&stored.event.body));
        let last = last.skip(1).find(|stored| {
            let body = &stored.event.body;
            matches!(body, EventBody::TaskBlocked(_) | EventBody::TaskStarted(_))
        });
        let blocked = last.filter(|last| matches!(last.event.body, EventBody::TaskBlocked(_)));
        let other = blocked.and_then(|blocked| SessionId::of_actor(&blocked.event.actor));
        let Some(other) = other.filter(|other| *other != self.journal.id) else { return Ok(()) };
        let Some(other) = Journal::open(project, &other)? else { return Ok(()) };
        for piped in other.session.withheld_for(task) {
            self.journal.note(EventBody::OutputPiped(piped.clone()));
        }
        Ok(())
    }

    /// What was said about a task before it was taken: its first prompt has the last of it.
    fn tell_notes(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let notes = self.journal.project.read(|view| view.notes(task))?;
        let skipped = notes.len().saturating_sub(NOTES_TOLD);
        for note in notes.into_iter().skip(skipped) {
            let text = clipped(&note.what.text, PIPED_MAX);
            // A note may be by anybody, so it is data. An answer is by a person.
            let channel = match note.what.question {
                Some(_) => PromptChannel::User,
                None => PromptChannel::HookOutput,
            };
            let piped = PipedOutput {
                from: note.by,
                point: NOTE.to_owned(),
                text,
                channel: Some(channel),
                question: note.what.question,
                ..PipedOutput::default()
            };
            self.journal.note(EventBody::OutputPiped(piped));
        }
        Ok(())
    }

    /// What a session comes to that can't have the task that it is for: it may have submitted it.
    fn without_the_task(&self, refusal: &Refusal) -> Result<SessionOutcome, EngineError> {
        let reason = refusal.to_string();
        let session = &self.journal.session;
        let other = match session.plan.worker {
            // It was lost before anything was done, and somebody else has it.
            Some(_) => SessionOutcome::Interrupted,
            None => SessionOutcome::NeedsHuman { reason },
        };
        let SessionWork::Task(id) = &session.plan.work else { return Ok(other) };
        let row = self.journal.project.read(|view| view.task(id))?;
        let is_done = row.is_some_and(|row| {
            matches!(row.task.state, TaskState::Submitted | TaskState::Completed)
        });
        Ok(match is_done && session.tasks_submitted.contains(id) {
            true => SessionOutcome::Complete { unproven: session.has_accepted },
            false => other,
        })
    }

    /// What a session comes to that finds no task.
    fn without_tasks(&self) -> Result<SessionOutcome, EngineError> {
        let session = &self.journal.session;
        if !session.tasks_lost.is_empty() {
            return Ok(lost(session));
        }
        let blocked = session.tasks_blocked.len();
        let open = self.journal.project.read(|view| view.open_tasks())?;
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let are_open = counted(number(open), "task is open", "tasks are open");
        let reason = match (blocked, open) {
            (0, 0) => {
                let unproven = self.journal.session.has_accepted;
                return Ok(SessionOutcome::Complete { unproven });
            }
            (0, _) => match self.journal.project.why_none(&Wanted::Any)? {
                WhyNone::Full(full) => format!("{are_open}, but {full}"),
                WhyNone::NothingReady { next: Some(next) } => {
                    format!("{are_open} and none is ready before {}", next.brief())
                }
                WhyNone::NotForAgent => {
                    let agent = session.agent();
                    let closed = self.journal.project.closed_in_words(agent)?;
                    let none = format!("{are_open} and none is ready for `{agent}`");
                    [vec![none], closed].concat().join("; ")
                }
                WhyNone::NothingReady { next: None } => {
                    format!("{are_open} and none is ready")
                }
            },
            (blocked, _) => {
                let count = u32::try_from(blocked).unwrap_or(u32::MAX);
                let names = session.tasks_blocked.iter().take(BLOCKED_NAMED);
                let names = names.map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let needs = counted(count, "task needs a human", "tasks need a human");
                format!("{needs}: {names}")
            }
        };
        Ok(SessionOutcome::NeedsHuman { reason })
    }

    pub(crate) fn leave_task(
        &mut self,
        how: TaskExit,
        reason: Option<String>,
    ) -> Result<(), EngineError> {
        let Some(TaskTaken { task, epoch, .. }) = self.journal.session.task.clone() else {
            return Ok(());
        };
        self.commit()?;
        let (how, reason) = match how {
            TaskExit::Returned => self.may_return(&task, reason)?,
            how => (how, reason),
        };
        let fence = Fence::Epoch(epoch);
        let id = task.clone();
        let why = reason.clone().unwrap_or_default();
        let command = match how {
            TaskExit::Completed => {
                let proven = self.journal.session.has_proven_task();
                let result = reason.clone();
                let outcome = TaskOutcome { result, proven, ..TaskOutcome::default() };
                Command::CompleteTask { id, outcome, fence }
            }
            TaskExit::Blocked => {
                let obstacle = TaskObstacle { reason: why, required_knowledge: None };
                Command::BlockTask { id, obstacle, fence }
            }
            TaskExit::Submitted => {
                let proven = self.journal.session.has_proven_task();
                let submission = self.journal.session.submission.clone();
                let submission = submission.map(|found| Submission { proven, ..found });
                Command::SubmitTask { id, fence, submission }
            }
            TaskExit::Returned => Command::ReleaseTask {
                id,
                fence,
                reason: ReleaseReason::NeedsContinuation,
                note: reason.clone(),
            },
            TaskExit::Released | TaskExit::Lost => Command::ReleaseTask {
                id,
                fence,
                reason: ReleaseReason::Released,
                note: reason.clone(),
            },
        };
        let left = |how, reason| EventBody::TaskLeft(TaskLeft { task: task.clone(), how, reason });
        match self.journal.change(command, left(how, reason))? {
            Ok(stored) => {
                self.tell_stored(&stored)?;
                if how == TaskExit::Submitted {
                    self.ask_for_consent(&task)?;
                }
            }
            Err(refusal) => {
                let why = Some(refusal.to_string());
                self.journal.note(left(TaskExit::Lost, why));
            }
        }
        self.task = None;
        self.world.hold(None);
        // Hooks of the task's end may have something to say.
        self.settle_reactions()?;
        Ok(())
    }

    /// Asks a person about submitted work that changes the gates' own files. It is not merged before.
    fn ask_for_consent(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let Some(submission) = self.journal.session.submission.clone() else { return Ok(()) };
        let Some(reason) = self.world.why_consent(&submission.head) else { return Ok(()) };
        let fact = DeliveryFact::Held(MergeHeld { head: submission.head, reason: Some(reason) });
        let command = Command::RecordDelivery { id: task.clone(), fact };
        match self.journal.project.execute(&command) {
            // Others did something about it already; whoever merges looks again.
            Err(EngineError::Refused(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// A task that goes back too often is one for a human.
    fn may_return(
        &self,
        task: &TaskId,
        reason: Option<String>,
    ) -> Result<(TaskExit, Option<String>), EngineError> {
        let returns = self.journal.project.read(|view| view.delivery(task))?.returns;
        if returns < self.journal.session.plan.limits.continuations {
            return Ok((TaskExit::Returned, reason));
        }
        let why = reason.unwrap_or_default();
        Ok((TaskExit::Blocked, Some(format!("it went back {returns} times; the last time: {why}"))))
    }

    fn hold(&mut self, task: Option<Task>, epoch: u64) {
        self.world.hold(task.as_ref().map(|task| (task, epoch)));
        self.task = task;
    }

    /// An instruction for the next prompt: of hookloop, or of a hook whose trusted definition allows it.
    pub(super) fn instruct(&mut self, from: &str, point: &Point, text: String) {
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: from.to_owned(),
            point: point.name().to_owned(),
            text: clipped(&text, PIPED_MAX),
            channel: Some(PromptChannel::Instruction),
            ..PipedOutput::default()
        }));
    }

    /// Output of a hook for the next prompt, as data: the excerpt that [`hookloop_hooks::hook_run::piped`] makes.
    pub(super) fn tell_hook_output(
        &mut self,
        hook: &str,
        point: &Point,
        status: HookStatus,
        text: String,
    ) {
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: hook.to_owned(),
            point: point.name().to_owned(),
            status: Some(status.into()),
            text,
            channel: Some(PromptChannel::HookOutput),
            ..PipedOutput::default()
        }));
    }

    /// The result of a check for the next prompt, as data.
    pub(super) fn tell_check(&mut self, point: &Point, run: &HookRun, text: String) {
        let gate = self.gate_named(point, &run.hook);
        self.journal.note(EventBody::OutputPiped(PipedOutput {
            from: run.hook.clone(),
            point: point.name().to_owned(),
            status: Some(run.outcome.status.into()),
            text: clipped(&text, PIPED_MAX),
            channel: Some(PromptChannel::CheckResult),
            command: gate.map(|gate| describe(&gate)),
            exit_code: run.ran.as_ref().and_then(|ran| ran.exit_code),
            question: None,
        }));
    }

    /// The gate of that name whose verdict is told at a point: validation rules are told with the gates.
    fn gate_named(&self, point: &Point, name: &str) -> Option<Hook> {
        let points = [point.clone(), Point::Validation];
        points.iter().flat_map(|point| self.hooks_at(point)).find(|hook| hook.name == name)
    }

    /// The gates that judge the work when the agent reports that it is complete.
    fn prompt_gates(&self) -> Vec<PromptGate> {
        let points = [Point::Stop, Point::Validation, Point::BeforeSubmit];
        let points = if self.journal.session.plan.delivers { &points[..] } else { &points[..2] };
        let hooks = points.iter().flat_map(|point| self.hooks_at(point));
        hooks.filter(prompt::is_check).map(|hook| PromptGate::from(&hook)).collect()
    }
}

/// How much of what waits a prompt takes: at least the first.
fn items(session: &Session) -> u32 {
    let mut room = PROMPT_PIPED_MAX;
    let fits = |piped: &&PipedOutput| match room.checked_sub(piped.text.len()) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let fitting = session.pending.iter().take_while(fits).count();
    fitting.max(session.pending.len().min(1)) as u32
}
