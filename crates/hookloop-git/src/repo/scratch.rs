//! A temporary checkout, for tests before a merge.
//!
//! It is a repository of its own that borrows objects. So programs that run there cannot change the private
//! repository or the user's repository through git.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::{debug, warn};

use super::asking::Scope;
use super::error::RepoError;
use super::notes::{self, Held};
use super::{Commit, Repo, copied, names};

/// The most leftovers that are checked when a repository is opened.
const LEFTOVERS_MAX: usize = 1_000;

/// A checkout that is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    /// The top directory.
    pub path: PathBuf,
    /// The project in it.
    pub project: PathBuf,
    _alone: Held,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that is left is removed when the repository is opened next.
        if let Err(error) = notes::remove_all(&self.path) {
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
    pub fn scratch(&self, commit: &Commit, name: &str) -> Result<Scratch, RepoError> {
        if !names::is_branch(name) || name.contains(['/', '.']) {
            return Err(RepoError::permanent(format!("`{name}` can't be the name of a directory")));
        }
        let path = self.scratches().join(name);
        let alone = Held::wait(&lock_of(&path), &self.asker.cancel)?;
        notes::remove_all(&path)?;
        let scratch =
            Scratch { project: path.join(&self.found.prefix), path: path.clone(), _alone: alone };
        let git = path.join(".git");
        for directory in ["objects/info", "objects/pack", "refs/heads"] {
            notes::make_directory(&git.join(directory))?;
        }
        let config = notes::read(&self.asker.depot.join("config"))?.unwrap_or_default();
        let config =
            String::from_utf8_lossy(&config).replace("\tbare = true\n", "\tbare = false\n");
        notes::write(&git.join("config"), config.as_bytes())?;
        let objects = self.asker.depot.join("objects");
        notes::write(
            &git.join("objects/info/alternates"),
            format!("{}\n", objects.display()).as_bytes(),
        )?;
        if let Some(shallow) = notes::read(&self.asker.depot.join("shallow"))? {
            notes::write(&git.join("shallow"), &shallow)?;
        }
        notes::write(&git.join("HEAD"), format!("{commit}\n").as_bytes())?;
        let index = git.join("index");
        let scope = Scope::Files { work_tree: &path, index: &index };
        self.asker.ask(scope, &["read-tree", "--reset", "-u", commit.as_str()]).done()?;
        Ok(scratch)
    }

    /// Copies the ignored files that a worktree also gets.
    pub fn copy_along(&self, scratch: &Scratch) -> Result<(), RepoError> {
        copied::copy_along(self, &scratch.path)
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
                && let Ok(Some(_alone)) = Held::now(&lock_of(&path))
                && let Err(error) = notes::remove_all(&path)
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
