//! What is asked in a box above the screen, and what the answers lead to.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::Key;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{Edit, Editor};
use super::message::Effect;

#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Help,
    /// Something that can't be taken back, or that surprises.
    Sure {
        question: String,
        yes: Effect,
    },
    /// Text for somebody.
    Say {
        to: To,
        editor: Editor,
    },
    /// At the limit of retries; see [`State::question`].
    Retry,
    /// At that of a session that runs elsewhere.
    Settle {
        key: Key,
        reason: String,
    },
    /// What becomes of the session that runs here.
    Leave,
}

/// Who hears what is typed.
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

/// What a key does to text that is typed.
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
