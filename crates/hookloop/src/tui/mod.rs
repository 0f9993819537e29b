//! The screens of a terminal: running sessions, problems, tasks, and the commands on them.
//!
//! A screen reads only the log and the view, so `watch` in another process shows the same as `run`. The screen opens
//! the project for itself and slows no session; a session waits for it only with a question at the retry limit.
//!
//! - [`state`]: the content of the screen, a plain value; inputs change it and request effects ([`keys`], [`dialog_keys`])
//! - [`message`]: inputs, effects and questions
//! - [`draw`]: draws a state
//! - [`data`]: the parts of a project that are shown; [`read`] and [`session_view`] read them on a thread
//! - [`act`]: performs effects that take time, on another thread, by the functions that commands use
//! - [`screen`]: the main loop; [`channels`]: the state that its threads share; [`terminal`]: enters and leaves the terminal

mod act;
mod channels;
mod data;
mod dialog;
mod dialog_keys;
mod draw;
mod editor;
mod keys;
mod list;
mod message;
mod pager;
mod read;
mod screen;
mod session_view;
mod state;
mod steps;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;

use std::env;
use std::io::IsTerminal;

pub(crate) use channels::HEAR;
pub(crate) use message::{QuestionReply, RetryQuestion, ScreenParting};
pub(crate) use screen::{Screen, ScreenContent, watch};
pub(crate) use terminal::{is_lent, restore};

/// Whether standard input and output are a terminal that can show a screen.
pub(crate) fn is_possible() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
}

/// Whether to open a screen that nobody asked for: a CI system may have a terminal without a person.
pub(crate) fn is_wanted() -> bool {
    is_possible() && env::var_os("CI").is_none_or(|value| value.is_empty())
}
