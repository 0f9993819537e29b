//! The repository of a project as delivery uses it: a worktree for each task, merges, and pushes to a remote.
//!
//! The user's checkout, branches, index, stash and remote-tracking refs are not changed. In the user's repository
//! hookloop owns task branches, their worktrees, and refs under `refs/hookloop/`.
//!
//! **No configuration of the repository is in effect.** An agent can write to it, and much of it is commands. Every
//! command that reads or writes content runs in a private repository that borrows the user's objects.
//! Commands in the user's repository only name refs and worktrees.
//!
//! - [`commit_id`]: names of commits; `commit`: new commits; `names`: checks of branch and remote names
//! - `private_repo`: the private repository
//! - `git_command`: the commands of git, with their environment; [`discover`]: the location of the repository
//! - `target`: the branch that work is for
//! - `place`: checks that a directory is a task's worktree
//! - `worktree_path`, `worktree`: paths and creation of worktrees; `ignored_files`: ignored files; `listing`: list and removal
//! - `work`: the content of a worktree, and commits of it; `checkout`: moves to another commit; `diff`: differences
//! - `state_file`: small state files and locks; `locks`, `lock_wait`: leftover lock files of git
//! - `merge`: two commits to one tree; `rebase`, `train`: commits of that tree; `conflict`: conflicts for an agent
//! - `remote`: branches of a remote; `land`: moves of the target
//! - [`mirror`]: a repository that a worker clones
//! - `scratch`: a temporary checkout

mod checkout;
mod commit;
pub mod commit_id;
mod conflict;
mod diff;
pub mod discover;
pub mod error;
mod git_command;
mod ignored_files;
mod land;
mod listing;
mod lock_wait;
mod locks;
mod merge;
pub mod mirror;
pub mod names;
mod place;
mod private_repo;
mod rebase;
mod remote;
mod scratch;
pub(crate) mod state_file;
mod target;
mod train;
mod work;
pub mod worktree;
mod worktree_path;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use commit_id::CommitId;
pub(crate) use discover::FoundRepository;
pub use error::{GitOperation, RepoError, UnfinishedOperation};
use git_command::{GitCommands, SshAccess};
pub use hookloop_core::delivery::MergeMethod;
use hookloop_core::id::TaskId;
use hookloop_process::{Cancel, KeeperPool};
pub use place::WorktreeLoss;
pub(crate) use private_repo::quoted;
pub use scratch::ScratchCheckout;
use state_file::HeldLock;
use worktree_path::WorktreePath;

/// Held while the private repository or hookloop's refs are changed.
const LOCK: &str = "private_repo.lock";

/// The configuration of a project's repository.
#[derive(Clone, Debug)]
pub struct RepoOptions {
    /// The base: the branch that work is for.
    pub base: Option<String>,
    /// The name of the remote that has the base.
    pub remote: Option<String>,
    /// The prefix of task branches.
    pub prefix: String,
    /// Ignored files that a worktree also gets.
    pub copy: Vec<String>,
}

/// The directories of a repository, and the parameters of git.
#[derive(Clone, Copy, Debug)]
pub struct RepoDirectories<'r> {
    /// The project's directory.
    pub root: &'r Path,
    /// The directory of the project's state.
    pub state: &'r Path,
    /// The user's environment.
    pub environment: &'r [(OsString, OsString)],
    pub keepers: &'r KeeperPool,
}

#[derive(Debug)]
pub struct Repo<'r> {
    asker: GitCommands<'r>,
    found: FoundRepository,
    target: TargetBranch,
    prefix: String,
    copy: Vec<String>,
    /// The directory of worktrees.
    worktrees: PathBuf,
}

/// The branch that work is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetBranch {
    /// `None` if it is a branch of the user's repository.
    pub remote: Option<RemoteName>,
    pub branch: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteName {
    pub name: String,
    /// The address for fetches.
    pub url: String,
    /// The address for pushes.
    pub push_url: String,
}

/// A checkout for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    pub task: TaskId,
    /// The top directory.
    pub path: PathBuf,
    /// The project in it, which may be a subdirectory.
    pub project: PathBuf,
    pub branch: String,
    /// The common commit of the branch and the target, as far as the target is known.
    pub base: CommitId,
    /// The worktree was just created.
    pub is_new: bool,
    /// The work that was lost when the worktree was recreated, if that is not recorded yet.
    pub loss: Option<WorktreeLoss>,
    /// Git's own directory of the worktree.
    git_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeInfo {
    pub task: TaskId,
    pub path: PathBuf,
    pub branch: String,
    pub head: CommitId,
    pub is_dirty: bool,
    /// The number of commits that the target, as far as it is known, does not have.
    pub ahead: u32,
    pub last_used: std::time::SystemTime,
}

