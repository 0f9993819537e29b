//! Performs effects with the functions that commands use.

use std::sync::Arc;

use hookloop_engine::inbox::{self, DecisionResult};
use hookloop_engine::machine;
use hookloop_engine::project::Project;
use hookloop_engine::session::control;

use super::pager;
use crate::error::CliError;
use crate::tui::channels::ScreenChannels;
use crate::tui::message::{ScreenEffect, ScreenInput};
use crate::undo_preview::{UndoPreview, undo_as_shown};

/// Performs one effect after the other, until the screen is closed.
pub(super) fn run(project: &Project, channels: &Arc<ScreenChannels>) {
    while let Some(effect) = channels.next_order() {
        let input = match (effect, project.runner()) {
            (ScreenEffect::Open(leaf), Some(runner)) => {
                ScreenInput::Opened(pager::open(&leaf, runner))
            }
            (ScreenEffect::PreviewUndo(session), _) => {
                let preview = UndoPreview::read(project, &session, None);
                let preview = preview.map_err(|error| error.told());
                ScreenInput::UndoPreviewed { session, preview }
            }
            (ScreenEffect::Undo { session, digest }, _) => {
                let undone = undo_as_shown(project, &session, None, &digest);
                ScreenInput::Undone(undone.map_err(|error| error.told()))
            }
            (effect, _) => ScreenInput::Done(act(project, effect).map_err(|error| error.told())),
        };
        channels.done(input);
    }
}

fn act(project: &Project, effect: ScreenEffect) -> Result<String, CliError> {
    match effect {
        ScreenEffect::Message { session, text } => {
            let id = control::message(project, Some(session.as_str()), &text)?;
            Ok(format!("the next prompt of session {id} contains the message"))
        }
        ScreenEffect::Pause(session) => {
            let id = control::pause(project, Some(session.as_str()))?;
            Ok(format!("session {id} pauses when its turn is over"))
        }
        ScreenEffect::Stop(session) => {
            let runner =
                project.runner().ok_or_else(|| CliError::system("the project has no directory"))?;
            let machine = machine::machine();
            let id = control::stop(project, runner, Some(session.as_str()), &machine)?.id;
            Ok(format!("session {id} is stopping; then: hookloop resume {id}"))
        }
        ScreenEffect::Answer { key, text } => {
            let settled = inbox::answer(project, &key, &text)?;
            follow(project, settled, &format!("answered {key}"))
        }
        ScreenEffect::Approve(key) => {
            let settled = inbox::approve(project, &key)?;
            follow(project, settled, &format!("approved {key}"))
        }
        ScreenEffect::Settle { key, answer } => {
            let settled = inbox::settle(project, &key, answer)?;
            follow(project, settled, &format!("answered {key}"))
        }
        ScreenEffect::Dismiss(key) => {
            inbox::dismiss(project, &key)?;
            Ok(format!("dismissed {key}"))
        }
        // The loop does the others.
        _ => Ok(String::new()),
    }
}

/// Runs the reactions to a decision, as after a command.
fn follow(project: &Project, settled: DecisionResult, what: &str) -> Result<String, CliError> {
    let DecisionResult { mut done, next } = settled;
    if done.pending {
        project.react_here(&mut done)?;
        project.tend()?;
    }
    let next = next.map_or(String::new(), |next| format!("; then: {next}"));
    Ok(format!("{what}{next}"))
}
