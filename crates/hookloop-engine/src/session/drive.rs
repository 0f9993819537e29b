//! One step of a session after the other, until it ends or rests.

use std::collections::BTreeSet;

use hookloop_core::event::{EventBody, NoData};
use hookloop_core::hook::HookRegistry;
use hookloop_core::id::SessionId;
use hookloop_core::point::Point;
use hookloop_core::purse::Amount;
use hookloop_core::session::facts::{PointPassed, RetryLimitAnswered, RetryLimitAsked};
use hookloop_core::session::stop::ValidationResult;
use hookloop_core::session::{
    AtRetryLimit, LimitDecision, NextStep, Session, SessionEnded, SessionOutcome, SessionPhase,
    next_step,
};
use hookloop_core::task::Task;
use hookloop_hooks::hook_context::DeliveryFacts;
use hookloop_store::log::StoredEvent;

use super::gate_results::Proof;
use super::journal::Journal;
use super::open::Opened;
use super::place_damage::needs_place;
use super::world::{Notice, World};
use crate::error::{EngineError, Taken};
use crate::project::{Project, is_in_ledger};

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
}