/// How a worktree is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeRemoval {
    pub branch: BranchFate,
    pub unsaved: UnsavedWork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchFate {
    Kept,
    Deleted,
}

/// The handling of work that exists only in the worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsavedWork {
    /// The work stays, and so does its worktree. `delivered` is a head that is known to be in the target, as one
    /// commit or as several others.
    Stays { delivered: Option<CommitId> },
    /// The work is removed, except for a ref under `refs/hookloop/kept`.
    Goes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovedWorktree {
    Done,
    NotThere,
    /// The worktree stayed, for this reason.
    Stayed {
        why: String,
    },
}

/// The state of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkState {
    Clean,
    Dirty,
    Unfinished(UnfinishedOperation),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub text: String,
    /// The number of bytes that are missing in `text`.
    pub left_out_bytes: u64,
    pub left_out_lines: u64,
    pub files: Vec<ChangedFile>,
    /// The number of files that are missing in `files`.
    pub left_out_files: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// The number of lines; 0 for binary files.
    pub added: u64,
    pub deleted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseResult {
    UpToDate,
    Done { from: CommitId, to: CommitId },
    Conflict { files: Vec<ConflictedFile> },
}

/// A file whose changes on both sides conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictedFile {
    pub path: String,
    /// The conflicting passages, with both sides.
    pub excerpt: String,
}

/// A conflict that is written to a worktree's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenConflict {
    pub onto: CommitId,
    pub files: Vec<ConflictedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettledRequest {
    /// No conflict was written to the files.
    Nothing,
    Done {
        commit: CommitId,
    },
    Unresolved {
        files: Vec<String>,
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    Done,
    AlreadyThere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeHow {
    pub method: MergeMethod,
    /// The message of the new commit. With [`MergeMethod::Rebase`] commits keep their own.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergedOnto {
    Done {
        commit: CommitId,
        /// The method that was used. Commits with merges among them are squashed instead of rebased.
        method: MergeMethod,
    },
    AlreadyIn,
    Conflict {
        files: Vec<ConflictedFile>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandedCommit {
    Done,
    AlreadyThere,
    /// Another process moved the target first.
    Lost {
        now: CommitId,
    },
}

impl<'r> Repo<'r> {
    /// Opens the repository of a project.
    pub fn at(
        grounds: RepoDirectories<'r>,
        options: RepoOptions,
        cancel: &Cancel,
    ) -> Result<Self, RepoError> {
        let found = FoundRepository::look(grounds.root)?;
        let state = grounds.state.canonicalize().map_err(RepoError::io(grounds.state))?;
        let (common, private_repo) = (found.common.clone(), state.join("private_repo.git"));
        let (cancel, prefix) = (cancel.clone(), options.prefix.clone());
        let mut asker =
            GitCommands { grounds, cancel, common, private_repo, prefix, ssh: SshAccess::Unasked };
        let alone = HeldLock::wait(&grounds.state.join(LOCK), &asker.cancel)?;
        asker.clear_depot()?;
        asker.check_whole()?;
        let remote = asker.remote(&options, &found)?;
        asker.prepare_private_repo(remote.as_ref())?;
        asker.find_ssh()?;
        let branch = asker.base(&options, remote.as_ref())?;
        drop(alone);
        let target = TargetBranch { remote, branch };
        let RepoOptions { prefix, copy, .. } = options;
        let worktrees = state.join("worktrees");
        let repo = Repo { asker, found, target, prefix, copy, worktrees };
        repo.sweep_scratches()?;
        Ok(repo)
    }

    pub fn target(&self) -> &TargetBranch {
        &self.target
    }

    /// Locks the private repository and hookloop's refs.
    fn alone(&self) -> Result<HeldLock, RepoError> {
        let alone = HeldLock::wait(&self.asker.grounds.state.join(LOCK), &self.asker.cancel)?;
        self.asker.clear_depot()?;
        Ok(alone)
    }

    /// Locks a worktree while it is created or removed.
    fn alone_in(&self, slot: &WorktreePath) -> Result<HeldLock, RepoError> {
        HeldLock::wait(&slot.notes.with_extension("lock"), &self.asker.cancel)
    }
}
