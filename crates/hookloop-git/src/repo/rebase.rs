//! Rebases a task's work onto the target.

use super::error::RepoError;
use super::git_command::ObjectStore;
use super::merge::TreeMerge;
use super::train::PickResult;
use super::{CommitId, RebaseResult, Repo, Worktree};

impl Repo<'_> {
    /// Puts the worktree's commits on `onto`. Everything is computed first: on a conflict nothing in the worktree
    /// changes. A branch with merges keeps its commits, and `onto` is merged into it.
    pub fn rebase(&self, w: &Worktree, onto: &CommitId) -> Result<RebaseResult, RepoError> {
        self.finish_moving(w)?;
        self.check_clean(w)?;
        let head = self.head(w)?;
        if self.is_ancestor(onto, &head)? {
            return Ok(RebaseResult::UpToDate);
        }
        self.hand_over_base(onto)?;
        let to = match self.pick_all(onto, &head, ObjectStore::Users)? {
            PickResult::Done { tip } => tip,
            PickResult::Conflict { tree, clashes } => {
                self.asker.keep(&w.task, &head)?;
                return Ok(RebaseResult::Conflict { files: self.asker.shown(&tree, &clashes)? });
            }
            PickResult::NotOneByOne => match self.asker.merge(&head, onto, ObjectStore::Users)? {
                TreeMerge::Clean { tree } => {
                    let message = format!("Merge {} into {}", self.target.branch, w.branch);
                    self.commit_tree(tree, vec![head.clone(), onto.clone()], &message)?
                }
                TreeMerge::Conflict { tree, clashes } => {
                    self.asker.keep(&w.task, &head)?;
                    return Ok(RebaseResult::Conflict {
                        files: self.asker.shown(&tree, &clashes)?,
                    });
                }
            },
        };
        self.move_worktree(w, &head, &to)?;
        Ok(RebaseResult::Done { from: head, to })
    }
}
