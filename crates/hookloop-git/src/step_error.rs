//! Why a step of a delivery, or a task's worktree, failed.

use crate::forge::ForgeError;
use crate::repo::RepoError;

/// Why a step of a delivery failed. The variant decides the next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The agent can correct the failure, and gets the instruction.
    Block {
        /// The reason in one line, for people.
        why: String,
        /// The instruction.
        prompt: String,
        /// The data that the instruction is about: conflicts, or findings of reviewers.
        details: String,
    },
    /// A later try may succeed.
    Retry {
        why: String,
    },
    NeedsHuman {
        why: String,
    },
}

impl StepError {
    /// A failure that the agent can correct. The first line of the instruction is the reason.
    pub fn block(prompt: String) -> StepError {
        let why = prompt.lines().next().unwrap_or_default().to_owned();
        StepError::Block { why, prompt, details: String::new() }
    }

    pub fn reason(&self) -> &str {
        match self {
            StepError::Block { prompt: reason, .. }
            | StepError::Retry { why: reason }
            | StepError::NeedsHuman { why: reason } => reason,
        }
    }
}

/// The work of a task, all of it committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedWork {
    pub branch: String,
    pub head: String,
    /// The base that the branch is for.
    pub base: String,
    /// The number of commits that the base does not have.
    pub commits: u32,
}

impl From<RepoError> for StepError {
    fn from(error: RepoError) -> StepError {
        let why = error.to_string();
        match error {
            RepoError::Retry { .. } | RepoError::Locked { .. } | RepoError::Cancelled => {
                StepError::Retry { why }
            }
            RepoError::Unfinished { .. } | RepoError::Dirty(_) => StepError::block(why),
            RepoError::NeedsHuman { hint, .. } => {
                StepError::NeedsHuman { why: format!("{why}; {hint}") }
            }
            RepoError::Permanent { .. }
            | RepoError::Foreign { .. }
            | RepoError::CheckedOut { .. }
            | RepoError::Io { .. } => StepError::NeedsHuman { why },
        }
    }
}

impl From<ForgeError> for StepError {
    fn from(error: ForgeError) -> StepError {
        let why = error.to_string();
        match error {
            ForgeError::Retry { .. } | ForgeError::Stale { .. } | ForgeError::Behind { .. } => {
                StepError::Retry { why }
            }
            ForgeError::Unmet { needs_person: false, .. } => StepError::Retry { why },
            ForgeError::Unmet { .. }
            | ForgeError::Permanent { .. }
            | ForgeError::NeedsHuman { .. } => StepError::NeedsHuman { why },
        }
    }
}
