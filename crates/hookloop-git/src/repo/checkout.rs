//! Moves a worktree from one commit to another: files, index and branch. A later process finishes an interrupted
//! move.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::error::RepoError;
use super::git_command::ObjectStore;
use super::worktree_path::WorktreePath;
use super::{CommitId, Repo, Worktree, state_file};

impl Repo<'_> {
    /// Moves a clean worktree from `from` to `to`.
    pub(super) fn move_worktree(
        &self,
        w: &Worktree,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), RepoError> {
        let slot = self.slot_of(w);
        self.check_free(&slot.path, from.as_str(), to.as_str())?;
        self.asker.keep(&slot.task, from)?;
        state_file::write(&slot.moving(), format!("{from}\n{to}\n").as_bytes())?;
        let index = slot.index();
        // A file with a new time and the same content blocks git until its index is refreshed.
        self.asker.ask(slot.files(&index), &["update-index", "-q", "--refresh"]).yes()?;
        let args = ["read-tree", "-m", "-u", from.as_str(), to.as_str()];
        let question = self.asker.ask(slot.files(&index), &args);
        question.objects(ObjectStore::Users).done()?;
        self.asker.move_branch(&slot.full_branch(), Some(from), to)?;
        self.show_index(w)?;
        state_file::remove(&slot.moving())
    }

    /// Finishes a move that another process began.
    pub(super) fn finish_moving(&self, w: &Worktree) -> Result<(), RepoError> {
        let slot = self.slot_of(w);
        let Some((from, to)) = on_the_way(&slot)? else { return Ok(()) };
        let branch = slot.full_branch();
        let at = self.asker.users_ref(&branch)?;
        if at.as_ref() != Some(&from) && at.as_ref() != Some(&to) {
            // The branch has moved elsewhere since.
            return state_file::remove(&slot.moving());
        }
        // The worktree was clean when the move began. Later changes are stored first.
        let tree = self.tree_of_files(w, &from)?;
        let snapshot =
            self.commit_tree(tree, vec![from.clone()], "hookloop: before a move continued")?;
        self.asker.keep(&slot.task, &snapshot)?;
        let index = slot.index();
        let args = ["read-tree", "--reset", "-u", to.as_str()];
        let question = self.asker.ask(slot.files(&index), &args);
        question.objects(ObjectStore::Users).done()?;
        if at.as_ref() == Some(&from) {
            self.asker.move_branch(&branch, Some(&from), &to)?;
        }
        self.show_index(w)?;
        state_file::remove(&slot.moving())
    }

    /// Checks that no file is in the way of new ones. Git would overwrite ignored files.
    pub(super) fn check_free(&self, top: &Path, from: &str, to: &str) -> Result<(), RepoError> {
        let list = |filter: &str| {
            let args =
                ["diff-tree", "-r", "-z", "--name-only", "--no-renames", filter, from, to, "--"];
            self.asker.private_repo(&args).long().bytes()
        };
        let (added, gone) = (list("--diff-filter=A")?, list("--diff-filter=D")?);
        let gone: BTreeSet<PathBuf> = paths(&gone).collect();
        for path in paths(&added) {
            let parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
            let in_the_way = parts.into_iter().find(|part| {
                let found = top.join(part).symlink_metadata();
                found.is_ok_and(|found| !found.is_dir()) && !gone.contains(*part)
            });
            if let Some(part) = in_the_way {
                let part = top.join(part);
                return Err(RepoError::NeedsHuman {
                    why: format!("{} is in the way of a file of the same name", part.display()),
                    hint: format!("move it away: mv {0} {0}.mine", part.display()),
                });
            }
        }
        Ok(())
    }
}

fn on_the_way(slot: &WorktreePath) -> Result<Option<(CommitId, CommitId)>, RepoError> {
    let Some(text) = state_file::read_line(&slot.moving())? else { return Ok(None) };
    let mut lines = text.lines().map(str::parse);
    match (lines.next(), lines.next()) {
        (Some(Ok(from)), Some(Ok(to))) => Ok(Some((from, to))),
        _ => Err(RepoError::permanent(format!("{} can't be read", slot.moving().display()))),
    }
}

fn paths(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    let named = list.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    named.map(|path| OsString::from_vec(path.to_vec()).into())
}
