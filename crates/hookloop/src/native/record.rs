//! The record of installations in the user's state directory; removal uses it, and works without it.
//!
//! Of a file there are only digests and places, not a byte of it: settings may hold secrets, and a copy would outlive
//! them.

use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hookloop_core::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::file::{self, FileError};

const FILE_NAME: &str = "installed.json";
/// With more files, the oldest records are dropped.
const FILES_MAX: usize = 1000;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct InstallRecords {
    files: Vec<InstallRecord>,
}

/// The change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InstallRecord {
    pub(crate) path: PathBuf,
    /// Of the file as it was left.
    pub(crate) digest: String,
    /// The inserted text.
    pub(crate) inserted: Vec<Range<usize>>,
    /// Whether the file was made.
    pub(crate) created: bool,
    /// Directories that were made for it, outermost first.
    pub(crate) directories: Vec<PathBuf>,
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    sha256_hex(bytes)
}

impl InstallRecords {
    /// Loads the records; an unreadable file counts as empty, since removal works without records.
    pub(crate) fn load(state_home: &Path) -> InstallRecords {
        let path = state_home.join(FILE_NAME);
        let unread = |error: &FileError| {
            tracing::warn!(path = %path.display(), %error, "the records of installations are unread");
        };
        let text = file::read(&path).inspect_err(unread).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Returns the record of a file that has not changed since.
    pub(crate) fn of(&self, path: &Path, bytes: &[u8]) -> Option<&InstallRecord> {
        let found = self.files.iter().find(|record| record.path == path)?;
        (found.digest == digest(bytes)).then_some(found)
    }

    /// The directories that were made for a file.
    pub(crate) fn directories(&self, path: &Path) -> Vec<PathBuf> {
        let found = self.files.iter().find(|record| record.path == path);
        found.map(|record| record.directories.clone()).unwrap_or_default()
    }

    /// Replaces the record of a file.
    pub(crate) fn put(&mut self, mut record: InstallRecord) {
        let before = self.directories(&record.path);
        record.directories = before.into_iter().chain(record.directories).collect();
        self.forget(&record.path);
        self.files.push(record);
        let excess = self.files.len().saturating_sub(FILES_MAX);
        self.files.drain(..excess);
    }

    pub(crate) fn forget(&mut self, path: &Path) {
        self.files.retain(|record| record.path != path);
    }

    pub(crate) fn store(&self, state_home: &Path) -> Result<(), FileError> {
        let path = state_home.join(FILE_NAME);
        let failed = |source| FileError::Io { path: path.clone(), source };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(state_home).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let before = file::read(&path)?;
        file::replace(&path, before.as_deref(), Some(&text)).map(drop)
    }
}
