//! Lock files of git that a killed process left behind.
//!
//! Only hookloop writes to the private repository, and only while it holds `private_repo.lock`. So a lock of git there is
//! a leftover, unless the git of a process that was just killed still runs. In the user's repository hookloop
//! removes only locks of its own refs and worktrees, and only if no git works there. Any other lock may belong to a
//! person: hookloop waits for it and never removes it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hookloop_core::id::TaskId;

use super::error::RepoError;
use super::git_command::GitCommands;
use super::lock_wait::{LOCK_PAUSE_MIN, LockWait};
use super::state_file::{self, HeldLock};
use super::{Repo, Worktree};
use crate::git::{GitLocks, GitOutput, is_git_at_work};

/// The age at which a lock on a ref of the user's repository counts as left. Git holds one only for moments.
const LEFT_AFTER: Duration = Duration::from_secs(3);
/// The most entries of the private repository that are searched.
const ENTRIES_MAX: usize = 100_000;
/// The most worktrees of the user that are searched.
const WORKTREES_MAX: usize = 10_000;
/// Held while a lock is checked and removed, so that no other process removes the next lock at the same path.
const SWEEP_LOCK: &str = "git-locks.lock";
/// Parts of git's message about an existing lock. Git has no exit code for that, so its English message is read.
const UNABLE: &str = "Unable to create '";
const EXISTS: &str = ".lock': File exists";

/// The identity of a lock file, distinct from a later one at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LockIdentity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl LockIdentity {
    fn of(path: &Path) -> Option<LockIdentity> {
        let found = path.symlink_metadata().ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(LockIdentity { device: found.dev(), inode: found.ino(), changed })
    }
}

/// The owner of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LockOwner {
    /// An index that only hookloop uses, or a task's worktree. Its git works in these directories.
    Private(Vec<PathBuf>),
    /// A ref of hookloop in the user's repository, which the user's own git may lock for a moment.
    SharedRef,
    Foreign,
}

