//! The directory of a session in the project's state: its lock, its run and its files.
//!
//! A process that runs a session holds a lock beside the session's files. It shows other processes
//! on this machine whether the process is alive. The lock does not make two processes safe. The log
//! does: each start is counted there, and only the last one can store events.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::paths::SESSIONS;
use hookloop_core::id::SessionId;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::try_lock_file;
use rustix::fs::{FlockOperation, flock};

use super::start_error::StartError;

/// The lock file. It holds the id of the process that locked it last.
pub(super) const LOCK: &str = "lock";
/// The number of the session's last start on this machine.
const RUN: &str = "run";
/// The file that requests a stop.
pub(super) const STOP: &str = "stop";
/// The file that marks an ended session.
pub(super) const OVER: &str = "over";
/// Attempts to take a lock that another process may only be probing.
const LOCK_TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Sessions whose transcripts are kept.
const KEPT_MAX: usize = 500;

/// Reports a failure that does not keep the session from continuing.
pub(super) fn report_failure(result: std::io::Result<()>, path: &Path, message: &str) {
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "{message}");
    }
}

/// Removes a file that may not exist.
pub(crate) fn remove_if_there(path: &Path) {
    let removed = fs::remove_file(path);
    let is_absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    if !removed.as_ref().is_err_and(is_absent) {
        report_failure(removed, path, "a file of a session is not removed");
    }
}

/// Returns whether a process on this machine runs the session.
pub fn is_running(runner: &HookRunner, id: &SessionId) -> bool {
    is_held(&directory(runner, id))
}

/// Returns whether a process holds the lock of a session.
///
/// Probes with a shared lock, so concurrent probes do not block each other. The holder's process id
/// stays in the file, because [`lock_of_dead`] needs it.
pub(super) fn is_held(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| {
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

/// Returns the id of the process that holds the lock of a session.
pub(crate) fn holder(directory: &Path) -> Option<u32> {
    let pid = fs::read_to_string(directory.join(LOCK)).ok()?.trim().parse().ok()?;
    is_held(directory).then_some(pid)
}

/// Returns whether the start that the log counts as `run` was on this machine, as far as is known.
///
/// Without a record of a start here it counts as one.
pub(super) fn was_here(directory: &Path, run: u32) -> bool {
    let known = fs::read_to_string(directory.join(RUN)).ok();
    // A process that died before it wrote its start to the log leaves a larger number here.
    known.is_none_or(|known| known.trim().parse::<u32>().is_ok_and(|known| known >= run))
}

/// Records that the session's last start was on this machine.
///
/// A missing record counts as "on this machine".
pub(super) fn be_here(directory: &Path, run: u32) {
    // A stop request was for the previous process, and a session that continues has not ended.
    remove_if_there(&directory.join(STOP));
    remove_if_there(&directory.join(OVER));
    let path = directory.join(RUN);
    report_failure(
        fs::write(&path, run.to_string()),
        &path,
        "the start of a session is not recorded",
    );
}

/// Records that no start of the session was on this machine, unless one is recorded.
///
/// So a take-over that is refused does not make the session one of this machine.
pub(super) fn be_elsewhere(directory: &Path) {
    let path = directory.join(RUN);
    if !path.exists() {
        report_failure(fs::write(&path, "0"), &path, "a session elsewhere is not recorded");
    }
}

pub(crate) fn directory(runner: &ExecContext, id: &SessionId) -> PathBuf {
    runner.state().join(SESSIONS).join(id.as_str())
}

/// Locks the session's directory. Returns none if another process holds the lock.
pub(super) fn lock(
    runner: &HookRunner,
    id: &SessionId,
) -> Result<Option<(PathBuf, File)>, StartError> {
    let directory = directory(runner, id);
    let failed = |source: std::io::Error| StartError::Io { path: directory.clone(), source };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&directory).map_err(failed)?;
    let locked = try_lock_file(&directory.join(LOCK)).map_err(failed)?;
    let Some(file) = locked else { return Ok(None) };
    // The process id is a hint. Without it the holder counts as alive.
    let _ = file.set_len(0).and_then(|()| write!(&file, "{}", std::process::id()));
    Ok(Some((directory, file)))
}

/// Locks the session's directory, with several attempts.
///
/// A probe by another process holds the lock for a moment.
pub(super) fn lock_patiently(
    runner: &HookRunner,
    id: &SessionId,
) -> Result<Option<(PathBuf, File)>, StartError> {
    for _ in 1..LOCK_TRIES {
        if let Some(locked) = lock(runner, id)? {
            return Ok(Some(locked));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    lock(runner, id)
}

/// Locks the directory of a session whose process may have died.
///
/// A child that the process was about to start can hold the lock for a moment longer.
pub(super) fn lock_of_dead(
    runner: &HookRunner,
    id: &SessionId,
) -> Result<Option<(PathBuf, File)>, StartError> {
    let holder = fs::read_to_string(directory(runner, id).join(LOCK)).unwrap_or_default();
    match lock(runner, id)? {
        None if is_gone(&holder) => lock_patiently(runner, id),
        locked => Ok(locked),
    }
}

/// Returns whether no process has this id.
fn is_gone(holder: &str) -> bool {
    let pid = holder.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// Deletes the directories of the oldest ended sessions beyond [`KEPT_MAX`].
pub(super) fn tidy(runner: &HookRunner) {
    let Ok(entries) = fs::read_dir(runner.state().join(SESSIONS)) else { return };
    let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|data| data.modified()).ok();
    let mut all: Vec<_> =
        entries.flatten().filter_map(|entry| Some((modified(&entry)?, entry.path()))).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    for (_, directory) in all.into_iter().skip(KEPT_MAX) {
        // A session that runs or can be resumed keeps its directory.
        if directory.join(OVER).exists() && !is_held(&directory) {
            let removed = fs::remove_dir_all(&directory);
            report_failure(removed, &directory, "the directory of an ended session is not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use hookloop_config::ids::fresh_id;
    use hookloop_hooks::trust::Trust;

    #[test]
    fn a_refused_take_over_is_not_a_start_on_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        be_elsewhere(directory.path());
        assert!(!was_here(directory.path(), 1));
        be_here(directory.path(), 2);
        be_elsewhere(directory.path());
        assert!(was_here(directory.path(), 2));
    }

    /// An open TUI probes the lock again and again.
    #[test]
    fn probing_the_session_lock_does_not_hold_the_lock() {
        let state = tempfile::tempdir().unwrap();
        let place = || state.path().to_owned();
        let trust = Trust::load(state.path()).unwrap();
        let runner = HookRunner::new(ExecContext::new(place(), place(), Vec::new()), trust);
        let id = SessionId::generate(fresh_id());
        drop(lock(&runner, &id).unwrap().unwrap());
        let mut dead = Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        is_running(&runner, &id);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            for _ in 0..300 {
                let lock = directory(&runner, &id).join(LOCK);
                fs::write(lock, dead.id().to_string()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                let had = lock_of_dead(&runner, &id).unwrap().is_some();
                if !had {
                    is_over.store(true, Ordering::SeqCst);
                }
                assert!(had);
            }
            is_over.store(true, Ordering::SeqCst);
        });
    }
}
