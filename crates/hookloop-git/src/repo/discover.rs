//! Finds the repository of a project by its files. Git itself would answer by the repository's configuration.

use std::path::{Path, PathBuf};

use super::error::RepoError;
use super::state_file;

/// The start of a `.git` file that names another directory.
const ELSEWHERE: &str = "gitdir: ";

#[derive(Debug)]
pub struct FoundRepository {
    /// The checkout's top directory.
    pub top: PathBuf,
    /// The path from there to the project.
    pub prefix: PathBuf,
    /// Git's own directory of this checkout.
    pub git_dir: PathBuf,
    /// The directory that all worktrees of the repository share.
    pub common: PathBuf,
}

impl FoundRepository {
    /// Returns the branch that is checked out; `None` for a detached HEAD.
    pub fn branch(&self) -> Option<String> {
        let head = state_file::read_line(&self.git_dir.join("HEAD")).ok()??;
        head.strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Returns the default branch of the remote `origin`, if it is known here.
    pub fn default_branch(&self) -> Option<String> {
        let head = state_file::read_line(&self.common.join("refs/remotes/origin/HEAD")).ok()??;
        head.strip_prefix("ref: refs/remotes/origin/").map(str::to_owned)
    }

    pub fn look(root: &Path) -> Result<FoundRepository, RepoError> {
        FoundRepository::find(root)?.ok_or_else(|| RepoError::NeedsHuman {
            why: format!("{} is not in a git repository", root.display()),
            hint: "run `git init` and make a first commit".to_owned(),
        })
    }

    /// Returns the repository that contains `root`; `None` if there is none.
    pub(crate) fn find(root: &Path) -> Result<Option<FoundRepository>, RepoError> {
        let root = root.canonicalize().map_err(RepoError::io(root))?;
        match root.ancestors().find(|directory| is_top(directory)) {
            Some(top) => FoundRepository::of(top, &root).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the repository whose top directory is `top`.
    pub(crate) fn at(top: &Path) -> Result<FoundRepository, RepoError> {
        FoundRepository::of(top, top)
    }

    fn of(top: &Path, root: &Path) -> Result<FoundRepository, RepoError> {
        let prefix = root.strip_prefix(top).unwrap_or(Path::new("")).to_owned();
        let git_dir = git_dir(top)?;
        let common = common(&git_dir)?;
        // The paths are written to files with one path a line.
        match common.as_os_str().as_encoded_bytes().contains(&b'\n') {
            true => Err(RepoError::permanent("the repository's path has a newline in it")),
            false => Ok(FoundRepository { top: top.to_owned(), prefix, git_dir, common }),
        }
    }
}

fn is_top(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
}

fn git_dir(top: &Path) -> Result<PathBuf, RepoError> {
    let git = top.join(".git");
    let path = match git.is_file() {
        false => git,
        true => {
            let text = state_file::read_line(&git)?.unwrap_or_default();
            let Some(path) = text.strip_prefix(ELSEWHERE) else {
                let why = format!("{} does not say where the repository is", git.display());
                return Err(RepoError::permanent(why));
            };
            top.join(path)
        }
    };
    path.canonicalize().map_err(RepoError::io(&path))
}

/// Returns the shared directory of a repository. A linked worktree's directory names it.
fn common(git_dir: &Path) -> Result<PathBuf, RepoError> {
    match state_file::read_line(&git_dir.join("commondir"))? {
        None => Ok(git_dir.to_owned()),
        Some(path) => {
            let path = git_dir.join(path);
            path.canonicalize().map_err(RepoError::io(&path))
        }
    }
}
