//! Checks that a directory is the worktree of a task, and recreates a damaged worktree.

use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::id::TaskId;

use super::error::RepoError;
use super::worktree_path::WorktreePath;
use super::{CommitId, Repo, Worktree, state_file};

/// Work of a worktree that the task's branch does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeLoss {
    /// The commit of the new worktree.
    pub commit: CommitId,
    /// The damage of the old worktree.
    pub reason: String,
    /// The ref with the files of the old worktree, if they could be read.
    pub saved: Option<String>,
}

impl Repo<'_> {
    /// Checks that the worktree of a task is at its path, and that git knows it as that. Reads only files: nothing
    /// that the agent wrote is run or followed. The error names the damage.
    pub fn check_worktree(&self, w: &Worktree) -> Result<(), String> {
        if let Some(damage) = self.missing_files(&self.slot_of(w)) {
            return Err(damage);
        }
        let link = w.path.join(".git");
        let expected = format!("gitdir: {}\n", w.git_dir.display());
        // A link that can't be read counts as one that leads elsewhere.
        if state_file::read(&link).ok().flatten().as_deref() != Some(expected.as_bytes()) {
            return Err(format!("{} does not lead to {}", link.display(), w.git_dir.display()));
        }
        if !is_directory(&w.git_dir) {
            return Err(format!("git has forgotten {}", w.path.display()));
        }
        let registered = state_file::read_line(&w.git_dir.join("gitdir")).ok().flatten();
        if registered.as_deref().map(Path::new) != Some(&link) {
            return Err(format!("{} does not name {}", w.git_dir.display(), w.path.display()));
        }
        let common = state_file::read_line(&w.git_dir.join("commondir")).ok().flatten();
        let common = common.and_then(|common| w.git_dir.join(common).canonicalize().ok());
        if common.as_ref() != Some(&self.asker.common) {
            return Err(format!("{} belongs to another repository", w.git_dir.display()));
        }
        Ok(())
    }

    /// Returns the damage of a worktree's files that makes work there impossible.
    pub(super) fn missing_files(&self, slot: &WorktreePath) -> Option<String> {
        let path = &slot.path;
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) => return Some(unreadable(path, &error)),
        };
        if found.is_symlink() {
            let target = fs::read_link(path).unwrap_or_default();
            return Some(format!("{} is a link to {}", path.display(), target.display()));
        }
        if !found.is_dir() {
            return Some(format!("{} is not a directory", path.display()));
        }
        if path.canonicalize().ok().as_ref() != Some(path) {
            return Some(format!("{} is elsewhere", path.display()));
        }
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
            return Some(format!("{} is empty", path.display()));
        }
        let project = path.join(&self.found.prefix);
        match project.canonicalize() {
            Ok(real) if real == clean(&project) && real.is_dir() => None,
            Ok(real) => Some(format!("{} leads to {}", project.display(), real.display())),
            Err(error) => Some(unreadable(&project, &error)),
        }
    }

    /// Checks that worktrees are made and removed in the state directory, and nowhere else.
    pub(super) fn check_worktrees_directory(&self) -> Result<(), RepoError> {
        let found = match self.worktrees.symlink_metadata() {
            Ok(_) => self.worktrees.canonicalize().map_err(RepoError::io(&self.worktrees))?,
            // The first worktree creates it.
            Err(_) => return Ok(()),
        };
        if found == self.worktrees && found.is_dir() {
            return Ok(());
        }
        Err(RepoError::NeedsHuman {
            why: format!("{} leads to {}", self.worktrees.display(), found.display()),
            hint: format!("move it away: mv {0} {0}.old", self.worktrees.display()),
        })
    }

    /// Recreates a worktree from the last commit of its branch.
    pub(super) fn recreate(
        &self,
        slot: &WorktreePath,
        head: &CommitId,
        reason: &str,
    ) -> Result<PathBuf, RepoError> {
        self.check_not_elsewhere(slot)?;
        let saved = self.save_files(slot, head);
        // Written first: if this process is killed from here on, the next one finds the note.
        let note = format!("{head}\n{}\n{reason}\n", saved.as_deref().unwrap_or_default());
        state_file::write(&slot.lost(), note.as_bytes())?;
        // An unreadable note is replaced.
        let base = state_file::read_line(&slot.made())?.and_then(|line| line.parse().ok());
        self.lay_out(slot, head, &base.unwrap_or_else(|| head.clone()))
    }

    /// Stores the remaining files of a worktree. Unreadable files are lost.
    fn save_files(&self, slot: &WorktreePath, head: &CommitId) -> Option<String> {
        if !is_directory(&slot.path) {
            return None;
        }
        let lost = |error: &RepoError| {
            let path = slot.path.display();
            tracing::warn!(task = %slot.task, %path, %error, "files of a worktree are not kept");
        };
        let w = self.found_worktree(slot).inspect_err(lost).ok().flatten()?;
        let (commit, name) = self.keep_all(&w).inspect_err(lost).ok()?;
        (commit != *head).then_some(name)
    }

    /// Returns the loss that is not recorded yet.
    pub(super) fn loss(&self, slot: &WorktreePath) -> Result<Option<WorktreeLoss>, RepoError> {
        let Some(text) = state_file::read_line(&slot.lost())? else { return Ok(None) };
        let mut lines = text.splitn(3, '\n');
        let commit = lines.next().and_then(|line| line.parse().ok());
        let saved = lines.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let reason = lines.next().unwrap_or_default().to_owned();
        let damaged = || RepoError::permanent(format!("{} can't be read", slot.lost().display()));
        Ok(Some(WorktreeLoss { commit: commit.ok_or_else(damaged)?, reason, saved }))
    }

    /// Removes the note of a loss once the log has it.
    pub fn forget_loss(&self, task: &TaskId) -> Result<(), RepoError> {
        state_file::remove(&self.slot(task).lost())
    }
}

/// Returns whether a directory exists and is no link.
pub(super) fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("{} is gone", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}

/// Returns the path without a trailing slash, as `join` with an empty path leaves one.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}
