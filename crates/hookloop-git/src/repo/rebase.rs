//! Rebases a task's work onto the target.

use super::asking::Objects;
use super::error::RepoError;
use super::merge::Merged;
use super::train::Picked;
use super::{Commit, Rebased, Repo, Worktree};

impl Repo<'_> {
    /// Puts the worktree's commits on `onto`. Everything is computed first: on a conflict nothing in the worktree
    /// changes. A branch with merges keeps its commits, and `onto` is merged into it.
    pub fn rebase(&self, w: &Worktree, onto: &Commit) -> Result<Rebased, RepoError> {
        self.finish_moving(w)?;
        self.check_clean(w)?;
        let head = self.head(w)?;
        if self.is_ancestor(onto, &head)? {
            return Ok(Rebased::UpToDate);
        }
        self.hand_over_base(onto)?;
        let to = match self.pick_all(onto, &head, Objects::Users)? {
            Picked::Done { tip } => tip,
            Picked::Conflict { tree, clashes } => {
                self.asker.keep(&w.task, &head)?;
                return Ok(Rebased::Conflict { files: self.asker.shown(&tree, &clashes)? });
            }
            Picked::NotOneByOne => match self.asker.merge(&head, onto, Objects::Users)? {
                Merged::Clean { tree } => {
                    let message = format!("Merge {} into {}", self.target.branch, w.branch);
                    self.commit_tree(tree, vec![head.clone(), onto.clone()], &message)?
                }
                Merged::Conflict { tree, clashes } => {
                    self.asker.keep(&w.task, &head)?;
                    return Ok(Rebased::Conflict { files: self.asker.shown(&tree, &clashes)? });
                }
            },
        };
        self.move_worktree(w, &head, &to)?;
        Ok(Rebased::Done { from: head, to })
    }
}
