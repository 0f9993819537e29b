//! Performs a session step by step, until it ends or pauses.

use std::collections::{BTreeSet, HashMap, HashSet};

use hookloop_core::event::{EventBody, NoData};
use hookloop_core::hook::HookRegistry;
use hookloop_core::id::SessionId;
use hookloop_core::options::ExpectationReviewer;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{
    DecisionMade, DecisionRequested, ExpectationVerdict, HookPointCompleted, TestStrength,
};
use hookloop_core::session::stop::ValidationResult;
use hookloop_core::session::{
    AtRetryLimit, LimitDecision, NextStep, Session, SessionEnded, SessionOutcome, SessionPhase,
    next_step,
};
use hookloop_core::shared_budget::Amount;
use hookloop_core::task::Task;
use hookloop_hooks::hook_context::DeliveryFacts;
use hookloop_store::log::StoredEvent;

use super::check_records::CheckOutcomes;
use super::failing_checks::FailingChecks;
use super::gate_results::GateResults;
use super::journal::SessionJournal;
use super::open::SessionHandle;
use super::place_damage::needs_place;
use super::world::{SessionUpdate, SessionWorld};
use crate::error::{EngineError, SessionTakenOver};
use crate::project::{Project, is_in_ledger};

/// A session that this process performs.
#[expect(missing_debug_implementations, reason = "a world has none")]
pub struct SessionDriver<'p, W> {
    pub(crate) journal: SessionJournal<'p>,
    pub(super) world: W,
    /// The hooks that the session had when it began.
    pub(crate) hooks: HookRegistry,
    pub(crate) task: Option<Task>,
    /// The results of the validation rules in this iteration.
    pub(crate) validated: Vec<ValidationResult>,
    /// The results of gates on the current files.
    pub(super) proof: Option<GateResults>,
    /// Gates whose command has been executed by this process.
    pub(super) executed: BTreeSet<String>,
    /// The reservation for the next turn.
    pub(super) reserved: Amount,
    /// The delivery for which hooks currently run.
    pub(super) delivery: Option<DeliveryFacts>,
    /// Files that gates wrote into the working directory.
    pub(super) gate_files: BTreeSet<String>,
    /// The submodules with uncommitted changes of which the user was told last.
    pub(super) told_uncommitted: Vec<String>,
    /// The outcomes in the last record of each gate's checks.
    pub(super) known_checks: HashMap<String, CheckOutcomes>,
    /// The checks of gates that failed before the work began; none if they explain no failure.
    pub(super) failing_before: HashMap<String, Option<FailingChecks>>,
    /// The verdicts of gatekeepers about changes of tests, by the tree and the changes.
    pub(super) expectation_verdicts: HashMap<String, ExpectationVerdict>,
    /// Changed expectations that a gatekeeper approved: the gatekeeper's definition, and the digest of the change.
    pub(super) approved_expectations: HashSet<(ExpectationReviewer, String)>,
    /// The strength of tests, by gate and tree.
    pub(super) strengths: HashMap<(String, String), TestStrength>,
    /// Whether the hooks that run are gates with the tests of the base.
    pub(super) is_base_run: bool,
    /// How often the worktree was restored since the last turn.
    pub(super) restorations: u32,
    /// The session's run time before this process continued it.
    active_before_ms: u64,
}

