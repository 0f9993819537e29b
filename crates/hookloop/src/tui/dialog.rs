//! What is asked in a box above the screen, and what the answers lead to.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::LimitDecision;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{Edit, Editor};
use super::state::{Effect, Parting, State};

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
        key: ProblemKey,
        reason: String,
    },
    /// What becomes of the session that runs here.
    Leave,
}

/// Who hears what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    Agent(SessionId),
    Problem(ProblemKey),
}

impl To {
    pub(super) fn title(&self) -> String {
        match self {
            To::Agent(id) => format!("Message to the agent of {id}: its next prompt has it"),
            To::Problem(key) => format!("Answer to {key}: the work goes on with it"),
        }
    }
}

impl State {
    /// A key while something is asked.
    pub(super) fn key_in_dialog(&mut self, dialog: Dialog, key: KeyEvent) -> Vec<Effect> {
        // It is put back if it stays.
        match dialog {
            Dialog::Help => Vec::new(),
            Dialog::Sure { question, yes } => match key.code {
                KeyCode::Char('y') => vec![yes],
                KeyCode::Char('n') | KeyCode::Esc => Vec::new(),
                _ => self.stay(Dialog::Sure { question, yes }),
            },
            Dialog::Say { to, editor } => self.key_in_editor(to, editor, key),
            Dialog::Retry | Dialog::Settle { .. } => self.key_in_question(dialog, key),
            Dialog::Leave => match key.code {
                KeyCode::Char('l') => vec![Effect::Part(Parting::Left)],
                KeyCode::Char('e') => vec![Effect::Interrupt],
                KeyCode::Esc => Vec::new(),
                _ => self.stay(Dialog::Leave),
            },
        }
    }

    fn key_in_question(&mut self, dialog: Dialog, key: KeyEvent) -> Vec<Effect> {
        let answer = match key.code {
            KeyCode::Char('c') => LimitDecision::Continue,
            KeyCode::Char('a') => LimitDecision::Accept,
            KeyCode::Char('q') => LimitDecision::Abort,
            KeyCode::Esc => {
                self.tell("the session waits: press ! to answer");
                return Vec::new();
            }
            _ => return self.stay(dialog),
        };
        match dialog {
            Dialog::Settle { key, .. } => vec![Effect::Settle { key, answer }],
            _ => {
                self.question = None;
                vec![Effect::Decide(answer)]
            }
        }
    }

    fn stay(&mut self, dialog: Dialog) -> Vec<Effect> {
        self.dialog = Some(dialog);
        Vec::new()
    }

    fn key_in_editor(&mut self, to: To, mut editor: Editor, key: KeyEvent) -> Vec<Effect> {
        let is_newline = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Esc => return Vec::new(),
            KeyCode::Enter if is_newline => editor.edit(Edit::Insert("\n")),
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                return match (text.is_empty(), to) {
                    (true, _) => Vec::new(),
                    (false, To::Agent(session)) => vec![Effect::Message { session, text }],
                    (false, To::Problem(key)) => vec![Effect::Answer { key, text }],
                };
            }
            _ => edit(&mut editor, key),
        }
        self.stay(Dialog::Say { to, editor })
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
