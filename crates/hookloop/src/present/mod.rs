//! Texts for people about sessions and tasks, the same for command line, screen, pages and logs.
//!
//! - [`step_text`]: the words of a step
//! - [`step`]: an event or a step of a session; [`turn`] and [`gates`]: those with more to say
//! - [`evidence`]: the checks and the room of a receipt
//! - [`now`]: the step that a running session is at
//! - [`outcome`], [`session`]: the result of a session, its work and its state
//! - [`why`]: the reasons why a session or a task is in its state
//! - [`names`], [`time`]: short names, lengths of time

mod evidence;
mod gates;
mod names;
pub(crate) mod now;
mod outcome;
mod session;
mod step;
mod step_text;
pub(crate) mod test_changes;
mod time;
mod turn;
pub(crate) mod why;

pub(crate) use evidence::{check_counts, evidence, room};
pub(crate) use hookloop_core::session::plan::{counted, counted_items};
pub(crate) use names::{on_tree, short_hash, some};
pub(crate) use outcome::{conclusion, no_changes_advice, outcome, outputs_left};
pub(crate) use session::{is_interrupted, state, state_text, stop_when, work};
pub(crate) use step::{details, line, step};
pub(crate) use step_text::{StepSeverity, StepText};
pub(crate) use time::{ago, clock, duration};
pub(crate) use turn::files_after;
