//! Messages between the state of the screen, its threads and the session that asks.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::Key;
use hookloop_core::session::Answer;
use hookloop_core::time::Timestamp;
use ratatui::crossterm::event::KeyEvent;

use super::data::{News, Wish};
use super::pager::{Leaf, Pager};

/// Inputs of the state.
#[derive(Debug)]
pub(super) enum Input {
    Key(KeyEvent),
    Paste(String),
    Size {
        width: u16,
        height: u16,
    },
    Tick(Timestamp),
    News(News),
    /// The session that runs here asks at the retry limit; none if the question is gone.
    Asked(Option<Question>),
    /// The result of an effect: a message, or an error.
    Done(Result<String, String>),
    Opened(Pager),
}

/// Effects that the state requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Closes the screen.
    Part(Parting),
    /// Does the same as ctrl-c on a terminal.
    Interrupt,
    Suspend,
    Look(Wish),
    Message {
        session: SessionId,
        text: String,
    },
    Pause(SessionId),
    Stop(SessionId),
    Answer {
        key: Key,
        text: String,
    },
    Approve(Key),
    Dismiss(Key),
    /// Answers the question of the session that runs here.
    Decide(Answer),
    /// Answers the question of a session that runs elsewhere.
    Settle {
        key: Key,
        answer: Answer,
    },
    Open(Leaf),
    /// Shows a text in the user's own pager.
    Lend(String),
}

/// The reason why the screen closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The user closed the screen.
    Left,
    /// The user wants to resume this session here.
    Resume(SessionId),
    /// The terminal is gone, or the session is over.
    Closed,
}

/// The question of a session at the retry limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) failing: Vec<String>,
    pub(crate) retries: u32,
}

/// The result of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(Answer),
    /// The question was answered elsewhere.
    Elsewhere,
    /// The screen is closed.
    Nobody,
}
