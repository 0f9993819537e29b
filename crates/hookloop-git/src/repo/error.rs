//! Errors of a repository. The variant decides the next action, never the text.

use std::path::{Path, PathBuf};

use super::commit_id::CommitId;
use crate::git::GitError;

/// A part of git's message about a lock that another process holds.
const LOCKED: &str = ".lock': File exists";

#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// A later try may succeed: the network failed, a lock was held, or time ran out.
    #[error("{why}")]
    Retry { why: String },
    /// A further try would fail in the same way.
    #[error("{why}")]
    Permanent { why: String },
    /// A person has to act first.
    #[error("{why}")]
    NeedsHuman { why: String, hint: String },
    /// Another git process holds a lock, or left it when it was killed.
    #[error(
        "git can't lock {0}: {1} exists. Another git process is at work there, or was killed; if none runs: rm {1}",
        path.with_extension("").display(),
        path.display()
    )]
    Locked { path: PathBuf },
    /// The user cancelled.
    #[error("it was cancelled")]
    Cancelled,
    #[error("somebody else pushed to `{branch}`: it is at {found}, which hookloop did not push")]
    Foreign { branch: String, found: CommitId },
    #[error(
        "`{branch}` is checked out in {}: hookloop does not move a branch under your feet; use another base \
         (git branch hookloop-{branch} {branch}, then delivery: {{base: hookloop-{branch}}}), or add a remote",
        path.display()
    )]
    CheckedOut { branch: String, path: PathBuf },
    /// The worktree is in a state in which its files cannot be committed.
    #[error("{} is {what}", path.display())]
    Unfinished { path: PathBuf, what: UnfinishedOperation },
    /// There are uncommitted changes where none are allowed.
    #[error("{} has changes that are not committed", .0.display())]
    Dirty(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// The state in which an agent left a worktree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfinishedOperation {
    #[error("in the middle of a {0}: finish it, or give it up with git {0} --abort")]
    Underway(GitOperation),
    #[error("in the middle of a conflict that is laid out in its files")]
    LaidOut,
    #[error("at a commit and on no branch: git switch {branch}")]
    Detached { branch: String },
    #[error("on branch `{found}`: git switch {branch}")]
    Elsewhere { found: String, branch: String },
}

/// An operation of git with several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitOperation {
    Rebase,
    Merge,
    CherryPick,
    Revert,
    Am,
}

impl std::fmt::Display for GitOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            GitOperation::Rebase => "rebase",
            GitOperation::Merge => "merge",
            GitOperation::CherryPick => "cherry-pick",
            GitOperation::Revert => "revert",
            GitOperation::Am => "am",
        })
    }
}

impl RepoError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RepoError {
        let path = path.to_owned();
        move |source| RepoError::Io { path, source }
    }

    pub(crate) fn permanent(why: impl Into<String>) -> RepoError {
        RepoError::Permanent { why: why.into() }
    }
}

impl From<GitError> for RepoError {
    fn from(error: GitError) -> RepoError {
        match error {
            GitError::Cancelled => RepoError::Cancelled,
            error @ GitError::NotRun { .. } => RepoError::Retry { why: error.to_string() },
            // Another process holds the lock. Git has no exit code for that, so its English message is read.
            GitError::Failed { ref why, .. } if why.contains(LOCKED) => {
                RepoError::Retry { why: error.to_string() }
            }
            error @ GitError::Failed { .. } => RepoError::Permanent { why: error.to_string() },
        }
    }
}
