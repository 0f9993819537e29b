//! Observers of a session.

use hookloop_core::session::{LimitDecision, Session};

use super::now::NowBoard;
use super::world::Notice;

/// Someone who watches.
pub trait Onlooker {
    fn notice(&mut self, notice: Notice<'_>);
    /// Receives the board with the session's step, before the session starts.
    fn watch(&mut self, _: &NowBoard) {}
    /// Whether it can be asked what to do at the limit of retries.
    fn can_ask(&self) -> bool {
        false
    }
    /// Asks that: none if there is no answer, or if `is_answered` says that one was given elsewhere.
    fn ask(
        &mut self,
        _: &Session,
        _is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        None
    }
}

impl<O: Onlooker + ?Sized> Onlooker for &mut O {
    fn notice(&mut self, notice: Notice<'_>) {
        (**self).notice(notice);
    }

    fn watch(&mut self, board: &NowBoard) {
        (**self).watch(board);
    }

    fn can_ask(&self) -> bool {
        (**self).can_ask()
    }

    fn ask(
        &mut self,
        session: &Session,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        (**self).ask(session, is_answered)
    }
}

/// Nobody watches: the record is enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Onlooker for Unwatched {
    fn notice(&mut self, _: Notice<'_>) {}
}
