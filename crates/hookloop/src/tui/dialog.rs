//! Dialogs above the screen.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::Key;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{Edit, Editor};
use super::message::Effect;

#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Help,
    /// A confirmation of an effect that can't be undone.
    Sure {
        question: String,
        yes: Effect,
    },
    /// A text to type.
    Say {
        to: To,
        editor: Editor,
    },
    /// The question of this session at the retry limit; see `State::question`.
    Retry,
    /// The question at the retry limit of a session that runs elsewhere.
    Settle {
        key: Key,
        reason: String,
    },
    /// The decision about the session that runs here.
    Leave,
}

/// The receiver of a typed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    Agent(SessionId),
    Problem(Key),
}

impl To {
    pub(super) fn title(&self) -> String {
        match self {
            To::Agent(id) => format!("Message to the agent of {id}: its next prompt has it"),
            To::Problem(key) => format!("Answer to {key}: the work goes on with it"),
        }
    }
}

/// Applies a key to a typed text.
pub(super) fn edit(editor: &mut Editor, key: KeyEvent) {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if is_control => editor.edit(Edit::DeleteToStart),
        KeyCode::Char('w') if is_control => editor.edit(Edit::DeleteWord),
        KeyCode::Char('a') if is_control => editor.edit(Edit::Home),
        KeyCode::Char('e') if is_control => editor.edit(Edit::End),
        KeyCode::Char(c) if !is_control => editor.edit(Edit::Insert(c.encode_utf8(&mut [0; 4]))),
        KeyCode::Backspace => editor.edit(Edit::Backspace),
        KeyCode::Delete => editor.edit(Edit::Delete),
        KeyCode::Left => editor.edit(Edit::Left),
        KeyCode::Right => editor.edit(Edit::Right),
        KeyCode::Home => editor.edit(Edit::Home),
        KeyCode::End => editor.edit(Edit::End),
        _ => {}
    }
}
