//! Observers of a session.

use hookloop_core::session::{LimitDecision, Session};

use super::now::NowBoard;
use super::world::SessionUpdate;

/// An observer of a session, such as the TUI.
pub trait SessionObserver {
    fn notice(&mut self, notice: SessionUpdate<'_>);
    /// Receives the board with the session's step, before the session starts.
    fn watch(&mut self, _: &NowBoard) {}
    /// Whether the observer can ask a person to decide at the retry limit.
    fn can_ask(&self) -> bool {
        false
    }
    /// Asks a person to decide at the retry limit.
    ///
    /// Returns none without an answer, or if `is_answered` reports a decision from elsewhere.
    fn ask(
        &mut self,
        _: &Session,
        _is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        None
    }
}

impl<O: SessionObserver + ?Sized> SessionObserver for &mut O {
    fn notice(&mut self, notice: SessionUpdate<'_>) {
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

/// No observer: the log is enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl SessionObserver for NoObserver {
    fn notice(&mut self, _: SessionUpdate<'_>) {}
}
