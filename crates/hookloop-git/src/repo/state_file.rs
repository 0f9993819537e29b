//! Small state files of worktrees and repositories, written whole or not at all.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hookloop_process::{Cancel, WriteOptions, try_lock_file, write_whole};

use super::error::RepoError;

/// The most that is read of a file that another program may have written.
const READ_MAX: u64 = 1024 * 1024;
/// The pause between two tries to get a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// The longest time that work under a lock may take.
const LOCK_MAX: Duration = Duration::from_secs(1800);

/// Creates a directory that only this user can read.
pub(crate) fn make_directory(path: &Path) -> Result<(), RepoError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(RepoError::io(path))
}

/// Writes a file durably: after a crash it has the new content or the old.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), RepoError> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_directory(directory)?;
    write_whole(path, bytes, WriteOptions::DURABLE).map_err(RepoError::io(path))
}

/// Returns the content of a file; `None` if there is none. Links and pipes are refused.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, RepoError> {
    match fs::symlink_metadata(path) {
        Err(error) if absent(&error) => return Ok(None),
        Err(error) => return Err(RepoError::io(path)(error)),
        Ok(found) if !found.is_file() || found.len() > READ_MAX => {
            let why = format!("{} is not a small file", path.display());
            return Err(RepoError::permanent(why));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(RepoError::io(path))?;
    file.take(READ_MAX).read_to_end(&mut bytes).map_err(RepoError::io(path))?;
    Ok(Some(bytes))
}

/// Returns the content of a file as text, without trailing whitespace.
pub(crate) fn read_line(path: &Path) -> Result<Option<String>, RepoError> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
    Ok(read(path)?.map(text))
}

pub(crate) fn remove(path: &Path) -> Result<(), RepoError> {
    match fs::remove_file(path) {
        Err(error) if !absent(&error) => Err(RepoError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Removes a directory with its content. Links are removed, not followed.
pub(crate) fn remove_all(path: &Path) -> Result<(), RepoError> {
    let removed = match fs::remove_dir_all(path) {
        // Tests may leave directories without write permission, even for their owner.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    };
    match removed {
        Err(error) if !absent(&error) => Err(RepoError::io(path)(error)),
        _ => Ok(()),
    }
}

/// As far as that can be done: the removal that follows reports a directory that can't be changed.
fn make_writable(top: &Path) {
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        left.extend(entries.filter(is_directory).map(|entry| entry.path()));
    }
}

pub(crate) fn absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A lock that is held until this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct HeldLock {
    _file: File,
}

impl HeldLock {
    pub(crate) fn wait(path: &Path, cancel: &Cancel) -> Result<HeldLock, RepoError> {
        let began = Instant::now();
        loop {
            if let Some(held) = HeldLock::now(path)? {
                return Ok(held);
            }
            if cancel.wait(LOCK_PAUSE) {
                return Err(RepoError::Cancelled);
            }
            if began.elapsed() > LOCK_MAX {
                let why = format!("{} is held by another program", path.display());
                return Err(RepoError::Retry { why });
            }
        }
    }

    /// Takes the lock without waiting; `None` if another process holds it.
    pub(crate) fn now(path: &Path) -> Result<Option<HeldLock>, RepoError> {
        let directory: PathBuf = path.parent().unwrap_or(Path::new("/")).to_owned();
        make_directory(&directory)?;
        let locked = try_lock_file(path).map_err(RepoError::io(path))?;
        Ok(locked.map(|file| HeldLock { _file: file }))
    }
}
