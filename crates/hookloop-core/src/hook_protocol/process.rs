//! The exit and the output of a hook's process.

use crate::limits::Limit;

/// The exit of a hook's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    Exited(i32),
    /// Another process sent a signal.
    Killed(i32),
    TimedOut,
    Cancelled,
    /// hookloop ended the process at a resource limit.
    OverLimit(Limit),
    /// The process could not be started, for this reason.
    NotStarted(String),
}

/// The captured output of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapturedOutput<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
    /// Standard output was longer than the captured part.
    pub is_cut: bool,
}
