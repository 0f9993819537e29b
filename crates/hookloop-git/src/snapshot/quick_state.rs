//! The knowledge about changed files that lets a snapshot be quick.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::digest::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::status::{StatusChanges, paths};
use crate::repo::CommitId;

/// A file that was written so shortly before a snapshot is read again for the next one: its time may not change.
const RACY: Duration = Duration::from_millis(100);

/// The changed files of the last quick snapshot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct QuickState {
    /// A digest of the names and times of the changed files; none if they may change unnoticed.
    pub(super) seen: Option<String>,
    /// The exact tree of the last full snapshot.
    pub(super) base: String,
}

impl QuickState {
    /// The state after a full snapshot: no file differs from the index.
    pub(super) fn new(base: &str) -> QuickState {
        let seen = seen(Path::new(""), &StatusChanges::default());
        QuickState { seen, base: base.to_owned() }
    }
}

/// The exact content of all files, as one process stored it.
#[derive(Debug)]
pub(super) enum QuickTree {
    /// It is that of the last snapshot.
    Same,
    New {
        exact: String,
        commit: CommitId,
    },
}

/// Returns a digest of the names and times of changed files; `None` if one was written just now.
pub(super) fn seen(top: &Path, changes: &StatusChanges) -> Option<String> {
    let mut hash = Sha256::new();
    hash.update(&changes.absent);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for path in paths(&changes.present) {
        let found = top.join(OsStr::from_bytes(path)).symlink_metadata().ok()?;
        let changed = Duration::from_secs(u64::try_from(found.ctime()).ok()?)
            + Duration::from_nanos(u64::try_from(found.ctime_nsec()).ok()?);
        if changed + RACY > now {
            return None;
        }
        hash.update(path);
        for value in [found.ino(), found.size(), u64::from(found.mode()), found.dev()] {
            hash.update(value.to_le_bytes());
        }
        for value in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
            hash.update(value.to_le_bytes());
        }
    }
    Some(hex(&hash.finalize()))
}
