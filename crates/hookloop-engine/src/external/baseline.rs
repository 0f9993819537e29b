//! The files of a project at the start of an external turn, in `turn-files.json` beside the session's other files.
//!
//! The next call often comes from another process, which needs the record to name the changed files. The present
//! content is always read from the files, and no verdict reads the record.

use std::path::Path;

use hookloop_git::files::{SeenFiles, WatchedFiles};
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};

use crate::session::session_directory;

const NAME: &str = "turn-files.json";
/// Maximum files of a record. A project with more files has none.
const FILES_MAX: usize = 50_000;
/// Maximum size of a record that is read.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The files of a project when a turn began.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnBaseline {
    /// The number of turns that had ended then.
    pub(super) turns: u32,
    pub(super) files: SeenFiles,
}

impl TurnBaseline {
    /// Reads the record of a session. Returns none if it is missing or unreadable.
    pub(super) fn read(directory: &Path) -> Option<TurnBaseline> {
        let unread = |error: &dyn std::fmt::Display| {
            tracing::debug!(directory = %directory.display(), %error, "no record of a turn's files");
        };
        let text = hookloop_git::files::read_text(&directory.join(NAME), BYTES_MAX);
        let text = text.inspect_err(|error| unread(error)).ok()?;
        serde_json::from_str(&text).inspect_err(|error| unread(error)).ok()
    }
}

/// Writes the record of the turn after `turns`. Without it the names of changed files are unknown.
pub(super) fn write(directory: &Path, turns: u32, files: &WatchedFiles) {
    let Some(files) = files.seen(FILES_MAX) else { return forget(directory) };
    let Ok(text) = serde_json::to_vec(&TurnBaseline { turns, files }) else { return };
    let path = directory.join(NAME);
    if let Err(error) = write_whole(&path, &text, WriteOptions::CACHE) {
        tracing::warn!(path = %path.display(), %error, "the record of a turn's files is not written");
    }
}

/// Removes the record of an ended session.
pub(super) fn forget(directory: &Path) {
    // Most sessions have none.
    session_directory::remove_if_there(&directory.join(NAME));
}
