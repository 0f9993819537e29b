//! The directory that a session changes: one session at a time in a checkout, or a worktree of the
//! session's own.
//!
//! Two sessions in one checkout would take each other's changes for their own. The lock of a
//! checkout is a file lock of the system, so it ends with the process that holds it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::clock::now;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::session::SessionWork;
use hookloop_core::session::plan::SessionPlan;
use hookloop_core::time::Timestamp;
use hookloop_git::files;
use hookloop_git::repo::{BranchFate, Repo, RepoError, RepoOptions, UnsavedWork, WorktreeRemoval};
use hookloop_git::snapshot::unfinished_restore;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;
use rustix::fs::{FlockOperation, flock};

use super::checkout_holder::CheckoutHolder;
use super::start_error::StartError;
use crate::delivery_context::repo_place;
use crate::project::Project;

/// The lock of the checkout, in the directory of the project's state.
const LOCK: &str = "checkout.lock";
/// The file in a session's directory that names the session's worktree.
const WORKTREE: &str = "worktree";
/// The first part of the name that a session's worktree has among those of tasks.
const WORKTREE_NAME: &str = "session-";
/// How often the lock is tried. A child of a killed process may hold it for a moment.
const LOCK_TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Bytes of the lock file that are read.
const HOLDER_BYTES_MAX: u64 = 1_024;

/// The directory that a new session changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CheckoutUse {
    /// The project's directory, unless another session runs there.
    #[default]
    Alone,
    /// The project's directory, even beside another session.
    Shared,
    /// A worktree of the session's own.
    Worktree(PathBuf),
}

/// Whether a session changes the project's directory itself.
fn works_in_checkout(plan: &SessionPlan) -> bool {
    let is_review = matches!(plan.work, SessionWork::Review(_));
    !is_review && !plan.delivers && plan.worker.is_none() && !plan.is_external()
}

/// Locks the checkout for a session, if the session changes it.
pub(super) fn hold(
    runner: &HookRunner,
    id: &SessionId,
    plan: &SessionPlan,
    use_of: &CheckoutUse,
) -> Result<Option<File>, StartError> {
    if !works_in_checkout(plan) || matches!(use_of, CheckoutUse::Worktree(_)) {
        return Ok(None);
    }
    if let Some(file) = files::own_output(runner.home()) {
        return Err(StartError::OutputInCheckout(file));
    }
    let (file, is_alone) = try_hold(runner, id.as_str())?;
    if let Some(label) = unfinished_restore(runner.state()) {
        return Err(StartError::RestoreUnfinished(label));
    }
    if is_alone {
        return Ok(Some(file));
    }
    if *use_of == CheckoutUse::Shared {
        return Ok(None);
    }
    Err(StartError::CheckoutBusy(Box::new(holder(runner.home(), &file))))
}

/// Locks the checkout for a change of its files outside of a session.
pub(super) fn hold_alone(runner: &HookRunner, holder_name: &str) -> Result<File, StartError> {
    match try_hold(runner, holder_name)? {
        (file, true) => Ok(file),
        (file, false) => Err(StartError::CheckoutBusy(Box::new(holder(runner.home(), &file)))),
    }
}

/// Opens the lock file of the checkout. Returns it with whether the lock is held now.
fn try_hold(runner: &HookRunner, id: &str) -> Result<(File, bool), StartError> {
    let path = runner.state().join(LOCK);
    let failed = |source: std::io::Error| StartError::Io { path: path.clone(), source };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let mut file = options.open(&path).map_err(failed)?;
    for attempt in 1..=LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // The content only serves error messages. The lock is held even if it cannot be
                // written.
                let since = now();
                let _ = file
                    .set_len(0)
                    .and_then(|()| write!(file, "{id} {} {}", std::process::id(), since.0));
                return Ok((file, true));
            }
            Err(rustix::io::Errno::WOULDBLOCK) if attempt < LOCK_TRIES => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Ok((file, false))
}

pub(super) fn holder(directory: &Path, lock: &File) -> CheckoutHolder {
    let mut text = String::new();
    // If the lock cannot be read, its holder has no name.
    let _ = lock.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    let mut parts = text.split(' ');
    let session = parts.next().filter(|session| !session.is_empty()).map(str::to_owned);
    let pid = parts.next().and_then(|pid| pid.parse().ok());
    let since = parts.next().and_then(|since| since.trim().parse().ok()).map(Timestamp);
    CheckoutHolder { directory: directory.to_owned(), session, pid, since }
}

/// The worktree of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionWorktree {
    /// The root of the worktree.
    pub path: PathBuf,
    /// The project's directory in the worktree.
    pub project: PathBuf,
    pub branch: String,
    /// The name of the worktree in `hookloop worktrees`.
    pub name: String,
    /// The branch on which the worktree is based.
    pub base: String,
}

/// Returns the repository settings for the worktrees of a project.
pub(crate) fn repo_wish(rules: &EffectiveConfig) -> RepoOptions {
    let rules = rules.delivery.clone().unwrap_or_default();
    RepoOptions {
        base: rules.base,
        remote: rules.remote,
        prefix: rules.branch_prefix,
        copy: rules.copy,
    }
}

/// Returns the name of a session's worktree among those of tasks.
fn worktree_name(id: &SessionId) -> Result<TaskId, RepoError> {
    let name = format!("{WORKTREE_NAME}{id}");
    name.parse().map_err(|_| RepoError::Permanent { why: format!("`{name}` is no name") })
}

/// Whether a worktree belongs to a session, and not to a task.
pub fn is_of_session(name: &TaskId) -> bool {
    session_of_worktree(name).is_some()
}

/// Returns the session of the worktree with this name, or none for the worktree of a task.
pub fn session_of_worktree(name: &TaskId) -> Option<&str> {
    name.as_str().strip_prefix(WORKTREE_NAME)
}

/// Creates the worktree of a session, or finds it again.
pub fn worktree(
    project: &Project,
    runner: &HookRunner,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<SessionWorktree, RepoError> {
    let repo = Repo::at(repo_place(runner), repo_wish(project.rules()), cancel)?;
    let name = worktree_name(id)?;
    let made = repo.worktree(&name)?;
    Ok(SessionWorktree {
        path: made.path,
        project: made.project,
        branch: made.branch,
        name: name.to_string(),
        base: repo.target().branch.clone(),
    })
}

/// Removes the worktree of a session that did not begin.
pub fn remove_worktree(
    project: &Project,
    runner: &HookRunner,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<(), RepoError> {
    let repo = Repo::at(repo_place(runner), repo_wish(project.rules()), cancel)?;
    let unsaved = UnsavedWork::Stays { delivered: None };
    let removal = WorktreeRemoval { branch: BranchFate::Deleted, unsaved };
    repo.remove_worktree(&worktree_name(id)?, &removal).map(drop)
}

/// Records the worktree of a session in the session's directory.
pub(super) fn note_worktree(directory: &Path, use_of: &CheckoutUse) -> Result<(), StartError> {
    let CheckoutUse::Worktree(path) = use_of else { return Ok(()) };
    let note = directory.join(WORKTREE);
    let bytes = path.as_os_str().as_encoded_bytes();
    fs::write(&note, bytes).map_err(|source| StartError::Io { path: note, source })
}

/// Whether a session has its own worktree.
pub(super) fn has_worktree(directory: &Path) -> bool {
    directory.join(WORKTREE).exists()
}
