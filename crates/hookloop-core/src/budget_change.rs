//! The effect of a session's events on the shared budget.

use crate::event::EventBody;
use crate::usage::Usage;

/// What an event of a session does to the purse. A session has one reservation at most, which grows if its
/// turn needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The turn ended and used this: its reservation is over.
    Settle(Usage),
    /// The turn ended and used this at least: what was set aside for it beyond that counts as spent, too.
    SettlePart(Usage),
    /// Another program has the session. Nobody knows what the turn used that was under way: all that was set
    /// aside for it counts as spent.
    Abandon,
    /// The session ends before its turn was taken: who says so is the program that would have.
    Release,
}

impl Move {
    /// What an event on a session's subject does.
    pub fn of(body: &EventBody) -> Option<Move> {
        match body {
            EventBody::TurnEnded(ended) if ended.is_partial => Some(Move::SettlePart(ended.usage)),
            EventBody::TurnEnded(ended) => Some(Move::Settle(ended.usage)),
            EventBody::SessionResumed(_) => Some(Move::Abandon),
            EventBody::SessionEnding(_) | EventBody::SessionEnded(_) => Some(Move::Release),
            _ => None,
        }
    }
}
