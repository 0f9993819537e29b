//! The effect of a session's events on the shared budget.

use crate::event::EventBody;
use crate::usage::Usage;

/// The effect of a session's event on the shared budget. A session has at most one reservation, which grows if
/// its turn needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetChange {
    /// The turn ended and used this amount, which ends its reservation.
    Settle(Usage),
    /// The turn ended and used at least this amount. The rest of its reservation counts as spent.
    SettlePart(Usage),
    /// Another program has resumed the session. The usage of the interrupted turn is unknown, so its whole
    /// reservation counts as spent.
    Abandon,
    /// The session ends before its turn begins, so nothing was used.
    Release,
}

impl BudgetChange {
    /// Returns the effect of an event on a session's subject.
    pub fn of(body: &EventBody) -> Option<BudgetChange> {
        match body {
            EventBody::TurnEnded(ended) if ended.is_partial => {
                Some(BudgetChange::SettlePart(ended.usage))
            }
            EventBody::TurnEnded(ended) => Some(BudgetChange::Settle(ended.usage)),
            EventBody::SessionResumed(_) => Some(BudgetChange::Abandon),
            EventBody::SessionEnding(_) | EventBody::SessionEnded(_) => Some(BudgetChange::Release),
            _ => None,
        }
    }
}
