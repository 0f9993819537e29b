//! Messages between the state of the screen, its threads and the session that asks.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::Key;
use hookloop_core::session::Answer;
use hookloop_core::time::Timestamp;
use ratatui::crossterm::event::KeyEvent;

use super::data::{News, Wish};
use super::pager::{Leaf, Pager};

/// What comes in.
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
    /// The session that runs here wants to know what to do.
    Asked(Option<Question>),
    /// What came of an effect: what to say, or why not.
    Done(Result<String, String>),
    Opened(Pager),
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The screen ends.
    Part(Parting),
    /// As ctrl-c on a terminal.
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
    /// At the limit of retries, of the session that runs here.
    Decide(Answer),
    /// Of one that runs elsewhere.
    Settle {
        key: Key,
        answer: Answer,
    },
    Open(Leaf),
    /// To read in the user's own pager.
    Lend(String),
}

/// Why the screen ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The user wants lines, or nothing.
    Left,
    /// The user wants to go on with this session, here.
    Resume(SessionId),
    /// There is no terminal any more, or the session is over.
    Closed,
}

/// What a session asks at the limit of retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) failing: Vec<String>,
    pub(crate) retries: u32,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(Answer),
    /// Somebody has answered, but not here.
    Elsewhere,
    /// The screen is gone.
    Nobody,
}
