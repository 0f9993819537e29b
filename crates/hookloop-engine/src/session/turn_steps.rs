//! The steps of a session that start and end turns of the agent.

use hookloop_agents::TurnReport;
use hookloop_core::event::EventBody;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{TrustDriftDetected, TurnStarted};
use hookloop_core::session::step::ATTEMPTS_MAX;
use hookloop_core::session::{
    IterationPause, IterationStarted, NextStep, PipedOutput, Session, SessionPhase, SessionWork,
    TurnEnded, TurnKind, TurnResult, next_step,
};

use super::allowance::TurnAllowance;
use super::drive::SessionDriver;
use super::world::{DueTurn, PauseReason, SessionUpdate, SessionWorld, TurnMoment};
use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;

/// Maximum size of pending items in one prompt. The rest waits for the next one.
const PROMPT_PIPED_MAX: usize = 256 * 1024;
/// Interval of reads of the log during a long pause.
const LISTEN_EVERY_MS: u64 = 5_000;
/// Maximum files that a turn's record names.
const CHANGED_MAX: usize = 200;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Starts a turn again that a crash interrupted.
    ///
    /// If its worktree was lost, the turn ends, and the prompt of the next one reports the loss.
    pub(super) fn pick_up_turn(&mut self, has_lost_work: bool) -> Result<(), EngineError> {
        if let SessionPhase::Turn(kind) = self.journal.session.phase {
            if has_lost_work {
                let ended = self.turn_ended(kind, TurnReport::cancelled(), 0);
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
                let ended = self.turn_ended(kind, TurnReport::failed(error), 0);
                self.journal.note(ended);
            } else if !self.begin_turn(again)? {
                let ended = self.turn_ended(kind, TurnReport::cancelled(), 0);
                self.journal.note(ended);
            }
        }
        Ok(())
    }

    /// Runs the hooks before the next iteration, and starts it with a fixed prompt.
    pub(super) fn begin(&mut self, pause: IterationPause) -> Result<(), EngineError> {
        self.pause(pause)?;
        if !self.may_begin()? {
            return Ok(());
        }
        let mut what = self.world.drifted();
        // Each call of an external session compares again. Changes that the log already has are not
        // new.
        if self.journal.session.plan.is_external() {
            what.retain(|path| !self.journal.session.drifted.contains(path));
        }
        if !what.is_empty() {
            self.journal.note(EventBody::TrustDriftDetected(TrustDriftDetected { changed: what }));
        }
        self.run_point(&Point::PreIteration)?;
        // A worktree that a hook damaged is restored before the prompt is fixed.
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

    /// Waits before an iteration, and ends the wait early if the next step changes.
    fn pause(&mut self, pause: IterationPause) -> Result<(), EngineError> {
        let began_ms = self.world.elapsed_ms();
        // A point in time needs the wall clock, because the other clock stops while the machine is
        // suspended.
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
        self.world.notice(SessionUpdate::Pause { ms: left, reason });
        while left > 0 && self.may_begin()? {
            self.world.pause(left.min(LISTEN_EVERY_MS));
            left = left_ms(&self.world);
        }
        Ok(())
    }

    /// Whether an iteration still is the next step.
    ///
    /// Meanwhile a message may have arrived, a hook may have escalated, or the user may have
    /// stopped the session.
    fn may_begin(&mut self) -> Result<bool, EngineError> {
        self.journal.look()?;
        let next = next_step(&self.journal.session, self.active_ms());
        Ok(matches!(next, NextStep::Begin(_)) && !self.is_stopping())
    }

    pub(super) fn start_turn(&mut self, turn: TurnKind) -> Result<(), EngineError> {
        self.journal.look()?;
        self.see_files_of_hooks();
        let started = |session: &Session| {
            let items = items(session);
            EventBody::TurnStarted(TurnStarted { turn, attempt: 1, items })
        };
        let has_begun = self.begin_turn(started)?;
        // If the user stopped the session, it does not wait for a final turn.
        if !has_begun && turn == TurnKind::Delivery && self.is_stopping() {
            let body = self.turn_ended(turn, TurnReport::cancelled(), 0);
            self.journal.note(body);
        }
        Ok(())
    }

    pub(super) fn turn(&mut self, kind: TurnKind) -> Result<(), EngineError> {
        self.commit()?;
        let session = &self.journal.session;
        self.world.notice(SessionUpdate::Turn { kind, iteration: session.iteration });
        let limits = &session.plan.limits;
        let left_ms = limits.max_duration_ms.saturating_sub(self.active_ms());
        let allowance = TurnAllowance::new(
            self.journal.project,
            &self.journal.id,
            self.reserved,
            session.left(),
        )?;
        let gates = self.prompt_gates();
        let turn = DueTurn {
            id: &self.journal.id,
            session,
            kind,
            task: self.task.as_ref(),
            gates: &gates,
            judge: self.claim_judge(),
            timeout_ms: limits.turn_timeout_ms.min(left_ms),
            allowance: allowance.as_ref(),
        };
        let before = self.world.elapsed_ms();
        self.restorations = 0;
        // A turn never starts in another directory than the task's.
        let report = match self.check_place() {
            Ok(()) => self.world.take_turn(&turn),
            Err(damage) => TurnReport::failed(format!("the turn was not started: {damage}")),
        };
        let report = match self.check_place() {
            Err(damage) if report.result == TurnResult::Finished => {
                let error = format!("the agent left no working directory: {damage}");
                TurnReport { result: TurnResult::Failed { error }, ..report }
            }
            _ => report,
        };
        let shortage = allowance.as_ref().and_then(TurnAllowance::shortage);
        let duration_ms = self.world.elapsed_ms().saturating_sub(before);
        let is_ended_by_us = self.is_stopping() || shortage.is_some();
        let report = match is_ended_by_us && report.result != TurnResult::Finished {
            true => TurnReport { result: TurnResult::Cancelled, fault: None, ..report },
            false => report,
        };
        self.end_turn(kind, report, duration_ms)?;
        if let Some(shortage) = shortage {
            self.journal.note(EventBody::BudgetExhausted(shortage));
        }
        Ok(())
    }

    pub(crate) fn end_turn(
        &mut self,
        kind: TurnKind,
        report: TurnReport,
        duration_ms: u64,
    ) -> Result<(), EngineError> {
        (self.validated, self.proof) = (Vec::new(), None);
        self.settle_reactions()?;
        // Apply the claims that the agent made through tools during the turn.
        self.journal.look()?;
        let body = self.turn_ended(kind, report, duration_ms);
        self.journal.note(body);
        Ok(())
    }

    /// Runs the reactions to commands of hooks and agents, which do not run them themselves.
    pub(super) fn settle_reactions(&self) -> Result<(), EngineError> {
        let project = self.journal.project;
        if !project.has_pending()? {
            return Ok(());
        }
        project.settle_reactions(&mut CommandOutcome::default())?;
        if project.reactions_left().is_some() || project.has_dispatcher()? {
            return Ok(());
        }
        project.run_workflows()
    }

    /// Keeps a snapshot of the files before or after the running turn, and returns its tree.
    pub(super) fn keep_files(&mut self, moment: TurnMoment) -> Option<String> {
        let session = &self.journal.session;
        // A reviewer changes nothing that is kept.
        if matches!(session.plan.work, SessionWork::Review(_)) {
            return None;
        }
        let turn = session.turns + 1;
        self.world.keep_files(&self.journal.id, turn, moment)
    }

    pub(super) fn turn_ended(
        &mut self,
        turn: TurnKind,
        report: TurnReport,
        duration_ms: u64,
    ) -> EventBody {
        let look = self.world.look_at_files();
        let (files, mut changed) =
            look.map_or((None, Vec::new()), |look| (Some(look.digest), look.changed));
        changed.truncate(CHANGED_MAX);
        let head = self.compared_head();
        let tree = self.keep_files(TurnMoment::After);
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
            tree,
            head,
            changed,
            refused: report.refused,
            artifact: report.artifact,
            conversation: report.conversation,
        })
    }
}

/// Returns the number of pending items that fit into a prompt, at least one if any are pending.
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
