//! Messages between the state of the screen, its threads and the session that asks.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::LimitDecision;
use hookloop_core::time::Timestamp;
use ratatui::crossterm::event::KeyEvent;

use super::data::{ScreenNews, ScreenRequest};
use super::pager::{PagerSource, TextPager};
use crate::undo_preview::UndoPreview;

/// Inputs of the state.
#[derive(Debug)]
pub(super) enum ScreenInput {
    Key(KeyEvent),
    Paste(String),
    Size {
        width: u16,
        height: u16,
    },
    Tick(Timestamp),
    News(ScreenNews),
    /// The session that runs here asks at the retry limit; none if the question is gone.
    Asked(Option<RetryQuestion>),
    /// The result of an effect: a message, or an error.
    Done(Result<String, String>),
    Opened(TextPager),
    /// The files that the undo of a session would change, or an error.
    UndoPreviewed {
        session: SessionId,
        preview: Result<UndoPreview, String>,
    },
    /// The result of an undo.
    Undone(Result<String, String>),
}

/// Effects that the state requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScreenEffect {
    /// Closes the screen.
    Part(ScreenParting),
    /// Does the same as ctrl-c on a terminal.
    Interrupt,
    Suspend,
    Look(ScreenRequest),
    Message {
        session: SessionId,
        text: String,
    },
    Pause(SessionId),
    Stop(SessionId),
    Answer {
        key: ProblemKey,
        text: String,
    },
    Approve(ProblemKey),
    Dismiss(ProblemKey),
    /// Answers the question of the session that runs here.
    Decide(LimitDecision),
    /// Answers the question of a session that runs elsewhere.
    Settle {
        key: ProblemKey,
        answer: LimitDecision,
    },
    Open(PagerSource),
    /// Shows a text in the user's own pager.
    Lend(String),
    /// Reads the files that the undo of a session would change.
    PreviewUndo(SessionId),
    /// Undoes the changes of a session, if the files are those of the preview with this digest.
    Undo {
        session: SessionId,
        digest: String,
    },
}

impl ScreenEffect {
    /// Returns the input that reports the failure of this effect.
    pub(super) fn failed(&self, why: String) -> ScreenInput {
        match self {
            ScreenEffect::PreviewUndo(session) => {
                ScreenInput::UndoPreviewed { session: session.clone(), preview: Err(why) }
            }
            ScreenEffect::Undo { .. } => ScreenInput::Undone(Err(why)),
            _ => ScreenInput::Done(Err(why)),
        }
    }
}

/// The reason why the screen closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScreenParting {
    /// The user closed the screen.
    Left,
    /// The user wants to resume this session here.
    Resume(SessionId),
    /// The terminal is gone, or the session is over.
    Closed,
}

/// The question of a session at the retry limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetryQuestion {
    pub(crate) failing: Vec<String>,
    pub(crate) retries: u32,
}

/// The result of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionReply {
    Answer(LimitDecision),
    /// The question was answered elsewhere.
    Elsewhere,
    /// The screen is closed.
    Nobody,
}
