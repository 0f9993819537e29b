//! The lock of a room, which is held while the room is in use.

use std::fs::File;
use std::path::Path;

use hookloop_process::try_lock_file;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tracing::warn;

use crate::repo::{RepoError, state_file};

/// The name of the file in the directory of a room.
pub(super) const LOCK: &str = "lock";

/// A lock that is held until this is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct RoomLock {
    file: File,
}

impl RoomLock {
    /// Takes the lock without waiting; `None` if it is held.
    pub(super) fn take(room: &Path) -> Result<Option<RoomLock>, RepoError> {
        state_file::make_directory(room)?;
        let path = room.join(LOCK);
        let locked = try_lock_file(&path).map_err(RepoError::io(&path))?;
        Ok(locked.map(|file| RoomLock { file }))
    }

    /// Returns whether a process holds the lock. The lock is shared for a moment, so that lists don't disturb each other.
    pub(super) fn is_held(room: &Path) -> Result<bool, RepoError> {
        let path = room.join(LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if state_file::absent(&error) => return Ok(false),
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                drop(RoomLock { file });
                Ok(false)
            }
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(RepoError::io(&path)(errno.into())),
        }
    }
}

impl Drop for RoomLock {
    fn drop(&mut self) {
        // A process that was started at this moment has the file too, until its program runs.
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            warn!(%error, "the lock of a room is released when its file is closed");
        }
    }
}
