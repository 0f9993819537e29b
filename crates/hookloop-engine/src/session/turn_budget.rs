//! The budget of a turn: reserved before the turn begins, and extended when it needs more.

use hookloop_core::event::EventBody;
use hookloop_core::session::{Session, next_step};
use hookloop_core::shared_budget::{Amount, ReservationAnswer, SharedBudget, Shortage};
use hookloop_store::view::BudgetReservation;

use super::allowance::today;
use super::drive::SessionDriver;
use super::journal::TurnStart;
use super::lookup;
use super::world::{SessionUpdate, SessionWorld, TurnMoment};
use crate::error::{EngineError, SessionTakenOver};
use crate::project::Project;

/// Interval of the checks of a budget that other sessions have reserved.
const LOOK_EVERY_MS: u64 = 1_000;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Begins a turn, with its reservation in the same batch, and returns whether it began.
    ///
    /// It waits while other sessions have reserved more than they may need. If the budget is
    /// exhausted, it records that.
    pub(super) fn begin_turn(
        &mut self,
        started: impl Fn(&Session) -> EventBody,
    ) -> Result<bool, EngineError> {
        let has_begun = self.reserve_and_begin(started)?;
        if has_begun {
            self.keep_files(TurnMoment::Before);
        }
        Ok(has_begun)
    }

    fn reserve_and_begin(
        &mut self,
        started: impl Fn(&Session) -> EventBody,
    ) -> Result<bool, EngineError> {
        let project = self.journal.project;
        let budget = project.rules.limits.budget;
        let of_fleet = project.budget_of_fleet()?;
        // The usage of an external session is unknown, and does not count.
        if budget.is_none() && of_fleet.is_none() || self.journal.session.plan.is_external() {
            let body = started(&self.journal.session);
            self.journal.note(body);
            return Ok(true);
        }
        if !of_fleet.is_none() {
            // The fleet ledger needs the usage of the last turn before the next reservation.
            self.commit()?;
        }
        let due = next_step(&self.journal.session, self.active_ms());
        let left = self.journal.session.left();
        let amount = match (budget.is_none(), of_fleet.is_none()) {
            (_, true) => budget.amount(left),
            (true, false) => of_fleet.amount(left),
            (false, false) => budget.amount(left).max(of_fleet.amount(left)),
        };
        let mut is_waiting = false;
        let mut patience = BudgetWait { held: Vec::new(), since_ms: self.world.elapsed_ms() };
        loop {
            let answer = self.reserve_turn(&budget, amount, is_waiting, &started)?;
            match answer {
                TurnStart::Stored(stored) => {
                    self.tell_stored(&stored)?;
                    self.reserved = amount;
                    return Ok(true);
                }
                TurnStart::Not(ReservationAnswer::Exhausted(shortage)) => {
                    self.journal.note(EventBody::BudgetExhausted(shortage));
                    return Ok(false);
                }
                TurnStart::Not(answer) => {
                    self.commit()?;
                    let lacking = self.shortage_in_wait(&budget, amount, answer, &mut patience)?;
                    if let Some(shortage) = lacking {
                        self.journal.note(EventBody::BudgetExhausted(shortage));
                        return Ok(false);
                    }
                    if !is_waiting {
                        self.world.notice(SessionUpdate::Budget);
                    }
                    is_waiting = true;
                    self.world.pause(LOOK_EVERY_MS);
                    self.journal.look()?;
                }
                TurnStart::Behind => {}
            }
            let next = next_step(&self.journal.session, self.active_ms());
            if next != due || self.is_stopping() {
                return Ok(false);
            }
        }
    }

    /// Reserves the amount and stores the start of the turn in one batch.
    ///
    /// While `is_waiting`, the budget is read first, so that a session that waits writes nothing.
    fn reserve_turn(
        &mut self,
        budget: &SharedBudget,
        amount: Amount,
        is_waiting: bool,
        started: &impl Fn(&Session) -> EventBody,
    ) -> Result<TurnStart, EngineError> {
        let project = self.journal.project;
        let looked = if is_waiting {
            project.look_into(budget, amount)?
        } else {
            ReservationAnswer::Granted
        };
        let of_fleet = match (looked, &project.books) {
            (ReservationAnswer::Granted, Some(books)) => {
                let answer = books.reserve(project, &self.journal.id, amount)?;
                answer.ok_or(EngineError::SessionTaken(SessionTakenOver))?
            }
            (looked, _) => looked,
        };
        if of_fleet != ReservationAnswer::Granted {
            return Ok(TurnStart::Not(of_fleet));
        }
        let body = started(&self.journal.session);
        self.journal.begin_turn(budget, amount, body)
    }

    /// Returns the shortage if waiting for the reservations of others cannot help.
    fn shortage_in_wait(
        &self,
        budget: &SharedBudget,
        amount: Amount,
        answer: ReservationAnswer,
        patience: &mut BudgetWait,
    ) -> Result<Option<Shortage>, EngineError> {
        let project = self.journal.project;
        let held = project.read(|view| view.reservations())?;
        let silent_ms = patience.look(held, self.world.elapsed_ms());
        let is_over = silent_ms >= self.journal.session.plan.limits.turn_timeout_ms;
        match answer {
            ReservationAnswer::Wait(shortage) if is_over => Ok(Some(shortage)),
            _ => project.waits_in_vain(budget, amount),
        }
    }
}

/// The reservations of other sessions, and the time since they last changed.
///
/// A session whose machine died keeps its reservation until it is resumed. So the wait ends when
/// nothing has changed for the duration of a turn.
struct BudgetWait {
    held: Vec<BudgetReservation>,
    since_ms: u64,
}

impl BudgetWait {
    /// Returns the milliseconds since the last change.
    fn look(&mut self, held: Vec<BudgetReservation>, now_ms: u64) -> u64 {
        if held != self.held {
            (self.held, self.since_ms) = (held, now_ms);
        }
        now_ms.saturating_sub(self.since_ms)
    }
}

impl Project {
    /// Whether the project's own budget has room for one more turn.
    pub fn may_begin(&self) -> Result<ReservationAnswer, EngineError> {
        let budget = &self.rules.limits.budget;
        self.look_into(budget, budget.amount(Amount::ALL))
    }

    fn look_into(
        &self,
        budget: &SharedBudget,
        amount: Amount,
    ) -> Result<ReservationAnswer, EngineError> {
        self.read(|view| Ok(budget.reserve(&view.budget_standing(today())?, amount)))
    }

    /// Returns the shortage that stays even if all live sessions release their reservations unused.
    ///
    /// The reservation of a session whose process died on this machine counts as used. It is
    /// released when the session is resumed or ended, which may be never.
    fn waits_in_vain(
        &self,
        budget: &SharedBudget,
        amount: Amount,
    ) -> Result<Option<Shortage>, EngineError> {
        let Some(runner) = self.runner() else { return Ok(None) };
        let (mut standing, held) =
            self.read(|view| Ok((view.budget_standing(today())?, view.reservations()?)))?;
        let is_dead = |held: &&BudgetReservation| lookup::is_abandoned(self, runner, &held.session);
        let dead =
            held.iter().filter(is_dead).fold(Amount::default(), |sum, held| sum.plus(held.amount));
        standing.day = standing.day.plus(dead);
        standing.total = standing.total.plus(dead);
        standing.open = standing.open.minus(dead);
        Ok(match budget.reserve(&standing, amount) {
            ReservationAnswer::Exhausted(shortage) => Some(shortage),
            ReservationAnswer::Granted | ReservationAnswer::Wait(_) => None,
        })
    }
}
