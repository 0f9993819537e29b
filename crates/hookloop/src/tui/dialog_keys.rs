//! Keys while a dialog is open.

use hookloop_core::session::Answer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dialog::{Dialog, To, edit};
use super::editor::{Edit, Editor};
use super::message::{Effect, Parting};
use super::state::State;

impl State {
    /// Handles a key while a dialog is open.
    pub(super) fn key_in_dialog(&mut self, dialog: Dialog, key: KeyEvent) -> Vec<Effect> {
        // The caller has taken the dialog; `stay` puts it back.
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
            KeyCode::Char('c') => Answer::Continue,
            KeyCode::Char('a') => Answer::Accept,
            KeyCode::Char('q') => Answer::Abort,
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
