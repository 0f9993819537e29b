//! Workflows: named lists of steps, and the progress of their runs.

use crate::action::Action;
use crate::cascade::EventCause;
use crate::id::RunId;

/// The most steps a workflow may have.
pub const MAX_STEPS: usize = 64;

/// A running workflow. Its steps were fixed when it was requested. A changed configuration affects only later
/// runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRun {
    pub id: RunId,
    pub workflow: String,
    pub steps: Vec<Action>,
    /// The first step that has not been done.
    pub next_step: usize,
    pub cause: Option<EventCause>,
}
