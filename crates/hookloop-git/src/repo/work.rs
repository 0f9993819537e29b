//! The content of a task's worktree, and commits of it.

use std::path::Path;

use super::commit::{self, CommitParts};
use super::error::{GitOperation, RepoError, UnfinishedOperation};
use super::git_command::{CommandScope, ObjectStore};
use super::worktree_path::WorktreePath;
use super::{CommitId, Repo, WorkState, Worktree, state_file};
use crate::git::{copy_index, paths};

/// Files that git leaves during an operation.
const UNDERWAY: [(&str, GitOperation); 6] = [
    ("rebase-merge", GitOperation::Rebase),
    ("rebase-apply/applying", GitOperation::Am),
    ("rebase-apply", GitOperation::Rebase),
    ("MERGE_HEAD", GitOperation::Merge),
    ("CHERRY_PICK_HEAD", GitOperation::CherryPick),
    ("REVERT_HEAD", GitOperation::Revert),
];

impl Repo<'_> {
    /// Commits all files that are not ignored; `None` if there is nothing to commit.
    pub fn commit_all(&self, w: &Worktree, message: &str) -> Result<Option<CommitId>, RepoError> {
        self.finish_moving(w)?;
        self.check_finished(w)?;
        let slot = self.slot_of(w);
        if slot.conflict().exists() {
            let what = UnfinishedOperation::LaidOut;
            return Err(RepoError::Unfinished { path: w.path.clone(), what });
        }
        let head = self.head(w)?;
        let tree = self.tree_of_files(w, &head)?;
        if tree == self.tree_of(&head)? {
            return Ok(None);
        }
        let commit = self.commit_tree(tree, vec![head.clone()], message)?;
        self.asker.move_branch(&slot.full_branch(), Some(&head), &commit)?;
        self.show_index(w)?;
        Ok(Some(commit))
    }

    /// Makes a commit by the user, with the present time, in the user's objects.
    pub(super) fn commit_tree(
        &self,
        tree: String,
        parents: Vec<CommitId>,
        message: &str,
    ) -> Result<CommitId, RepoError> {
        let by = self.asker.identity()?.at(&commit::now());
        let (author, committer, message) = (by.clone(), by, commit::message(message));
        let parts = CommitParts { tree, parents, author, committer, encoding: None, message };
        self.asker.make_commit(&parts, ObjectStore::Users)
    }

    /// Returns the commit of a worktree.
    pub fn head(&self, w: &Worktree) -> Result<CommitId, RepoError> {
        let args = ["rev-parse", "--verify", "--end-of-options", "HEAD"];
        let scope = self.own_refs_of(w)?;
        let said = self.asker.ask(scope, &args).text()?;
        let name = said.lines().last().unwrap_or_default();
        name.parse().map_err(|_| RepoError::permanent("git names no commit for HEAD"))
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: &CommitId) -> Result<String, RepoError> {
        self.asker.tree_name(commit)
    }

    pub fn state(&self, w: &Worktree) -> Result<WorkState, RepoError> {
        self.finish_moving(w)?;
        match self.check_finished(w) {
            Err(RepoError::Unfinished { what, .. }) => return Ok(WorkState::Unfinished(what)),
            checked => checked?,
        }
        if self.slot_of(w).conflict().exists() {
            return Ok(WorkState::Unfinished(UnfinishedOperation::LaidOut));
        }
        match self.is_dirty(w)? {
            true => Ok(WorkState::Dirty),
            false => Ok(WorkState::Clean),
        }
    }

    pub fn is_ancestor(&self, a: &CommitId, b: &CommitId) -> Result<bool, RepoError> {
        let args = ["merge-base", "--is-ancestor", "--", a.as_str(), b.as_str()];
        self.asker.private_repo(&args).yes()
    }

    /// Returns the number of commits that `head` has and `base` does not.
    pub fn ahead(&self, base: &CommitId, head: &CommitId) -> Result<u32, RepoError> {
        let range = format!("{base}..{head}");
        let said =
            self.asker.private_repo(&["rev-list", "--count", "--end-of-options", &range]).text()?;
        said.parse().map_err(|_| RepoError::permanent(format!("git counts `{said}` commits")))
    }

    pub(super) fn is_dirty(&self, w: &Worktree) -> Result<bool, RepoError> {
        let slot = self.slot_of(w);
        let head = self.head(w)?;
        self.refresh_index(&slot, &head)?;
        let changed = self.changed_paths(&slot)?;
        Ok(!changed.is_empty() || !self.forced_paths(w)?.is_empty())
    }

    pub(super) fn check_clean(&self, w: &Worktree) -> Result<(), RepoError> {
        self.check_finished(w)?;
        match self.is_dirty(w)? {
            true => Err(RepoError::Dirty(w.path.clone())),
            false => Ok(()),
        }
    }

    /// Returns the scope for a worktree's HEAD. Git reads the location of refs from a file there, even if its
    /// environment says otherwise, and an agent may have changed that file.
    fn own_refs_of<'w>(&self, w: &'w Worktree) -> Result<CommandScope<'w>, RepoError> {
        state_file::write(&w.git_dir.join("commondir"), b"../..\n")?;
        Ok(CommandScope::UsersWorktree(&w.git_dir))
    }

    /// Checks that the worktree is on its own branch, and that no operation of git is in progress.
    pub(super) fn check_finished(&self, w: &Worktree) -> Result<(), RepoError> {
        let unfinished = |what| Err(RepoError::Unfinished { path: w.path.clone(), what });
        let underway = UNDERWAY.into_iter().find(|(name, _)| w.git_dir.join(name).exists());
        if let Some((_, operation)) = underway {
            return unfinished(UnfinishedOperation::Underway(operation));
        }
        let scope = self.own_refs_of(w)?;
        let said = self.asker.ask(scope, &["symbolic-ref", "--quiet", "--", "HEAD"]).said()?;
        let branch = w.branch.clone();
        match said.code {
            1 => unfinished(UnfinishedOperation::Detached { branch }),
            _ => {
                let full =
                    String::from_utf8_lossy(&said.well("symbolic-ref")?).trim_end().to_owned();
                match full.strip_prefix("refs/heads/") {
                    Some(found) if found == branch => Ok(()),
                    found => {
                        let found = found.unwrap_or(&full).to_owned();
                        unfinished(UnfinishedOperation::Elsewhere { found, branch })
                    }
                }
            }
        }
    }

    /// Returns the tree of a commit of all files on `head`. hookloop's index has that tree afterwards.
    pub(super) fn tree_of_files(&self, w: &Worktree, head: &CommitId) -> Result<String, RepoError> {
        let slot = self.slot_of(w);
        self.refresh_index(&slot, head)?;
        let mut paths = self.changed_paths(&slot)?;
        paths.extend(self.forced_paths(w)?);
        let index = slot.index();
        let (changed, replaced) = paths::without_replaced(&slot.path, &paths);
        for (how, list) in [(&paths::TAKE_OUT[..], replaced), (&paths::TAKE_IN[..], changed)] {
            if !list.is_empty() {
                let question = self.asker.ask(slot.files(&index), how).stdin(list);
                question.objects(ObjectStore::Users).done()?;
            }
        }
        let question = self.asker.ask(slot.files(&index), &["write-tree"]);
        question.objects(ObjectStore::Users).text()
    }

    /// Sets hookloop's index to `head`. Its knowledge about files stays.
    pub(super) fn refresh_index(
        &self,
        slot: &WorktreePath,
        head: &CommitId,
    ) -> Result<(), RepoError> {
        let index = slot.index();
        let read = |how: &[&str]| {
            let question = self.asker.ask(slot.files(&index), how).arg(head.as_str());
            question.objects(ObjectStore::Users).done()
        };
        match read(&["read-tree", "-m"]) {
            Err(RepoError::Permanent { .. }) => {
                state_file::remove(&index)?;
                read(&["read-tree"])
            }
            done => done,
        }
    }

    /// Returns the files that differ from hookloop's index, each with a zero byte behind it.
    fn changed_paths(&self, slot: &WorktreePath) -> Result<Vec<u8>, RepoError> {
        let index = slot.index();
        let said = self
            .asker
            .ask(slot.files(&index), &paths::CHANGED)
            .objects(ObjectStore::Users)
            .long()
            .bytes()?;
        Ok(paths::without_repositories(&said))
    }

    /// Returns ignored files that the agent added to its index.
    fn forced_paths(&self, w: &Worktree) -> Result<Vec<u8>, RepoError> {
        let slot = self.slot_of(w);
        let list = |index: &Path| {
            let args = ["ls-files", "-z", "-c", "-i", "--exclude-standard"];
            self.asker.ask(slot.files(index), &args).objects(ObjectStore::Users).long().said()
        };
        let theirs = list(&w.git_dir.join("index"))?;
        // An unreadable index adds nothing.
        if theirs.code != 0 || theirs.stdout.is_empty() {
            return Ok(Vec::new());
        }
        let ours = list(&slot.index())?.stdout;
        let known: std::collections::BTreeSet<&[u8]> = ours.split(|byte| *byte == 0).collect();
        let is_new = |path: &&[u8]| !path.is_empty() && !known.contains(path);
        let mut paths = Vec::new();
        for path in theirs.stdout.split(|byte| *byte == 0).filter(is_new) {
            paths.extend_from_slice(path);
            paths.push(0);
        }
        Ok(paths)
    }

    /// Copies hookloop's index to the worktree's own.
    pub(super) fn show_index(&self, w: &Worktree) -> Result<(), RepoError> {
        // The agent does not run now, so its lock is a leftover. A person's git releases its lock in a moment.
        self.asker.clear_leftover(&w.git_dir.join("index.lock"))?;
        let index = w.git_dir.join("index");
        copy_index(&self.slot_of(w).index(), &index).map_err(RepoError::io(&index))
    }
}
