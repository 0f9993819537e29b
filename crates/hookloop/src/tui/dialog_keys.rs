//! Keys while a dialog is open.

use hookloop_core::session::LimitDecision;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dialog::{ScreenDialog, TextReceiver, edit};
use super::editor::{TextEdit, TextEditor};
use super::message::{ScreenEffect, ScreenParting};
use super::state::ScreenState;
use crate::undo_preview::UndoPreview;

impl ScreenState {
    /// Handles a key while a dialog is open.
    pub(super) fn key_in_dialog(
        &mut self,
        dialog: ScreenDialog,
        key: KeyEvent,
    ) -> Vec<ScreenEffect> {
        // The caller has taken the dialog; `stay` puts it back.
        match dialog {
            ScreenDialog::Help => Vec::new(),
            ScreenDialog::Sure { question, yes } => match key.code {
                KeyCode::Char('y') => vec![yes],
                KeyCode::Char('n') | KeyCode::Esc => Vec::new(),
                _ => self.stay(ScreenDialog::Sure { question, yes }),
            },
            ScreenDialog::Say { to, editor } => self.key_in_editor(to, editor, key),
            ScreenDialog::Retry | ScreenDialog::Settle { .. } => self.key_in_question(dialog, key),
            ScreenDialog::Leave => match key.code {
                KeyCode::Char('l') => vec![ScreenEffect::Part(ScreenParting::Left)],
                KeyCode::Char('e') => vec![ScreenEffect::Interrupt],
                KeyCode::Esc => Vec::new(),
                _ => self.stay(ScreenDialog::Leave),
            },
            ScreenDialog::Undo(preview) if key.code == KeyCode::Char('y') => self.undo(preview),
            ScreenDialog::Undo(_) | ScreenDialog::UndoReading(_) => Vec::new(),
        }
    }

    fn undo(&mut self, preview: UndoPreview) -> Vec<ScreenEffect> {
        let UndoPreview { session, digest, .. } = preview;
        self.is_undoing = true;
        self.tell(&format!("undoing the changes of session {session} …"));
        vec![ScreenEffect::Undo { session, digest }]
    }

    fn key_in_question(&mut self, dialog: ScreenDialog, key: KeyEvent) -> Vec<ScreenEffect> {
        let answer = match key.code {
            KeyCode::Char('c') => LimitDecision::Continue,
            KeyCode::Char('a') => LimitDecision::Accept,
            KeyCode::Char('q') => LimitDecision::Abort,
            KeyCode::Esc => {
                self.tell("the session waits for a decision: press !");
                return Vec::new();
            }
            _ => return self.stay(dialog),
        };
        match dialog {
            ScreenDialog::Settle { key, .. } => vec![ScreenEffect::Settle { key, answer }],
            _ => {
                self.question = None;
                vec![ScreenEffect::Decide(answer)]
            }
        }
    }

    fn stay(&mut self, dialog: ScreenDialog) -> Vec<ScreenEffect> {
        self.dialog = Some(dialog);
        Vec::new()
    }

    fn key_in_editor(
        &mut self,
        to: TextReceiver,
        mut editor: TextEditor,
        key: KeyEvent,
    ) -> Vec<ScreenEffect> {
        let is_newline = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Esc => return Vec::new(),
            KeyCode::Enter if is_newline => editor.edit(TextEdit::Insert("\n")),
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                return match (text.is_empty(), to) {
                    (true, _) => Vec::new(),
                    (false, TextReceiver::Agent(session)) => {
                        vec![ScreenEffect::Message { session, text }]
                    }
                    (false, TextReceiver::Problem(key)) => vec![ScreenEffect::Answer { key, text }],
                };
            }
            _ => edit(&mut editor, key),
        }
        self.stay(ScreenDialog::Say { to, editor })
    }
}
