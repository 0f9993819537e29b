//! The repository of a project, as delivery uses it: a worktree for each task, merges, and what goes to a remote.
//!
//! The user's checkout, branches, index, stash and remote-tracking refs are not touched. What is ours in the
//! user's repository: task branches, their worktrees, and refs under `refs/hookloop/`.
//!
//! **No configuration of the repository is in effect.** An agent can write to it, and much of it is commands. All
//! that reads or writes content is done with `depot`, a repository of our own that borrows the user's objects;
//! in the user's own only refs and worktrees are named.
//!
//! - [`commit`]: names of commits, and commits made from their parts; `names`: names of branches and remotes
//! - `depot`: the repository of our own
//! - `asking`: where git is asked, and what it is asked with; `found`: where the repository is
//! - `target`: the branch that work is for
//! - `place`: whether a directory is a task's worktree
//! - `slot`, `worktree`: made, or found again; `copied`: ignored files that go along; `listing`: which there are
//! - `work`: what is in a worktree, and committing it; `moving`: from one commit to another; `diff`
//! - `notes`: small files of our own, and locks; `locks`: lock files of git's that were left behind
//! - `merge`: two commits to one tree; `rebase`, `train`: what is made of that; `conflict`: what an agent settles
//! - `remote`: branches elsewhere; `land`: moving the target
//! - [`mirror`]: a repository that nobody has on this machine
//! - `scratch`: a checkout that is thrown away

mod asking;
mod commit;
pub mod commit_id;
mod conflict;
mod copied;
mod depot;
mod diff;
pub mod error;
pub mod found;
mod land;
mod listing;
mod lock_wait;
mod locks;
mod merge;
pub mod mirror;
mod moving;
pub mod names;
mod notes;
mod place;
mod rebase;
mod remote;
mod scratch;
mod slot;
mod target;
mod train;
mod work;
pub mod worktree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use asking::{Asker, Ssh};
pub use commit_id::Commit;
pub use error::{Operation, RepoError, Unfinished};
use found::Found;
pub use hookloop_core::delivery::MergeMethod;
use hookloop_core::id::TaskId;
use hookloop_process::{Cancel, KeeperPool};
use notes::Held;
pub use place::WorktreeLoss;
pub use scratch::Scratch;
use slot::Slot;

/// Held while the depot or refs of ours are changed.
const LOCK: &str = "depot.lock";

/// What a project's configuration says about its repository.
#[derive(Clone, Debug)]
pub struct RepoWish {
    /// The branch that work is for.
    pub base: Option<String>,
    /// The name of the remote that it is on.
    pub remote: Option<String>,
    /// What the names of task branches begin with.
    pub prefix: String,
    /// Ignored files that a worktree is to have, too.
    pub copy: Vec<String>,
}

/// Where a repository is looked for, and what git is run with.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'r> {
    /// The project's directory.
    pub root: &'r Path,
    /// The directory of its state.
    pub state: &'r Path,
    /// The user's environment.
    pub environment: &'r [(OsString, OsString)],
    pub keepers: &'r KeeperPool,
}

#[derive(Debug)]
pub struct Repo<'r> {
    asker: Asker<'r>,
    found: Found,
    target: Target,
    prefix: String,
    copy: Vec<String>,
    /// Where worktrees are.
    worktrees: PathBuf,
}

/// The branch that work is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// None if it is the user's own branch.
    pub remote: Option<Remote>,
    pub branch: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub name: String,
    /// Where it is fetched from.
    pub url: String,
    /// Where it is pushed to.
    pub push_url: String,
}

/// A task's own checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    pub task: TaskId,
    /// Its top directory.
    pub path: PathBuf,
    /// The project in it, which may be a directory further down.
    pub project: PathBuf,
    pub branch: String,
    /// Where its branch and the target part, as far as the target is known.
    pub base: Commit,
    /// It was made just now.
    pub is_new: bool,
    /// What was lost when it was made anew, if that is not recorded yet.
    pub loss: Option<WorktreeLoss>,
    /// What git keeps of it.
    git_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeInfo {
    pub task: TaskId,
    pub path: PathBuf,
    pub branch: String,
    pub head: Commit,
    pub is_dirty: bool,
    /// Commits that the target, as far as it is known, does not have.
    pub ahead: u32,
    pub last_used: std::time::SystemTime,
}