impl<'p, W: SessionWorld> SessionDriver<'p, W> {
    /// Continues the session `id` from the log. Returns none if there is no such session.
    pub fn open(
        project: &'p Project,
        id: &SessionId,
        world: W,
        hooks: HookRegistry,
    ) -> Result<Option<SessionDriver<'p, W>>, EngineError> {
        let journal = SessionJournal::open(project, id)?;
        Ok(journal.map(|journal| SessionDriver::with(journal, world, hooks)))
    }

    /// Continues a session that this process opened. Returns an error if another process has it
    /// now.
    pub(crate) fn of(
        project: &'p Project,
        opened: &SessionHandle,
        world: W,
        hooks: HookRegistry,
    ) -> Result<Option<SessionDriver<'p, W>>, EngineError> {
        match SessionDriver::open(project, &opened.id, world, hooks)? {
            Some(driver) if driver.session().run != opened.run => {
                Err(EngineError::SessionTaken(SessionTakenOver))
            }
            driver => Ok(driver),
        }
    }

    pub(crate) fn with(
        journal: SessionJournal<'p>,
        world: W,
        hooks: HookRegistry,
    ) -> SessionDriver<'p, W> {
        let active_before_ms = journal.session.active_ms;
        let (task, validated, proof) = (None, Vec::new(), None);
        let reserved = Amount::default();
        SessionDriver {
            journal,
            world,
            hooks,
            task,
            validated,
            proof,
            executed: BTreeSet::new(),
            reserved,
            delivery: None,
            gate_files: BTreeSet::new(),
            told_uncommitted: Vec::new(),
            known_checks: HashMap::new(),
            expectation_verdicts: HashMap::new(),
            approved_expectations: HashSet::new(),
            failing_before: HashMap::new(),
            strengths: HashMap::new(),
            is_base_run: false,
            restorations: 0,
            active_before_ms,
        }
    }

    pub(crate) fn into_parts(self) -> (SessionJournal<'p>, W) {
        (self.journal, self.world)
    }

    /// Sets the run time so far, if the log does not have a longer one.
    #[must_use]
    pub fn after(mut self, active_ms: u64) -> SessionDriver<'p, W> {
        self.active_before_ms = self.active_before_ms.max(active_ms);
        self
    }

    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    pub fn session(&self) -> &Session {
        &self.journal.session
    }

    /// Performs the session until it ends or pauses.
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

    /// Performs steps until a turn, an end, a pause, or a step for which `halts` is true.
    ///
    /// Returns that step.
    pub(crate) fn advance(
        &mut self,
        halts: impl Fn(&NextStep) -> bool,
    ) -> Result<NextStep, EngineError> {
        loop {
            if self.journal.session.outcome.is_none() {
                self.world.rest();
            }
            self.take_user_commands();
            let step = next_step(&self.journal.session, self.active_ms());
            let is_left = self.journal.session.plan.is_external() && self.world.is_cancelled();
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

    /// Stores the noted events, and reports them.
    pub(crate) fn commit(&mut self) -> Result<(), EngineError> {
        let stored = self.journal.commit()?;
        self.tell_stored(&stored)
    }

    /// Reports stored events to the observer and to the fleet ledger.
    pub(super) fn tell_stored(&mut self, stored: &[StoredEvent]) -> Result<(), EngineError> {
        self.world.notice(SessionUpdate::Stored(stored));
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

    /// Whether the session's time is over, or the user stops it. Running hooks and turns are ended
    /// then.
    pub(super) fn is_stopping(&self) -> bool {
        self.world.is_cancelled()
            || self.active_ms() >= self.journal.session.plan.limits.max_duration_ms
    }

    fn take_user_commands(&mut self) {
        let session = &self.journal.session;
        // An external agent that does not wait for the answer may ask for it later.
        if session.plan.is_external() {
            return;
        }
        // Work that still needs its proof will not be proven after a stop, so it is cancelled.
        let is_ending = match session.phase {
            SessionPhase::Ending => !session.is_unproven() && !session.has_unjudged_end(),
            SessionPhase::Ended => true,
            _ => false,
        };
        if (self.world.is_cancelled() || session.stop_requested) && !is_ending {
            self.journal.note(EventBody::SessionEnding(SessionOutcome::Cancelled));
        }
    }

    /// Continues after a process that crashed: restores its task, turn and files.
    fn pick_up(&mut self) -> Result<(), EngineError> {
        let recreations = self.journal.session.recreations;
        self.pick_up_task()?;
        let has_lost_work = self.journal.session.recreations > recreations;
        self.pick_up_turn(has_lost_work)?;
        self.see_files();
        Ok(())
    }

    /// Runs the hooks of a point, and records that the point is completed.
    fn pass(&mut self, point: &Point) -> Result<(), EngineError> {
        if *point == Point::SessionEnd {
            // A message may have arrived meanwhile. Then it comes first.
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
            // Each task has its own worktree, which is prepared when the task is claimed.
            Point::SessionStart if self.journal.session.plan.delivers => {}
            Point::AfterSubmit => self.run_after_submit()?,
            point => drop(self.run_point(point)?),
        }
        self.journal.note(EventBody::HookPointCompleted(HookPointCompleted {
            point: point.name().to_owned(),
        }));
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
        // Run the reactions to the hooks' actions.
        self.settle_reactions()?;
        ran.map(drop)
    }

    fn answer_retry_limit(&mut self) -> Result<(), EngineError> {
        if self.world.can_ask() {
            let Session { failing, plan, .. } = &self.journal.session;
            let failing = failing.iter().flatten().cloned().collect();
            let asked = DecisionRequested { retries: plan.limits.gate_retries, failing };
            self.journal.note(EventBody::DecisionRequested(asked));
        }
        self.commit()?;
        let (world, journal) = (&mut self.world, &mut self.journal);
        let session = journal.session.clone();
        // If the log cannot be read now, storing the decision reports why.
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
        // The policy also applies to sessions that began before it.
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
        self.journal.note(EventBody::DecisionMade(DecisionMade { answer, by }));
        Ok(())
    }
}
