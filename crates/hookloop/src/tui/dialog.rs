//! Dialogs above the screen.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::ProblemKey;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{TextEdit, TextEditor};
use super::message::ScreenEffect;
use crate::undo_preview::UndoPreview;

#[derive(Clone, Debug)]
pub(super) enum ScreenDialog {
    Help,
    /// A confirmation of an effect that can't be undone.
    Sure {
        question: String,
        yes: ScreenEffect,
    },
    /// A text to type.
    Say {
        to: TextReceiver,
        editor: TextEditor,
    },
    /// The question of this session at the retry limit; see `State::question`.
    Retry,
    /// The question at the retry limit of a session that runs elsewhere.
    Settle {
        key: ProblemKey,
        reason: String,
    },
    /// The decision about the session that runs here.
    Leave,
    /// The files that the undo of this session would change are being read.
    UndoReading(SessionId),
    /// A confirmation of an undo.
    Undo(UndoPreview),
}

/// The receiver of a typed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextReceiver {
    Agent(SessionId),
    Problem(ProblemKey),
}

impl TextReceiver {
    pub(super) fn title(&self) -> String {
        match self {
            TextReceiver::Agent(id) => {
                format!("Message to the agent of {id}, sent with its next prompt")
            }
            TextReceiver::Problem(key) => format!("Answer to {key}, sent with the next prompt"),
        }
    }
}

/// Applies a key to a typed text.
pub(super) fn edit(editor: &mut TextEditor, key: KeyEvent) {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if is_control => editor.edit(TextEdit::DeleteToStart),
        KeyCode::Char('w') if is_control => editor.edit(TextEdit::DeleteWord),
        KeyCode::Char('a') if is_control => editor.edit(TextEdit::Home),
        KeyCode::Char('e') if is_control => editor.edit(TextEdit::End),
        KeyCode::Char(c) if !is_control => {
            editor.edit(TextEdit::Insert(c.encode_utf8(&mut [0; 4])))
        }
        KeyCode::Backspace => editor.edit(TextEdit::Backspace),
        KeyCode::Delete => editor.edit(TextEdit::Delete),
        KeyCode::Left => editor.edit(TextEdit::Left),
        KeyCode::Right => editor.edit(TextEdit::Right),
        KeyCode::Home => editor.edit(TextEdit::Home),
        KeyCode::End => editor.edit(TextEdit::End),
        _ => {}
    }
}
