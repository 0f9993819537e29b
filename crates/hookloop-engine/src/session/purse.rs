//! What a turn may use of the project's purse: set aside before it begins, and more when it needs more.

use std::cell::Cell;

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::event::{EventBody, TurnReserved};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::purse::{Amount, Purse, ReservationAnswer, Shortage};
use hookloop_core::session::{Session, Usage, next_step};
use hookloop_core::time::Day;
use hookloop_store::view::BudgetReservation;

use super::drive::Driver;
use super::journal::Began;
use super::open;
use super::world::{Notice, World};
use crate::error::{EngineError, Taken};
use crate::project::Project;
use crate::work::{Origin, Work};

/// Between two looks at a purse that others hold something of.
const LOOK_EVERY_MS: u64 = 1_000;
/// An agent whose steps are smaller than this part of what it has is stopped before one that it can't pay.
const SMALL_STEP: u64 = 4;

impl<W: World> Driver<'_, W> {
    /// Begins a turn, for which what it may use is set aside in the same batch. Waits while others hold what
    /// they may not need; when it can't be had any more, the session knows. Answers whether it began.
    pub(super) fn begin_turn(
        &mut self,
        started: impl Fn(&Session) -> EventBody,
    ) -> Result<bool, EngineError> {
        let project = self.journal.project;
        let purse = project.rules.limits.purse;
        let of_fleet = project.purse_of_fleet()?;
        // What a guest uses is its own affair, and not known.
        if purse.is_none() && of_fleet.is_none() || self.journal.session.plan.has_guest() {
            let body = started(&self.journal.session);
            self.journal.note(body);
            return Ok(true);
        }
        if !of_fleet.is_none() {
            // What the last turn used is in the fleet's books before anything is set aside for the next.
            self.commit()?;
        }
        let due = next_step(&self.journal.session, self.active_ms());
        let left = self.journal.session.left();
        let wish = match (purse.is_none(), of_fleet.is_none()) {
            (_, true) => purse.wish(left),
            (true, false) => of_fleet.wish(left),
            (false, false) => purse.wish(left).max(of_fleet.wish(left)),
        };
        let mut is_waiting = false;
        let mut patience = Patience { held: Vec::new(), since_ms: self.world.elapsed_ms() };
        loop {
            // Who waits only looks: what is set aside by others becomes less without us.
            let looked = match is_waiting {
                true => project.look_into(&purse, wish)?,
                false => ReservationAnswer::Granted,
            };
            let of_fleet = match (looked, &project.books) {
                (ReservationAnswer::Granted, Some(books)) => {
                    let answer = books.set_aside(project, &self.journal.id, wish)?;
                    answer.ok_or(EngineError::SessionTaken(Taken))?
                }
                (looked, _) => looked,
            };
            let answer = match of_fleet {
                ReservationAnswer::Granted => {
                    let body = started(&self.journal.session);
                    self.journal.begin_turn(&purse, wish, body)?
                }
                answer => Began::Not(answer),
            };
            match answer {
                Began::Stored(stored) => {
                    self.tell_stored(&stored)?;
                    self.reserved = wish;
                    return Ok(true);
                }
                Began::Not(ReservationAnswer::Exhausted(shortage)) => {
                    self.journal.note(EventBody::PurseExhausted(shortage));
                    return Ok(false);
                }
                Began::Not(answer) => {
                    self.commit()?;
                    let now_ms = self.world.elapsed_ms();
                    let held = project.read(|view| view.reservations())?;
                    let silent_ms = patience.look(held, now_ms);
                    let is_over = silent_ms >= self.journal.session.plan.limits.turn_ms;
                    let lacking = match answer {
                        ReservationAnswer::Wait(shortage) if is_over => Some(shortage),
                        _ => project.waits_in_vain(&purse, wish)?,
                    };
                    if let Some(shortage) = lacking {
                        self.journal.note(EventBody::PurseExhausted(shortage));
                        return Ok(false);
                    }
                    if !is_waiting {
                        self.world.notice(Notice::Purse);
                    }
                    is_waiting = true;
                    self.world.pause(LOOK_EVERY_MS);
                    self.journal.look()?;
                }
                Began::Behind => {}
            }
            let next = next_step(&self.journal.session, self.active_ms());
            if next != due || self.is_stopping() {
                return Ok(false);
            }
        }
    }
}

/// How long others have held the same. One whose machine died holds it until somebody resumes its session: who
/// has seen no change for as long as a turn may take waits no longer.
struct Patience {
    held: Vec<BudgetReservation>,
    since_ms: u64,
}

impl Patience {
    /// For how long nothing has changed.
    fn look(&mut self, held: Vec<BudgetReservation>, now_ms: u64) -> u64 {
        if held != self.held {
            (self.held, self.since_ms) = (held, now_ms);
        }
        now_ms.saturating_sub(self.since_ms)
    }
}

impl Project {
    /// What all sessions of the fleet may spend, if this is one of its projects.
    fn purse_of_fleet(&self) -> Result<Purse, EngineError> {
        self.books.as_ref().map_or(Ok(Purse::default()), |books| books.budget())
    }

    /// Whether the project's own purse has enough for one more turn.
    pub fn may_begin(&self) -> Result<ReservationAnswer, EngineError> {
        let purse = &self.rules.limits.purse;
        self.look_into(purse, purse.wish(Amount::ALL))
    }

    fn look_into(&self, purse: &Purse, wish: Amount) -> Result<ReservationAnswer, EngineError> {
        self.read(|view| Ok(purse.reserve(&view.purse(today())?, wish)))
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

    /// What is lacking even if everybody who may be alive used nothing. What was set aside for a turn whose
    /// program died on this machine comes back when its session is resumed or ended, which may be never.
    fn waits_in_vain(&self, purse: &Purse, wish: Amount) -> Result<Option<Shortage>, EngineError> {
        let Some(runner) = self.runner() else { return Ok(None) };
        let (mut standing, held) =
            self.read(|view| Ok((view.purse(today())?, view.reservations()?)))?;
        let is_dead = |held: &&BudgetReservation| open::is_abandoned(self, runner, &held.session);
        let dead =
            held.iter().filter(is_dead).fold(Amount::default(), |sum, held| sum.plus(held.amount));
        standing.day = standing.day.plus(dead);
        standing.ever = standing.ever.plus(dead);
        standing.open = standing.open.minus(dead);
        Ok(match purse.reserve(&standing, wish) {
            ReservationAnswer::Exhausted(shortage) => Some(shortage),
            ReservationAnswer::Granted | ReservationAnswer::Wait(_) => None,
        })
    }
}

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

fn today() -> Day {
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
