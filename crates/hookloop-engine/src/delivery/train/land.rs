//! Moves the base to the tested commits.

use hookloop_core::delivery::{DeliveryFact, MergePlanned};
use hookloop_git::forge::ForgeError;
use hookloop_git::repo::{BranchFate, CommitId, LandedCommit, UnsavedWork, WorktreeRemoval};
use hookloop_git::step_error::StepError;
use hookloop_store::crash;

use super::stack::StackedEntry;
use super::{LOST_MAX, MergeTrain, TrainEntry, TrainError};
use crate::delivery_context::commit;

impl MergeTrain<'_> {
    /// Merges the stack into the base on which it was tested, and returns whether anything changed.
    pub(super) fn land(
        &mut self,
        base: &CommitId,
        stack: &[StackedEntry],
    ) -> Result<bool, TrainError> {
        if !MergeTrain::is_by_forge(stack) {
            self.land_at_once(base, stack)
        } else if self.has_queue == Some(true) {
            self.land_in_queue(stack)
        } else {
            self.land_by_forge(base, stack)
        }
    }

    /// Whether every entry has a request, so that the forge merges it.
    pub(super) fn is_by_forge(stack: &[StackedEntry]) -> bool {
        stack.iter().all(|coupled| coupled.entry.submission.number.is_some())
    }

    /// Merges the whole stack with one move of the base from `base`.
    fn land_at_once(
        &mut self,
        base: &CommitId,
        stack: &[StackedEntry],
    ) -> Result<bool, TrainError> {
        let Some(top) = stack.last() else { return Ok(false) };
        for StackedEntry { entry, commit } in stack {
            if let Err(error) = self.plan(entry, base, Some(commit)) {
                // The task changed meanwhile. The next round builds the stack without it.
                self.pass_over(entry, error)?;
                return Ok(true);
            }
        }
        crash::point("land");
        let landed = self.delivery_tools.repo.land(&top.commit, base);
        crash::point("landed");
        match landed {
            Ok(LandedCommit::Done | LandedCommit::AlreadyThere) => {
                for StackedEntry { entry, commit } in stack {
                    if let Err(error) = self.record_merged(entry, commit) {
                        self.pass_over(entry, error)?;
                    }
                }
                Ok(true)
            }
            // The new base was not tested with this stack.
            Ok(LandedCommit::Lost { .. }) => Ok(self.is_lost_again()),
            Err(error) => {
                let trouble = StepError::from(error);
                for StackedEntry { entry, .. } in stack {
                    if let StepError::NeedsHuman { why } = &trouble {
                        self.hold(entry, Some(why))?;
                    }
                    self.wait(entry, trouble.reason().to_owned());
                }
                Ok(false)
            }
        }
    }

    /// Lets the forge merge the entries one after the other, while the base equals the tested tree.
    fn land_by_forge(
        &mut self,
        base: &CommitId,
        stack: &[StackedEntry],
    ) -> Result<bool, TrainError> {
        let mut onto = base.clone();
        let mut has_landed = false;
        for StackedEntry { entry, commit: tested } in stack {
            let Some(number) = entry.submission.number else { break };
            // The new base was not tested with this entry.
            if self.delivery_tools.repo.newest_base().map_err(StepError::from)? != onto {
                has_landed |= self.is_lost_again();
                break;
            }
            if let Err(error) = self.plan(entry, &onto, None) {
                self.pass_over(entry, error)?;
                return Ok(true);
            }
            match self.is_auto_merging(entry, number) {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                Err(error) => {
                    self.pass_over(entry, error)?;
                    return Ok(true);
                }
            }
            let how = self.merge_options(entry);
            crash::point("merge");
            let merged = self.delivery_tools.forge.merge(number, &how);
            crash::point("merged");
            let merged = match merged {
                Ok(merged) => commit(&merged.commit)?,
                // Some repositories require that a branch contains all of its base.
                Err(ForgeError::Behind { why }) => {
                    self.give_back(
                        entry,
                        "merge",
                        format!("{why}; rebase it on {}", entry.submission.base),
                    )?;
                    break;
                }
                Err(error) => {
                    self.not_merged(entry, error)?;
                    break;
                }
            };
            has_landed = true;
            if let Err(error) = self.record_merged(entry, &merged) {
                self.pass_over(entry, error)?;
            }
            onto = self.delivery_tools.repo.newest_base().map_err(StepError::from)?;
            let is_tested = self.delivery_tools.repo.tree_of(&onto).map_err(StepError::from)?
                == self.delivery_tools.repo.tree_of(tested).map_err(StepError::from)?;
            if !is_tested {
                break;
            }
        }
        Ok(has_landed)
    }

    /// Counts that another process moved the base, and returns whether to try again.
    fn is_lost_again(&mut self) -> bool {
        self.lost += 1;
        self.lost < LOST_MAX
    }

    fn plan(
        &self,
        entry: &TrainEntry,
        onto: &CommitId,
        commit: Option<&CommitId>,
    ) -> Result<(), TrainError> {
        let (head, onto) = (entry.head.to_string(), onto.to_string());
        let commit = commit.map(ToString::to_string);
        self.record(entry, DeliveryFact::Planned(MergePlanned { head, onto, commit }))
    }

    /// Removes the branch and worktree of a merged task.
    ///
    /// Errors are ignored: `hookloop worktrees clean` removes the rest.
    pub(super) fn clean_up(&self, entry: &TrainEntry) {
        let repo = &self.delivery_tools.repo;
        crash::point("clean up");
        if self.delivery_tools.rules.delete_branch
            && repo.target().remote.is_some()
            && let Err(error) = repo.delete_remote(&entry.submission.branch, &entry.head)
        {
            tracing::warn!(branch = entry.submission.branch, %error, "a remote branch is not deleted");
        }
        let branch = match self.delivery_tools.rules.delete_branch {
            true => BranchFate::Deleted,
            false => BranchFate::Kept,
        };
        let unsaved = UnsavedWork::Stays { delivered: Some(entry.head.clone()) };
        if let Err(error) =
            repo.remove_worktree(&entry.task.id, &WorktreeRemoval { branch, unsaved })
        {
            tracing::warn!(task = %entry.task.id, %error, "the worktree of a merged task stays");
        }
    }
}
