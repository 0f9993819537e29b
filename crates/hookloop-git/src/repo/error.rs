//! What can go wrong with a repository. What is done next follows from the variant, never from the text.

use std::path::{Path, PathBuf};

use super::commit_id::Commit;
use crate::git::GitError;

/// How git says that another one has what it wants to change.
const LOCKED: &str = ".lock': File exists";

#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// It may go well another time: the network, a lock, a timeout.
    #[error("{why}")]
    Retry { why: String },
    /// The same again would fail the same way.
    #[error("{why}")]
    Permanent { why: String },
    /// Somebody has to do something first.
    #[error("{why}")]
    NeedsHuman { why: String, hint: String },
    /// Another git has locked something of the repository, or left the lock when it was killed.
    #[error(
        "git can't lock {0}: {1} exists. Another git process is at work there, or was killed; if none runs: rm {1}",
        path.with_extension("").display(),
        path.display()
    )]
    Locked { path: PathBuf },
    /// The user wants everything to end.
    #[error("it was cancelled")]
    Cancelled,
    #[error("somebody else pushed to `{branch}`: it is at {found}, which hookloop did not push")]
    Foreign { branch: String, found: Commit },
    #[error(
        "`{branch}` is checked out in {}: hookloop does not move a branch under your feet; use another base \
         (git branch hookloop-{branch} {branch}, then delivery: {{base: hookloop-{branch}}}), or add a remote",
        path.display()
    )]
    CheckedOut { branch: String, path: PathBuf },
    /// The worktree is not in a state that its files could be committed from.
    #[error("{} is {what}", path.display())]
    Unfinished { path: PathBuf, what: Unfinished },
    /// There are changes that are not committed, where there must be none.
    #[error("{} has changes that are not committed", .0.display())]
    Dirty(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// What an agent left a worktree in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    #[error("in the middle of a {0}: finish it, or give it up with git {0} --abort")]
    Underway(Operation),
    #[error("in the middle of a conflict that is laid out in its files")]
    LaidOut,
    #[error("at a commit and on no branch: git switch {branch}")]
    Detached { branch: String },
    #[error("on branch `{found}`: git switch {branch}")]
    Elsewhere { found: String, branch: String },
}

/// What git does in several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Rebase,
    Merge,
    CherryPick,
    Revert,
    Am,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Operation::Rebase => "rebase",
            Operation::Merge => "merge",
            Operation::CherryPick => "cherry-pick",
            Operation::Revert => "revert",
            Operation::Am => "am",
        })
    }
}

impl RepoError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RepoError {
        let path = path.to_owned();
        move |source| RepoError::Io { path, source }
    }

    pub(super) fn permanent(why: impl Into<String>) -> RepoError {
        RepoError::Permanent { why: why.into() }
    }
}

impl From<GitError> for RepoError {
    fn from(error: GitError) -> RepoError {
        match error {
            GitError::Cancelled => RepoError::Cancelled,
            error @ GitError::NotRun { .. } => RepoError::Retry { why: error.to_string() },
            // Somebody else is at it. Git has no exit code for that, and is asked to speak English.
            GitError::Failed { ref why, .. } if why.contains(LOCKED) => {
                RepoError::Retry { why: error.to_string() }
            }
            error @ GitError::Failed { .. } => RepoError::Permanent { why: error.to_string() },
        }
    }
}
