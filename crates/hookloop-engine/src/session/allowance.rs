//! The amount that is reserved of the budget for a running turn.

use std::cell::Cell;

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::event::{BudgetReserved, EventBody};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::Usage;
use hookloop_core::shared_budget::{Amount, ReservationAnswer, SharedBudget, Shortage};
use hookloop_core::time::Day;

use crate::batch::{Batch, EventOrigin};
use crate::error::EngineError;
use crate::project::Project;

/// Divisor of the reservation: steps up to this part of it count as small.
///
/// An agent with small steps is stopped before a step that exceeds the budget.
const SMALL_STEP: u64 = 4;

/// Reserves `amount` for a session's turn, if the budget has room beside all other reservations.
///
/// The version of the budget's subject orders concurrent reservations. So each reservation has seen
/// all earlier ones.
pub(super) fn reserve_in_batch(
    work: &mut Batch<'_, '_, '_>,
    origin: EventOrigin,
    budget: &SharedBudget,
    session: &SessionId,
    amount: Amount,
) -> Result<ReservationAnswer, EngineError> {
    if budget.is_none() {
        return Ok(ReservationAnswer::Granted);
    }
    let answer = budget.reserve(&work.unit.view()?.budget_standing(today())?, amount);
    if answer == ReservationAnswer::Granted {
        let reserved = BudgetReserved { session: session.clone(), amount };
        work.stage_quietly(origin, Subject::Budget, EventBody::BudgetReserved(reserved))?;
    }
    Ok(answer)
}

pub(super) fn today() -> Day {
    now().into()
}

/// The reservation of a running turn.
#[derive(Debug)]
pub struct TurnAllowance<'a> {
    project: &'a Project,
    session: &'a SessionId,
    of_fleet: SharedBudget,
    reserved: Cell<Amount>,
    /// The amount that the session may use by its own limits.
    left: Amount,
    told: Cell<Amount>,
    /// The largest use between two reports of the agent.
    step: Cell<Amount>,
    shortage: Cell<Option<Shortage>>,
}

impl<'a> TurnAllowance<'a> {
    /// Returns none if neither the project nor the fleet has a budget.
    pub fn new(
        project: &'a Project,
        session: &'a SessionId,
        reserved: Amount,
        left: Amount,
    ) -> Result<Option<TurnAllowance<'a>>, EngineError> {
        let (told, step, shortage) = (Cell::default(), Cell::default(), Cell::default());
        let reserved = Cell::new(reserved);
        let of_fleet = project.budget_of_fleet()?;
        let is_bound = !project.rules.limits.budget.is_none() || !of_fleet.is_none();
        let allowance =
            TurnAllowance { project, session, of_fleet, reserved, left, told, step, shortage };
        Ok(is_bound.then_some(allowance))
    }

    /// Whether the reservation covers the need in every budget that applies.
    fn covers(&self, reserved: Amount, needed: Amount) -> bool {
        self.project.rules.limits.budget.covers(reserved, needed)
            && self.of_fleet.covers(reserved, needed)
    }

    /// Extends the reservation, in the fleet ledger and in the project.
    fn raise(&self, had: Amount, more: Amount) -> Result<Option<ReservationAnswer>, EngineError> {
        let (project, budget) = (self.project, &self.project.rules.limits.budget);
        let of_fleet = match &project.books {
            Some(books) => books.reserve(project, self.session, had.plus(more))?,
            None => Some(ReservationAnswer::Granted),
        };
        match of_fleet {
            Some(ReservationAnswer::Granted) if budget.is_none() => {
                Ok(Some(ReservationAnswer::Granted))
            }
            Some(ReservationAnswer::Granted) => project.reserve(budget, self.session, had, more),
            answer => Ok(answer),
        }
    }

    /// Returns the cost that needs no further reservation, if a budget limits the cost.
    pub fn cost_micros(&self) -> Option<u64> {
        let reserved = self.reserved.get();
        // If no budget limits the cost, a reservation without cost covers it too.
        let without = Amount { cost_micros: 0, ..reserved };
        (!self.covers(without, reserved)).then_some(reserved.cost_micros)
    }

    /// Records the usage of the turn, and returns whether the turn may continue.
    ///
    /// If the agent reports often enough, the reservation is extended before the amount is used.
    pub fn heard(&self, used: Usage) -> bool {
        let budget = &self.project.rules.limits.budget;
        let (used, reserved) = (Amount::from(used), self.reserved.get());
        let step = self.step.get().max(used.minus(self.told.get()));
        self.told.set(used);
        self.step.set(step);
        let many = |amount: u64| amount.saturating_mul(SMALL_STEP);
        let is_small =
            Amount { cost_micros: many(step.cost_micros), tokens: many(step.tokens), turns: 0 };
        let ahead = if is_small.is_within(reserved) { step } else { Amount::default() };
        let needed = used.plus(ahead);
        if self.covers(reserved, needed) {
            return true;
        }
        // Extend each lacking amount by a turn's reservation, but not beyond the session's limits.
        let lacking = needed.minus(reserved);
        let left = self.left.minus(reserved);
        let again = match budget.is_none() {
            true => self.of_fleet.amount(left),
            false => budget.amount(left),
        };
        let more = |lacking: u64, again: u64| if lacking > 0 { lacking.max(again) } else { 0 };
        let more = Amount {
            cost_micros: more(lacking.cost_micros, again.cost_micros),
            tokens: more(lacking.tokens, again.tokens),
            turns: 0,
        };
        match self.raise(reserved, more) {
            Ok(Some(ReservationAnswer::Granted)) => {
                self.reserved.set(reserved.plus(more));
                true
            }
            Ok(Some(
                ReservationAnswer::Wait(shortage) | ReservationAnswer::Exhausted(shortage),
            )) => {
                self.shortage.set(Some(shortage));
                false
            }
            // Another process continues the session.
            Ok(None) => false,
            // If the log cannot be reached, storing the turn reports that.
            Err(_) => true,
        }
    }

    /// Returns the shortage that ended the turn, if one did.
    pub(super) fn shortage(&self) -> Option<Shortage> {
        self.shortage.get()
    }
}

impl Project {
    /// Returns the shared budget of the fleet. It is empty if the project is in no fleet.
    pub(super) fn budget_of_fleet(&self) -> Result<SharedBudget, EngineError> {
        self.books.as_ref().map_or(Ok(SharedBudget::default()), |books| books.budget())
    }

    /// Extends the reservation `had` of a running turn, if the budget has room.
    ///
    /// Returns none if the session's reservation is another one, because another process continues
    /// the session.
    fn reserve(
        &self,
        budget: &SharedBudget,
        session: &SessionId,
        had: Amount,
        amount: Amount,
    ) -> Result<Option<ReservationAnswer>, EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Batch::new(unit, &self.rules, now())?;
            let held = work.unit.view()?.reservations()?;
            if !held.iter().any(|held| held.session == *session && held.amount == had) {
                return Ok(None);
            }
            let origin = EventOrigin::command(id, self.actor());
            reserve_in_batch(&mut work, origin, budget, session, amount).map(Some)
        })
    }
}
