//! Opens a file and locks it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Opens a file for reading and writing, and waits until it is locked exclusively.
///
/// A missing file is created with mode 0600. The content stays as it is. Closing the file releases the lock, unless
/// another process has inherited the file.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
    Ok(file)
}

/// Opens and locks a file as [`lock_file`] does, without waiting. Returns `None` if it is locked already.
pub fn try_lock_file(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_locked_file_is_private_and_is_refused_until_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = lock_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(try_lock_file(&path).unwrap().is_none());
        drop(held);
        let held = try_lock_file(&path).unwrap();
        assert!(held.is_some());
        assert!(try_lock_file(&path).unwrap().is_none());
    }

    #[test]
    fn locking_a_file_keeps_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "holder").unwrap();
        drop(lock_file(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "holder");
        assert!(lock_file(&directory.path().join("missing/lock")).is_err());
    }
}
