//! Merges a branch's work onto another commit, in the private repository only.
//!
//! The same commits always give the same result, so a process that repeats an interrupted merge makes no second
//! commit.

use super::commit::{self, CommitParts};
use super::error::RepoError;
use super::git_command::ObjectStore;
use super::merge::TreeMerge;
use super::{CommitId, MergeHow, MergeMethod, MergedOnto, Repo};

/// The most commits that are picked one by one. A longer branch is squashed, because each commit needs several calls
/// of git.
const COMMITS_MAX: usize = 500;

/// The result of picking the commits of a branch one by one.
#[derive(Debug)]
pub(super) enum PickResult {
    Done {
        tip: CommitId,
    },
    Conflict {
        tree: String,
        clashes: Vec<super::merge::PathConflict>,
    },
    /// There are merges among the commits, or too many commits.
    NotOneByOne,
}

impl Repo<'_> {
    /// Merges the work of `head` onto `tip`.
    pub fn merge_onto(
        &self,
        tip: &CommitId,
        head: &CommitId,
        how: &MergeHow,
    ) -> Result<MergedOnto, RepoError> {
        if self.is_ancestor(head, tip)? {
            return Ok(MergedOnto::AlreadyIn);
        }
        let (tree, clashes) = match self.asker.merge(tip, head, ObjectStore::Depot)? {
            TreeMerge::Clean { tree } if tree == self.tree_of(tip)? => {
                return Ok(MergedOnto::AlreadyIn);
            }
            TreeMerge::Clean { tree } => (tree, None),
            TreeMerge::Conflict { tree, clashes } => (tree, Some(clashes)),
        };
        if how.method == MergeMethod::Rebase {
            match self.pick_all(tip, head, ObjectStore::Depot)? {
                PickResult::Done { tip } => {
                    return Ok(MergedOnto::Done { commit: tip, method: MergeMethod::Rebase });
                }
                PickResult::Conflict { tree, clashes } => {
                    let files = self.asker.shown(&tree, &clashes)?;
                    return Ok(MergedOnto::Conflict { files });
                }
                PickResult::NotOneByOne => {}
            }
        }
        if let Some(clashes) = clashes {
            return Ok(MergedOnto::Conflict { files: self.asker.shown(&tree, &clashes)? });
        }
        let (method, parents) = match how.method {
            MergeMethod::Merge => (MergeMethod::Merge, vec![tip.clone(), head.clone()]),
            MergeMethod::Squash | MergeMethod::Rebase => (MergeMethod::Squash, vec![tip.clone()]),
        };
        let theirs = self.asker.parts_of(head)?;
        let parts = CommitParts {
            tree,
            parents,
            committer: self.asker.identity()?.at(theirs.committed_at()),
            author: theirs.author,
            encoding: None,
            message: commit::message(&how.message),
        };
        let commit = self.asker.make_commit(&parts, ObjectStore::Depot)?;
        Ok(MergedOnto::Done { commit, method })
    }

    /// Picks the commits of `head` that `tip` does not have onto `tip`.
    pub(super) fn pick_all(
        &self,
        tip: &CommitId,
        head: &CommitId,
        objects: ObjectStore,
    ) -> Result<PickResult, RepoError> {
        let Some(commits) = self.one_by_one(tip, head)? else { return Ok(PickResult::NotOneByOne) };
        let identity = self.asker.identity()?;
        let mut tip = tip.clone();
        for commit in commits {
            let parts = self.asker.parts_of(&commit)?;
            let tree = match self.asker.pick(&tip, &commit, &parts, objects)? {
                TreeMerge::Clean { tree } => tree,
                TreeMerge::Conflict { tree, clashes } => {
                    return Ok(PickResult::Conflict { tree, clashes });
                }
            };
            // A change that is already there needs no commit.
            if tree == self.asker.tree_name(&tip)? {
                continue;
            }
            let committer = identity.at(parts.committed_at());
            let parts = CommitParts { tree, parents: vec![tip], committer, ..parts };
            tip = self.asker.make_commit(&parts, objects)?;
        }
        Ok(PickResult::Done { tip })
    }

    /// Returns the commits of `head` that `tip` does not have, the oldest first, if each has one parent.
    fn one_by_one(
        &self,
        tip: &CommitId,
        head: &CommitId,
    ) -> Result<Option<Vec<CommitId>>, RepoError> {
        let range = format!("{tip}..{head}");
        let args =
            ["rev-list", "--reverse", "--topo-order", "--parents", "--end-of-options", &range];
        let said = self.asker.private_repo(&args).long().text()?;
        let mut commits = Vec::new();
        for line in said.lines() {
            let mut words = line.split(' ');
            let (commit, parents) = (words.next().unwrap_or_default(), words.count());
            match commit.parse() {
                Ok(commit) if parents == 1 && commits.len() < COMMITS_MAX => commits.push(commit),
                _ => return Ok(None),
            }
        }
        Ok(Some(commits))
    }
}
