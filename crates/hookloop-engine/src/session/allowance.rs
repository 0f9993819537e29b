//! The amount that is reserved of the budget for a turn that runs.

use std::cell::Cell;

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::event::{EventBody, TurnReserved};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::purse::{Amount, Purse, ReservationAnswer, Shortage};
use hookloop_core::session::Usage;
use hookloop_core::time::Day;

use crate::error::EngineError;
use crate::project::Project;
use crate::work::{Origin, Work};

/// An agent whose steps are smaller than this part of what it has is stopped before one that it can't pay.
const SMALL_STEP: u64 = 4;

/// Sets `wish` aside for a session's turn, if the purse has it beside all that is. Rivals are told apart by the
/// version of the purse's subject: who sets something aside has seen what all others have.
pub(super) fn set_aside(
    work: &mut Work<'_, '_, '_>,
    origin: Origin,
    purse: &Purse,
    session: &SessionId,
    wish: Amount,
) -> Result<ReservationAnswer, EngineError> {
    if purse.is_none() {
        return Ok(ReservationAnswer::Granted);
    }
    let answer = purse.reserve(&work.unit.view()?.purse(today())?, wish);
    if answer == ReservationAnswer::Granted {
        let reserved = TurnReserved { session: session.clone(), amount: wish };
        work.stage_quietly(origin, Subject::Purse, EventBody::TurnReserved(reserved))?;
    }
    Ok(answer)
}

pub(super) fn today() -> Day {
    now().into()
}

/// What is set aside for a turn that is under way.
#[derive(Debug)]
pub struct Allowance<'a> {
    project: &'a Project,
    session: &'a SessionId,
    of_fleet: Purse,
    reserved: Cell<Amount>,
    /// What the session may use by its own limits.
    left: Amount,
    told: Cell<Amount>,
    /// The most that was used between two words of the agent.
    step: Cell<Amount>,
    shortage: Cell<Option<Shortage>>,
}

impl<'a> Allowance<'a> {
    /// None where there is no purse.
    pub fn new(
        project: &'a Project,
        session: &'a SessionId,
        reserved: Amount,
        left: Amount,
    ) -> Result<Option<Allowance<'a>>, EngineError> {
        let (told, step, shortage) = (Cell::default(), Cell::default(), Cell::default());
        let reserved = Cell::new(reserved);
        let of_fleet = project.purse_of_fleet()?;
        let is_bound = !project.rules.limits.purse.is_none() || !of_fleet.is_none();
        let allowance =
            Allowance { project, session, of_fleet, reserved, left, told, step, shortage };
        Ok(is_bound.then_some(allowance))
    }

    /// Whether what is set aside is enough, of all that is bound.
    fn covers(&self, reserved: Amount, needed: Amount) -> bool {
        self.project.rules.limits.purse.covers(reserved, needed)
            && self.of_fleet.covers(reserved, needed)
    }

    /// Sets more aside, in the fleet's books and in the project's.
    fn raise(&self, had: Amount, more: Amount) -> Result<Option<ReservationAnswer>, EngineError> {
        let (project, purse) = (self.project, &self.project.rules.limits.purse);
        let of_fleet = match &project.books {
            Some(books) => books.set_aside(project, self.session, had.plus(more))?,
            None => Some(ReservationAnswer::Granted),
        };
        match of_fleet {
            Some(ReservationAnswer::Granted) if purse.is_none() => {
                Ok(Some(ReservationAnswer::Granted))
            }
            Some(ReservationAnswer::Granted) => project.reserve(purse, self.session, had, more),
            answer => Ok(answer),
        }
    }

    /// The most that it may cost without asking for more, if the purse is about money.
    pub fn cost_micros(&self) -> Option<u64> {
        let reserved = self.reserved.get();
        // What is not bound would be covered by nothing.
        let without = Amount { cost_micros: 0, ..reserved };
        (!self.covers(without, reserved)).then_some(reserved.cost_micros)
    }

    /// The turn has used so much; answers whether it may go on. What it needs beyond what it has is set aside
    /// before it is used, where the agent tells often enough.
    pub fn heard(&self, used: Usage) -> bool {
        let purse = &self.project.rules.limits.purse;
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
        // As much again of what is lacking, but no more than the session may use.
        let lacking = needed.minus(reserved);
        let left = self.left.minus(reserved);
        let again = match purse.is_none() {
            true => self.of_fleet.wish(left),
            false => purse.wish(left),
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
            // Another program has the session.
            Ok(None) => false,
            // A log that can't be reached is noticed when the turn is to be stored.
            Err(_) => true,
        }
    }

    /// Why the turn was ended, if it was.
    pub(super) fn shortage(&self) -> Option<Shortage> {
        self.shortage.get()
    }
}

impl Project {
    /// What all sessions of the fleet may spend, if this is one of its projects.
    pub(super) fn purse_of_fleet(&self) -> Result<Purse, EngineError> {
        self.books.as_ref().map_or(Ok(Purse::default()), |books| books.budget())
    }

    /// Sets more aside for a turn that is under way and has `had`, if the purse has it. None if that is not
    /// what is set aside for it: it is not this program's turn any more.
    fn reserve(
        &self,
        purse: &Purse,
        session: &SessionId,
        had: Amount,
        wish: Amount,
    ) -> Result<Option<ReservationAnswer>, EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Work::new(unit, &self.rules, now())?;
            let held = work.unit.view()?.reservations()?;
            if !held.iter().any(|held| held.session == *session && held.amount == had) {
                return Ok(None);
            }
            let origin = Origin::command(id, self.actor());
            set_aside(&mut work, origin, purse, session, wish).map(Some)
        })
    }
}
