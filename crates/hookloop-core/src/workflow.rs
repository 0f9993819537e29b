//! A named list of steps, and how far a run of it is.

use crate::action::Action;
use crate::cascade::Cause;
use crate::id::RunId;

/// The most steps a workflow may have.
pub const MAX_STEPS: usize = 64;

/// A run under way. Its steps were fixed when it was asked for: a changed configuration changes
/// later runs, never this one.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub workflow: String,
    pub steps: Vec<Action>,
    /// The first step that has not been done.
    pub next_step: usize,
    pub cause: Option<Cause>,
}
