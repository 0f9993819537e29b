//! A temporary checkout, for tests before a merge.
//!
//! It is a repository of its own that borrows objects. So programs that run there cannot change the private
//! repository or the user's repository through git.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::{debug, warn};

use super::error::RepoError;
use super::git_command::CommandScope;
use super::state_file::{self, HeldLock};
use super::{CommitId, Repo, ignored_files, names};

/// The most leftovers that are checked when a repository is opened.
const LEFTOVERS_MAX: usize = 1_000;

/// A checkout that is removed when this is dropped.
#[derive(Debug)]
pub struct ScratchCheckout {
    /// The top directory.
    pub path: PathBuf,
    /// The project in it.
    pub project: PathBuf,
    _alone: HeldLock,
}

impl Drop for ScratchCheckout {
    fn drop(&mut self) {
        // A directory that is left is removed when the repository is opened next.
        if let Err(error) = state_file::remove_all(&self.path) {
            warn!(path = %self.path.display(), %error, "a scratch checkout is not removed");
        }
        let lock = lock_of(&self.path);
        if let Err(error) = fs::remove_file(&lock) {
            debug!(path = %lock.display(), %error, "the lock of a scratch checkout is not removed");
        }
    }
}

impl Repo<'_> {
    /// Writes the files of a commit to a directory of that name.
    pub fn scratch(&self, commit: &CommitId, name: &str) -> Result<ScratchCheckout, RepoError> {
        if !names::is_branch(name) || name.contains(['/', '.']) {
            return Err(RepoError::permanent(format!("`{name}` can't be the name of a directory")));
        }
        let path = self.scratches().join(name);
        let alone = HeldLock::wait(&lock_of(&path), &self.asker.cancel)?;
        state_file::remove_all(&path)?;
        let scratch = ScratchCheckout {
            project: path.join(&self.found.prefix),
            path: path.clone(),
            _alone: alone,
        };
        let git = path.join(".git");
        for directory in ["objects/info", "objects/pack", "refs/heads"] {
            state_file::make_directory(&git.join(directory))?;
        }
        let config = state_file::read(&self.asker.private_repo.join("config"))?.unwrap_or_default();
        let config =
            String::from_utf8_lossy(&config).replace("\tbare = true\n", "\tbare = false\n");
        state_file::write(&git.join("config"), config.as_bytes())?;
        let objects = self.asker.private_repo.join("objects");
        state_file::write(
            &git.join("objects/info/alternates"),
            format!("{}\n", objects.display()).as_bytes(),
        )?;
        if let Some(shallow) = state_file::read(&self.asker.private_repo.join("shallow"))? {
            state_file::write(&git.join("shallow"), &shallow)?;
        }
        state_file::write(&git.join("HEAD"), format!("{commit}\n").as_bytes())?;
        let index = git.join("index");
        let scope = CommandScope::Files { work_tree: &path, index: &index };
        self.asker.ask(scope, &["read-tree", "--reset", "-u", commit.as_str()]).done()?;
        Ok(scratch)
    }

    /// Copies the ignored files that a worktree also gets.
    pub fn copy_along(&self, scratch: &ScratchCheckout) -> Result<(), RepoError> {
        ignored_files::copy_along(self, &scratch.path)
    }

    fn scratches(&self) -> PathBuf {
        self.asker.grounds.state.join("scratch")
    }

    /// Removes the checkouts that dead processes left.
    pub(super) fn sweep_scratches(&self) -> Result<(), RepoError> {
        let Ok(entries) = fs::read_dir(self.scratches()) else { return Ok(()) };
        for entry in entries.flatten().take(LEFTOVERS_MAX) {
            let path = entry.path();
            let is_left = path.is_dir() && path.extension().is_none();
            // A leftover that can't be removed is in nobody's way.
            if is_left
                && let Ok(Some(_alone)) = HeldLock::now(&lock_of(&path))
                && let Err(error) = state_file::remove_all(&path)
            {
                warn!(path = %path.display(), %error, "a left scratch checkout is not removed");
            }
        }
        Ok(())
    }
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}
