//! The reasons why a session or a task is in its state, and the command that comes next.

mod session;
mod task;
mod task_record;

use hookloop_core::session::Session;

pub(crate) use session::{RECEIPT, failed_reactions, of_session, trust_changes};
pub(crate) use task::{of_task, session_of_task};

/// Failures of hooks that are shown, the last ones.
const FAILURES_SHOWN: usize = 5;
/// Events that are read for reasons.
const RECORD_MAX: usize = 1_000;

/// The state of a session or a task, with its reasons.
pub(crate) struct StateReasons {
    pub(crate) state: String,
    pub(crate) reasons: Vec<String>,
    /// The command to type next.
    pub(crate) next: Option<String>,
}

impl StateReasons {
    /// Replaces the step that the events tell by the step that the running session is at.
    pub(crate) fn replace_step(&mut self, session: &Session, lines: Vec<String>) {
        let told = session::of_phase(session);
        if self.reasons.first() == Some(&told) {
            self.reasons.splice(..1, lines);
        }
    }
}
