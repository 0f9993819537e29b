//! The files of a project when a guest's turn began, in a file beside the session's others: the next visit is often
//! another process, and has to tell which files the turn changed.
//!
//! The record is for names alone. The present content is always read from the files.

use std::fs;
use std::path::Path;

use hookloop_git::files::{Files, SeenFiles};
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};

const NAME: &str = "turn-files.json";
/// A project with more files has no such record.
const FILES_MAX: usize = 50_000;
/// A longer record is not read.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The files when a turn began.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnBaseline {
    /// The turns that had ended then.
    pub(super) turns: u32,
    pub(super) files: SeenFiles,
}

impl TurnBaseline {
    /// Reads the record of a session; none if there is none that can be read.
    pub(super) fn read(directory: &Path) -> Option<TurnBaseline> {
        let unread = |error: &dyn std::fmt::Display| {
            tracing::debug!(directory = %directory.display(), %error, "no record of a turn's files");
        };
        let text = hookloop_git::files::read_text(&directory.join(NAME), BYTES_MAX);
        let text = text.inspect_err(|error| unread(error)).ok()?;
        serde_json::from_str(&text).inspect_err(|error| unread(error)).ok()
    }
}

/// Writes the record of the turn that comes after so many. Without it the changed files have no names.
pub(super) fn write(directory: &Path, turns: u32, files: &Files) {
    let Some(files) = files.seen(FILES_MAX) else { return forget(directory) };
    let Ok(text) = serde_json::to_vec(&TurnBaseline { turns, files }) else { return };
    let path = directory.join(NAME);
    if let Err(error) = write_whole(&path, &text, WriteOptions::CACHE) {
        tracing::warn!(path = %path.display(), %error, "the record of a turn's files is not written");
    }
}

/// Removes the record of a session that is over.
pub(super) fn forget(directory: &Path) {
    let path = directory.join(NAME);
    // Most sessions have none.
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "the record of a turn's files is not removed");
    }
}
