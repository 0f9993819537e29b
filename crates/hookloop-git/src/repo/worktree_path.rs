//! The paths of a task's worktree and of its state files.

use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::id::TaskId;

use super::error::RepoError;
use super::git_command::{CommandScope, GitCommands};
use super::{CommitId, Repo, Worktree, state_file};

/// The most worktrees that are searched.
const WORKTREES_MAX: usize = 10_000;
/// The most commits that are stored for a task: the latest.
const KEPT_MAX: usize = 50;

#[derive(Clone, Debug)]
pub(super) struct WorktreePath {
    pub(super) task: TaskId,
    pub(super) path: PathBuf,
    /// The directory of state files. Ids of tasks have no dot, so no other task has this name.
    pub(super) notes: PathBuf,
    pub(super) branch: String,
}

impl WorktreePath {
    /// Exists once the worktree is complete.
    pub(super) fn made(&self) -> PathBuf {
        self.notes.join("made")
    }

    /// Exists while the worktree moves from one commit to another.
    pub(super) fn moving(&self) -> PathBuf {
        self.notes.join("moving")
    }

    /// The conflict in the worktree's files.
    pub(super) fn conflict(&self) -> PathBuf {
        self.notes.join("conflict")
    }

    /// The work that was lost when the worktree was recreated, until that is recorded.
    pub(super) fn lost(&self) -> PathBuf {
        self.notes.join("lost")
    }

    /// Written whenever work begins in the worktree.
    pub(super) fn used(&self) -> PathBuf {
        self.notes.join("used")
    }

    /// hookloop's own index: an agent can make its index ignore files.
    pub(super) fn index(&self) -> PathBuf {
        self.notes.join("index")
    }

    /// The place of the files while the worktree is registered again.
    pub(super) fn aside(&self) -> PathBuf {
        self.notes.with_extension("aside")
    }

    pub(super) fn files<'a>(&'a self, index: &'a Path) -> CommandScope<'a> {
        CommandScope::Files { work_tree: &self.path, index }
    }

    pub(super) fn full_branch(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

impl Repo<'_> {
    pub(super) fn slot(&self, task: &TaskId) -> WorktreePath {
        let path = self.worktrees.join(task.as_str());
        let notes = self.worktrees.join(format!("{task}.notes"));
        WorktreePath { task: task.clone(), path, notes, branch: format!("{}{task}", self.prefix) }
    }

    pub(super) fn slot_of(&self, w: &Worktree) -> WorktreePath {
        self.slot(&w.task)
    }
}

/// A worktree that git knows.
#[derive(Debug)]
pub(super) struct RegisteredWorktree {
    pub(super) path: PathBuf,
    /// The full name of the branch that is checked out there.
    pub(super) branch: Option<String>,
}

impl GitCommands<'_> {
    /// Returns git's own directory of the worktree at `path`.
    pub(super) fn registration(&self, path: &Path) -> Result<Option<PathBuf>, RepoError> {
        let all = self.common.join("worktrees");
        let Ok(entries) = fs::read_dir(&all) else { return Ok(None) };
        let sought = path.join(".git");
        for entry in entries.take(WORKTREES_MAX) {
            let directory = entry.map_err(RepoError::io(&all))?.path();
            let named = state_file::read_line(&directory.join("gitdir")).ok().flatten();
            if named.is_some_and(|named| Path::new(&named) == sought) {
                return Ok(Some(directory));
            }
        }
        Ok(None)
    }

    /// Returns all worktrees, including the user's own.
    pub(super) fn registered(&self) -> Result<Vec<RegisteredWorktree>, RepoError> {
        let said = self.users(&["worktree", "list", "--porcelain", "-z"]).long().bytes()?;
        let mut found: Vec<RegisteredWorktree> = Vec::new();
        for line in said.split(|byte| *byte == 0).map(String::from_utf8_lossy) {
            match line.split_once(' ') {
                Some(("worktree", path)) => {
                    found.push(RegisteredWorktree { path: path.into(), branch: None });
                }
                Some(("branch", name)) => {
                    if let Some(last) = found.last_mut() {
                        last.branch = Some(name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns the worktree in which a branch is checked out or being rebased, if any.
    pub(super) fn checkout_of(&self, full: &str) -> Result<Option<PathBuf>, RepoError> {
        let found = self.registered()?.into_iter().find(|one| one.branch.as_deref() == Some(full));
        if let Some(found) = found {
            return Ok(Some(found.path));
        }
        // During a rebase, HEAD is detached.
        let is_rebased = |git_dir: &PathBuf| {
            ["rebase-merge", "rebase-apply"].iter().any(|name| {
                let head = state_file::read_line(&git_dir.join(name).join("head-name"));
                head.ok().flatten().as_deref() == Some(full)
            })
        };
        let linked = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.take(WORKTREES_MAX).map(|entry| entry.path());
        Ok(std::iter::once(self.common.clone()).chain(linked).find(is_rebased))
    }

    /// Stores a commit that no branch will have any more. Returns its ref.
    pub(super) fn keep(&self, task: &TaskId, commit: &CommitId) -> Result<String, RepoError> {
        let under = format!("refs/hookloop/kept/{task}/");
        let args =
            ["for-each-ref", "--sort=version:refname", "--format=%(objectname) %(refname)", "--"];
        let said = self.users(&args).arg(&under).text()?;
        let kept: Vec<(&str, &str)> =
            said.lines().filter_map(|line| line.split_once(' ')).collect();
        if let Some((_, name)) = kept.iter().find(|(known, _)| *known == commit.as_str()) {
            return Ok((*name).to_owned());
        }
        let number = |(_, name): &(&str, &str)| name.strip_prefix(&under)?.parse::<u64>().ok();
        let next = kept.iter().filter_map(number).max().unwrap_or(0) + 1;
        let name = format!("{under}{next}");
        self.users(&["update-ref", "--no-deref", "--", &name, commit.as_str()]).done()?;
        for (_, name) in kept.iter().take((kept.len() + 1).saturating_sub(KEPT_MAX)) {
            self.users(&["update-ref", "-d", "--no-deref", "--", name]).done()?;
        }
        Ok(name)
    }

    /// Moves a branch of the user's repository, if it still has the old commit.
    pub(super) fn move_branch(
        &self,
        full: &str,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), RepoError> {
        let none = "0".repeat(to.as_str().len());
        let from = from.map_or(none.as_str(), CommitId::as_str);
        let args = ["update-ref", "-m", "hookloop", "--no-deref", "--", full, to.as_str(), from];
        self.users(&args).done()
    }
}
