//! The lock of the store: processes that take snapshots share it, and the removal of objects holds it alone.
//!
//! Git does not write a tree again that the store has, and leaves no trace of that. So no snapshot is taken while
//! objects are chosen and deleted. The locks of working directories would not do: a new one has none yet, and a process
//! that waits for several of them can block another one for ever.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::commands::SnapshotCommands;
use crate::repo::RepoError;

const LOCK: &str = "gc.lock";
/// The pause between two tries to get the lock.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest time that a snapshot waits for a removal.
const SHARED_MAX: Duration = Duration::from_secs(1_800);
/// The longest time that a removal waits for snapshots.
const ALONE_MAX: Duration = Duration::from_secs(60);

/// A lock that is held until this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Waits until no process removes objects.
    pub(crate) fn shared(commands: &SnapshotCommands) -> Result<StoreLock, RepoError> {
        StoreLock::wait(commands, FlockOperation::NonBlockingLockShared, SHARED_MAX)
    }

    /// Waits until no process takes a snapshot.
    pub(super) fn alone(commands: &SnapshotCommands) -> Result<StoreLock, RepoError> {
        StoreLock::wait(commands, FlockOperation::NonBlockingLockExclusive, ALONE_MAX)
    }

    fn wait(
        commands: &SnapshotCommands,
        operation: FlockOperation,
        limit: Duration,
    ) -> Result<StoreLock, RepoError> {
        let path = commands.store.join(LOCK);
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(&path).map_err(RepoError::io(&path))?;
        let began = Instant::now();
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(StoreLock { _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(RepoError::io(&path)(errno.into())),
            }
            if commands.cancel.wait(PAUSE) {
                return Err(RepoError::Cancelled);
            }
            if began.elapsed() > limit {
                let why = format!(
                    "{}: other programs took or removed snapshots for {} s: try again later",
                    path.display(),
                    limit.as_secs()
                );
                return Err(RepoError::Retry { why });
            }
        }
    }
}
