//! Why a step of a delivery, or a task's worktree, failed.

use crate::forge::ForgeError;
use crate::repo::RepoError;

/// Why something about a task's place did not work out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Something that the agent can mend, told so.
    Block {
        /// The reason in one line, for people.
        why: String,
        /// The instruction.
        prompt: String,
        /// What it is about, as data: conflicts, or the words of reviewers.
        details: String,
    },
    /// It may another time.
    Retry {
        why: String,
    },
    NeedsHuman {
        why: String,
    },
}

impl Trouble {
    /// A failure that the agent can correct. The first line of the instruction is the reason.
    pub fn block(prompt: String) -> Trouble {
        let why = prompt.lines().next().unwrap_or_default().to_owned();
        Trouble::Block { why, prompt, details: String::new() }
    }

    pub fn reason(&self) -> &str {
        match self {
            Trouble::Block { prompt: reason, .. }
            | Trouble::Retry { why: reason }
            | Trouble::NeedsHuman { why: reason } => reason,
        }
    }
}

/// A task's work, all of it in commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapped {
    pub branch: String,
    pub head: String,
    /// The branch that it is for.
    pub base: String,
    /// How many the base does not have.
    pub commits: u32,
}

impl From<RepoError> for Trouble {
    fn from(error: RepoError) -> Trouble {
        let why = error.to_string();
        match error {
            RepoError::Retry { .. } | RepoError::Locked { .. } | RepoError::Cancelled => {
                Trouble::Retry { why }
            }
            RepoError::Unfinished { .. } | RepoError::Dirty(_) => Trouble::block(why),
            RepoError::NeedsHuman { hint, .. } => {
                Trouble::NeedsHuman { why: format!("{why}; {hint}") }
            }
            RepoError::Permanent { .. }
            | RepoError::Foreign { .. }
            | RepoError::CheckedOut { .. }
            | RepoError::Io { .. } => Trouble::NeedsHuman { why },
        }
    }
}

impl From<ForgeError> for Trouble {
    fn from(error: ForgeError) -> Trouble {
        let why = error.to_string();
        match error {
            ForgeError::Retry { .. } | ForgeError::Stale { .. } | ForgeError::Behind { .. } => {
                Trouble::Retry { why }
            }
            ForgeError::Unmet { needs_person: false, .. } => Trouble::Retry { why },
            ForgeError::Unmet { .. }
            | ForgeError::Permanent { .. }
            | ForgeError::NeedsHuman { .. } => Trouble::NeedsHuman { why },
        }
    }
}