impl GitCommands<'_> {
    /// Removes a lock file if it is a leftover, else pauses. Fails when `wait` has lasted too long.
    pub(super) fn await_lock(&self, wait: &mut LockWait, lock: &Path) -> Result<(), RepoError> {
        let is_cleared = self.clear_leftover(lock)?;
        if wait.is_over() {
            return Err(RepoError::Locked { path: lock.to_owned() });
        }
        if !is_cleared && self.cancel.wait(wait.next_pause()) {
            return Err(RepoError::Cancelled);
        }
        Ok(())
    }

    /// The lock file that git could not make, if it is one of the repositories that are asked here.
    pub(super) fn lock_in_the_way(&self, said: &GitOutput) -> Option<PathBuf> {
        if said.code == 0 {
            return None;
        }
        let (before, _) = said.stderr.split_once(EXISTS)?;
        let (_, path) = before.rsplit_once(UNABLE)?;
        let lock = PathBuf::from(format!("{path}.lock"));
        let ours = [&self.common, &self.private_repo, &self.worktrees()];
        (lock.is_absolute() && ours.iter().any(|place| lock.starts_with(place))).then_some(lock)
    }

    fn worktrees(&self) -> PathBuf {
        let state = self.grounds.state;
        state.canonicalize().unwrap_or_else(|_| state.to_owned()).join("worktrees")
    }

    fn owner_of(&self, lock: &Path) -> LockOwner {
        let worktrees = self.worktrees();
        if let Ok(rest) = lock.strip_prefix(&worktrees) {
            // Files of an agent may have the names of locks.
            let notes = rest.components().next().map(|part| worktrees.join(part));
            let notes = notes.filter(|notes| notes.extension().is_some_and(|end| end == "notes"));
            return notes.map_or(LockOwner::Foreign, |notes| LockOwner::Private(vec![notes]));
        }
        let Ok(rest) = lock.strip_prefix(&self.common) else { return LockOwner::Foreign };
        if let Ok(rest) = rest.strip_prefix("worktrees") {
            let Some(name) = rest.components().next() else { return LockOwner::Foreign };
            let git_dir = self.common.join("worktrees").join(name);
            let named = state_file::read_line(&git_dir.join("gitdir")).ok().flatten();
            let path = named.and_then(|named| Some(Path::new(&named).parent()?.to_owned()));
            return match path.filter(|path| path.parent() == Some(&worktrees)) {
                Some(path) => LockOwner::Private(vec![path, git_dir]),
                None => LockOwner::Foreign,
            };
        }
        if rest.starts_with("refs/hookloop") || self.is_task_branch(rest) {
            return LockOwner::SharedRef;
        }
        LockOwner::Foreign
    }

    /// Returns whether it is the lock of a task branch.
    fn is_task_branch(&self, lock: &Path) -> bool {
        let name = lock.strip_prefix("refs/heads").ok().and_then(Path::to_str);
        let task =
            name.and_then(|name| name.strip_prefix(self.prefix.as_str())?.strip_suffix(".lock"));
        let Some(task) = task.and_then(|task| task.parse::<TaskId>().ok()) else { return false };
        // Without a prefix, a branch of the user may have the name of a task.
        !self.prefix.is_empty() || self.worktrees().join(format!("{task}.notes")).is_dir()
    }

    /// Removes a lock of hookloop that no process holds any more. Returns whether it is gone.
    pub(super) fn clear_leftover(&self, lock: &Path) -> Result<bool, RepoError> {
        let owner = self.owner_of(lock);
        if owner == LockOwner::Foreign {
            return Ok(false);
        }
        if LockIdentity::of(lock).is_none() {
            return Ok(true);
        }
        let _alone = HeldLock::wait(&self.grounds.state.join(SWEEP_LOCK), &self.cancel)?;
        let Some(identity) = LockIdentity::of(lock) else { return Ok(true) };
        let is_held = match &owner {
            LockOwner::Private(places) => at_work(places, GitLocks::All),
            LockOwner::SharedRef => {
                is_young(lock) || at_work(&self.checkouts(), GitLocks::Repository)
            }
            LockOwner::Foreign => true,
        };
        if is_held || LockIdentity::of(lock) != Some(identity) {
            return Ok(false);
        }
        state_file::remove(lock)?;
        Ok(true)
    }

    /// Returns the directories in which a git of the user's repository may run.
    fn checkouts(&self) -> Vec<PathBuf> {
        let mut places = vec![self.common.clone(), self.grounds.root.to_owned(), self.worktrees()];
        let is_named = self.common.file_name().is_some_and(|name| name == ".git");
        places.extend(self.common.parent().filter(|_| is_named).map(Path::to_owned));
        let linked = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        for entry in linked.take(WORKTREES_MAX) {
            let named = state_file::read_line(&entry.path().join("gitdir")).ok().flatten();
            places.extend(named.and_then(|named| Some(Path::new(&named).parent()?.to_owned())));
        }
        places
    }

    /// Removes the locks that killed processes left in the private repository. The caller holds its lock.
    pub(super) fn clear_depot(&self) -> Result<(), RepoError> {
        let locks = locks_below(&self.private_repo);
        let Some(first) = locks.first() else { return Ok(()) };
        let wait = LockWait::new();
        // The git of a process that was killed just now ends with its keeper, in a moment.
        while is_git_at_work(&[&self.private_repo], GitLocks::Repository) {
            if wait.is_over() {
                return Err(RepoError::Locked { path: first.clone() });
            }
            if self.cancel.wait(LOCK_PAUSE_MIN) {
                return Err(RepoError::Cancelled);
            }
        }
        locks.iter().try_for_each(|lock| state_file::remove(lock))
    }

    /// Removes the locks that a killed process left in a checkout of hookloop itself. The caller holds the lock of
    /// the checkout.
    pub(super) fn clear_checkout(&self, branch: &str) -> Result<(), RepoError> {
        let names = [
            "index.lock".to_owned(),
            "HEAD.lock".to_owned(),
            format!("refs/heads/{branch}.lock"),
            format!("refs/remotes/origin/{branch}.lock"),
        ];
        let locks = names.map(|name| self.private_repo.join(name));
        let is_there = |lock: &&PathBuf| lock.symlink_metadata().is_ok();
        let places = [self.private_repo.clone(), self.grounds.root.to_owned()];
        if locks.iter().any(|lock| is_there(&lock)) && at_work(&places, GitLocks::All) {
            let lock = locks.iter().find(is_there);
            return Err(RepoError::Locked { path: lock.cloned().unwrap_or_default() });
        }
        locks.iter().try_for_each(|lock| state_file::remove(lock))
    }
}

impl Repo<'_> {
    /// Removes the locks that a killed git left in a task's worktree, so that the agent's git works there.
    pub fn clear_worktree_locks(&self, w: &Worktree) -> Result<(), RepoError> {
        let names = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "config.worktree.lock"];
        let own = names.map(|name| w.git_dir.join(name));
        let branch = self.asker.common.join(format!("refs/heads/{}.lock", w.branch));
        own.iter().chain([&branch]).try_for_each(|lock| self.asker.clear_leftover(lock).map(drop))
    }
}

fn at_work(places: &[PathBuf], locks: GitLocks) -> bool {
    let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
    is_git_at_work(&places, locks)
}

/// Returns whether a lock is so young that a git which is not visible from here may hold it.
fn is_young(lock: &Path) -> bool {
    let made = lock.symlink_metadata().and_then(|found| found.modified());
    let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
    age.is_none_or(|age| age < LEFT_AFTER)
}

/// Returns the lock files of a repository. Among objects, only two directories can have them.
fn locks_below(repository: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked = 0;
    let objects = repository.join("objects");
    let mut due = vec![repository.to_owned(), objects.join("info"), objects.join("pack")];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            looked += 1;
            if looked > ENTRIES_MAX {
                return found;
            }
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            if is_directory && path != objects {
                due.push(path);
            } else if !is_directory && (is_lock || path.ends_with("gc.pid")) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}
