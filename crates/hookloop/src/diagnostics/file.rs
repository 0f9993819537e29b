//! The file of the diagnostics: of a limited size, with one older file beside it.
//!
//! Several processes of a project append to the file. Each line is one write.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The file's name in the state directory.
pub(super) const FILE_NAME: &str = "diagnostics.log";
/// The name of the older file.
const OLDER_NAME: &str = "diagnostics.log.1";
/// A file that would become larger is renamed, and takes the place of the older one.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) struct DiagnosticsFile {
    path: PathBuf,
    older: PathBuf,
    max: u64,
    /// Opened by the first line, so that a command without warnings makes no file.
    open: Option<File>,
}

impl DiagnosticsFile {
    pub(super) fn new(directory: &Path) -> DiagnosticsFile {
        let path = directory.join(FILE_NAME);
        DiagnosticsFile { path, older: directory.join(OLDER_NAME), max: FILE_BYTES_MAX, open: None }
    }

    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.current()?;
        self.rotate_before(line.len() as u64)?;
        self.current()?.write_all(line)
    }

    /// Returns the file that has the name now: another process may have renamed the one that is open.
    fn current(&mut self) -> io::Result<&mut File> {
        if let Some(file) = &self.open
            && !is_at(file, &self.path)?
        {
            self.open = None;
        }
        match &mut self.open {
            Some(file) => Ok(file),
            closed => {
                let mut options = File::options();
                // A pipe at this path would block the process.
                let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
                let options = options.create(true).append(true).mode(0o600).custom_flags(flags);
                Ok(closed.insert(options.open(&self.path)?))
            }
        }
    }

    /// Renames a file that has no room for so many more bytes.
    fn rotate_before(&mut self, more: u64) -> io::Result<()> {
        let Some(file) = &self.open else { return Ok(()) };
        if file.metadata()?.len() + more <= self.max {
            return Ok(());
        }
        // The lock is on the full file: of several processes that find it full, one renames it.
        match file.try_lock() {
            Ok(()) => {}
            // Another process renames the file now. This line still goes to it.
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at(file, &self.path)? {
            fs::rename(&self.path, &self.older)?;
        }
        self.open = None;
        Ok(())
    }
}

/// Whether `path` names this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(directory: &Path, max: u64) -> DiagnosticsFile {
        DiagnosticsFile { max, ..DiagnosticsFile::new(directory) }
    }

    #[test]
    fn a_full_log_file_is_rotated_and_replaces_the_older_file() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let mut file = limited(directory.path(), 11);
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        assert_eq!(
            (read(OLDER_NAME), read(FILE_NAME)),
            ("one\ntwo\n".into(), "three\nfour\n".into())
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn processes_that_share_a_file_rotate_it_once() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let mut one = limited(directory.path(), 8);
        let mut other = limited(directory.path(), 8);
        one.append(b"one\n").unwrap();
        other.append(b"two\n").unwrap();
        one.append(b"3\n").unwrap();
        other.append(b"4\n").unwrap();
        assert_eq!((read(OLDER_NAME), read(FILE_NAME)), ("one\ntwo\n".into(), "3\n4\n".into()));
    }

    #[test]
    fn a_lock_of_another_process_does_not_block_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = limited(directory.path(), 4);
        file.append(b"one\n").unwrap();
        let other = File::open(directory.path().join(FILE_NAME)).unwrap();
        other.lock().unwrap();
        file.append(b"two\n").unwrap();
        drop(other);
        file.append(b"3\n").unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((read(OLDER_NAME), read(FILE_NAME)), ("one\ntwo\n".into(), "3\n".into()));
    }

    #[test]
    fn a_pipe_does_not_block_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(limited(directory.path(), 8).append(b"line\n").is_err());
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        std::os::unix::fs::symlink(&target, directory.path().join(FILE_NAME)).unwrap();
        assert!(limited(directory.path(), 8).append(b"line\n").is_err());
        assert!(!target.exists());
    }
}
