//! The screens: what runs, what needs you, and what you can do about it, on a terminal.
//!
//! Made from the log and the view alone, so `watch` in another process shows what `run` does, and nothing of it slows a
//! session: the screen has a project of its own, and only who asks at the limit of retries waits for it.
//!
//! - [`state`]: all that is on the screen; a plain value. Inputs change it and ask for effects ([`keys`], [`dialog`])
//! - [`draw`]: a state as cells
//! - [`data`]: what is shown of a project; [`read`] and [`gaze`] get it from the log, on a thread of their own
//! - [`act`]: effects that take time, on another thread, through the doors that the commands use
//! - [`screen`]: the loop that has all of it; [`link`] what its threads share; [`terminal`] the terminal and how it is left

mod act;
mod data;
mod dialog;
mod draw;
mod editor;
mod gaze;
mod inert;
mod keys;
mod link;
mod list;
mod pager;
mod read;
mod screen;
mod state;
mod steps;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;

use std::env;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_core::time::Timestamp;

pub(crate) use inert::{inert, settled};
pub(crate) use link::{HEAR, Question, Reply};
pub(crate) use screen::{Screen, Showing, watch};
pub(crate) use state::Parting;
pub(crate) use steps::clock;
pub(crate) use terminal::{is_lent, restore};

/// Whether there is a terminal that can show a screen.
pub(crate) fn is_possible() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
}

/// Whether who did not ask for a screen has use for one: what builds software may have a terminal, and nobody at it.
pub(crate) fn is_wanted() -> bool {
    is_possible() && env::var_os("CI").is_none_or(|value| value.is_empty())
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