/// How a worktree is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub branch: BranchFate,
    pub unsaved: Unsaved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchFate {
    Kept,
    Deleted,
}

/// What happens to work that is nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsaved {
    /// It stays, and so does its worktree; `delivered` is a head that is known to be in the target, as one commit
    /// or several others.
    Stays { delivered: Option<Commit> },
    /// It goes, but for a ref under `refs/hookloop/kept`.
    Goes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    Done,
    NotThere,
    /// It stayed, for this reason.
    Stayed {
        why: String,
    },
}

/// What a worktree is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkState {
    Clean,
    Dirty,
    Unfinished(Unfinished),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    pub text: String,
    /// Bytes that `text` does not have.
    pub left_out_bytes: u64,
    pub left_out_lines: u64,
    pub files: Vec<Changed>,
    /// Files that `files` does not have.
    pub left_out_files: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    /// Lines; 0 for what is no text.
    pub added: u64,
    pub deleted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebased {
    UpToDate,
    Done { from: Commit, to: Commit },
    Conflict { files: Vec<Conflicted> },
}

/// A file that two sides changed in ways that do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicted {
    pub path: String,
    /// The places, with both sides.
    pub excerpt: String,
}

/// A conflict that is laid out in a worktree's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub onto: Commit,
    pub files: Vec<Conflicted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// No conflict was laid out.
    Nothing,
    Done {
        commit: Commit,
    },
    Unresolved {
        files: Vec<String>,
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    Done,
    AlreadyThere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeHow {
    pub method: MergeMethod,
    /// Of the commit that is made; with [`MergeMethod::Rebase`] commits keep their own.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergedOnto {
    Done {
        commit: Commit,
        /// The way that was taken: commits among which there are merges are not rebased, but squashed.
        method: MergeMethod,
    },
    AlreadyIn,
    Conflict {
        files: Vec<Conflicted>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landed {
    Done,
    AlreadyThere,
    /// Somebody else was first.
    Lost {
        now: Commit,
    },
}

impl<'r> Repo<'r> {
    /// The repository that is found there.
    pub fn at(grounds: Grounds<'r>, wish: RepoWish, cancel: &Cancel) -> Result<Self, RepoError> {
        let found = Found::look(grounds.root)?;
        let state = grounds.state.canonicalize().map_err(RepoError::io(grounds.state))?;
        let (common, depot) = (found.common.clone(), state.join("depot.git"));
        let (cancel, prefix) = (cancel.clone(), wish.prefix.clone());
        let mut asker = Asker { grounds, cancel, common, depot, prefix, ssh: Ssh::Unasked };
        let alone = Held::wait(&grounds.state.join(LOCK), &asker.cancel)?;
        asker.clear_depot()?;
        asker.check_whole()?;
        let remote = asker.remote(&wish, &found)?;
        asker.prepare_depot(remote.as_ref())?;
        asker.find_ssh()?;
        let branch = asker.base(&wish, remote.as_ref())?;
        drop(alone);
        let target = Target { remote, branch };
        let RepoWish { prefix, copy, .. } = wish;
        let worktrees = state.join("worktrees");
        let repo = Repo { asker, found, target, prefix, copy, worktrees };
        repo.sweep_scratches()?;
        Ok(repo)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Has the depot and the refs to itself.
    fn alone(&self) -> Result<Held, RepoError> {
        let alone = Held::wait(&self.asker.grounds.state.join(LOCK), &self.asker.cancel)?;
        self.asker.clear_depot()?;
        Ok(alone)
    }

    /// Has a worktree to itself, while it is made or removed.
    fn alone_in(&self, slot: &Slot) -> Result<Held, RepoError> {
        Held::wait(&slot.notes.with_extension("lock"), &self.asker.cancel)
    }
}
