//! Lists worktrees, and removes one.

use std::fs;
use std::time::SystemTime;

use hookloop_core::id::TaskId;

use super::error::RepoError;
use super::place::is_directory;
use super::worktree_path::WorktreePath;
use super::{
    BranchFate, CommitId, RemovedWorktree, Repo, UnsavedWork, Worktree, WorktreeInfo,
    WorktreeRemoval, state_file,
};

/// The most worktrees that are listed.
const LISTED_MAX: usize = 10_000;

impl Repo<'_> {
    /// Returns the worktrees that hookloop made, with their state.
    pub fn worktrees(&self) -> Result<Vec<WorktreeInfo>, RepoError> {
        let Ok(entries) = fs::read_dir(&self.worktrees) else { return Ok(Vec::new()) };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut tasks: Vec<TaskId> = names.filter_map(|name| name.parse().ok()).collect();
        tasks.sort();
        let target = self.known_target()?;
        let mut listed = Vec::new();
        for task in tasks.into_iter().take(LISTED_MAX) {
            if let Some(w) = self.found_worktree(&self.slot(&task))? {
                listed.push(self.info(&w, target.as_ref())?);
            }
        }
        Ok(listed)
    }

    fn info(&self, w: &Worktree, target: Option<&CommitId>) -> Result<WorktreeInfo, RepoError> {
        let slot = self.slot_of(w);
        let head = self.head(w)?;
        let last_used = fs::metadata(slot.used()).and_then(|found| found.modified());
        Ok(WorktreeInfo {
            task: w.task.clone(),
            path: w.path.clone(),
            branch: w.branch.clone(),
            is_dirty: self.is_dirty(w)?,
            ahead: self.ahead(target.unwrap_or(&w.base), &head)?,
            head,
            last_used: last_used.unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }

    /// Returns an existing worktree as it is.
    pub(super) fn found_worktree(
        &self,
        slot: &WorktreePath,
    ) -> Result<Option<Worktree>, RepoError> {
        let git_dir = self.asker.registration(&slot.path)?;
        let made = state_file::read_line(&slot.made())?.and_then(|line| line.parse().ok());
        let (Some(git_dir), Some(base), true) = (git_dir, made, is_directory(&slot.path)) else {
            return Ok(None);
        };
        let WorktreePath { task, path, branch, .. } = slot.clone();
        let project = path.join(&self.found.prefix);
        Ok(Some(Worktree { task, path, project, branch, base, is_new: false, loss: None, git_dir }))
    }

    /// Removes a task's worktree, and its branch if requested.
    pub fn remove_worktree(
        &self,
        task: &TaskId,
        how: &WorktreeRemoval,
    ) -> Result<RemovedWorktree, RepoError> {
        let slot = self.slot(task);
        let _alone = self.alone_in(&slot)?;
        let found = self.found_worktree(&slot)?;
        let branch = slot.full_branch();
        let head = self.asker.users_ref(&branch)?;
        if let (UnsavedWork::Stays { delivered }, Some(w)) = (&how.unsaved, &found) {
            self.finish_moving(w)?;
            match self.check_clean(w) {
                Err(RepoError::Dirty(_) | RepoError::Unfinished { .. }) => {
                    let why = format!("{} has work that is not committed", slot.path.display());
                    return Ok(RemovedWorktree::Stayed { why });
                }
                checked => checked?,
            }
            let is_lost = how.branch == BranchFate::Deleted
                && !self.is_delivered(head.as_ref(), delivered.as_ref())?;
            if is_lost {
                let why = format!(
                    "`{}` has commits that are not in `{}`",
                    slot.branch, self.target.branch
                );
                return Ok(RemovedWorktree::Stayed { why });
            }
        }
        if let (UnsavedWork::Goes, Some(w)) = (&how.unsaved, &found) {
            self.keep_all(w)?;
        }
        self.unregister(&slot)?;
        let was_there = slot.path.symlink_metadata().is_ok();
        state_file::remove_all(&slot.path)?;
        state_file::remove_all(&slot.notes)?;
        if let (BranchFate::Deleted, Some(head)) = (how.branch, &head) {
            self.asker.keep(task, head)?;
            let args = ["update-ref", "-d", "--no-deref", "--", &branch, head.as_str()];
            self.asker.users(&args).done()?;
        }
        Ok(if was_there { RemovedWorktree::Done } else { RemovedWorktree::NotThere })
    }

    fn is_delivered(
        &self,
        head: Option<&CommitId>,
        delivered: Option<&CommitId>,
    ) -> Result<bool, RepoError> {
        match (head, self.known_target()?) {
            (None, _) => Ok(true),
            (head, _) if head == delivered => Ok(true),
            (Some(head), Some(target)) => self.is_ancestor(head, &target),
            (Some(_), None) => Ok(false),
        }
    }

    /// Stores a worktree's files and head in a commit. Returns the commit and its ref.
    pub(super) fn keep_all(&self, w: &Worktree) -> Result<(CommitId, String), RepoError> {
        let head = self.head(w)?;
        let tree = self.tree_of_files(w, &head)?;
        let commit = match tree == self.tree_of(&head)? {
            true => head,
            false => self.commit_tree(
                tree,
                vec![head],
                "hookloop: the files of a worktree that was removed",
            )?,
        };
        let name = self.asker.keep(&w.task, &commit)?;
        Ok((commit, name))
    }
}
