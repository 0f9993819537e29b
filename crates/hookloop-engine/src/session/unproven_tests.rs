//! Tests that turns changed and that no gate has proven since, with their state before.
//!
//! A session that was refused leaves its changes in the working directory. They must not become the base of the next
//! session. An entry ends when gates pass together with the tests of the base, when the file gets another state, or when
//! a person commits the change.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::digest::sha256_hex;
use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::{FileChange, FileState, Snapshots, TreeEdit};
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};

/// Maximum entries of a working directory.
const ENTRIES_MAX: usize = 20_000;
/// Maximum size of the file.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file that a turn changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnprovenTest {
    path: String,
    /// The state after the turn; none if the file is gone.
    left: Option<FileState>,
    /// The state in the base.
    base: Option<FileState>,
    /// Whether the commit that was checked out after the turn has the state, too.
    in_head: bool,
}

/// The entries of one working directory.
#[derive(Debug)]
pub(crate) struct UnprovenTests {
    path: PathBuf,
}

impl UnprovenTests {
    pub(crate) fn of(state: &Path, root: &Path) -> UnprovenTests {
        let name = sha256_hex(root.as_os_str().as_encoded_bytes());
        UnprovenTests { path: state.join(format!("unproven-tests-{}.json", &name[..16])) }
    }

    /// Returns the edits that give the files of a tree the state before unproven changes.
    ///
    /// `head` is the commit that is checked out.
    pub(crate) fn edits(
        &self,
        snapshots: &Snapshots,
        tree: &str,
        head: Option<&str>,
    ) -> Result<Vec<(Vec<u8>, TreeEdit)>, String> {
        let unknown = self.unknown_path();
        if unknown.exists() {
            let path = unknown.display();
            return Err(format!(
                "the tests that an earlier session left are not recorded. Look at them, then delete {path}"
            ));
        }
        let entries = self.read()?;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let text = |error: RepoError| error.to_string();
        let now = snapshots.file_states(tree).map_err(text)?;
        let committed = head.map(|head| snapshots.file_states(head)).transpose().map_err(text)?;
        let state = |files: &BTreeMap<Vec<u8>, FileState>, entry: &UnprovenTest| {
            files.get(entry.path.as_bytes()).cloned()
        };
        let is_due = |entry: &UnprovenTest| {
            let is_committed =
                committed.as_ref().is_some_and(|files| state(files, entry) == entry.left);
            state(&now, entry) == entry.left && (entry.in_head || !is_committed)
        };
        let due = entries.into_iter().filter(is_due);
        Ok(due
            .map(|entry| {
                let edit = entry.base.map_or(TreeEdit::Remove, TreeEdit::State);
                (entry.path.into_bytes(), edit)
            })
            .collect())
    }

    /// Records the files that differ from the base after a turn.
    pub(crate) fn note(
        &self,
        snapshots: &Snapshots,
        changes: Vec<FileChange>,
        head: Option<&str>,
    ) -> Result<(), String> {
        if changes.is_empty() {
            return self.clear();
        }
        let committed = head.map(|head| snapshots.file_states(head)).transpose();
        let committed = committed.map_err(|error| error.to_string())?.unwrap_or_default();
        if changes.len() > ENTRIES_MAX {
            return Err(format!("the work changed more than {ENTRIES_MAX} files with tests"));
        }
        let entries: Vec<UnprovenTest> = changes
            .into_iter()
            .map(|change| UnprovenTest {
                in_head: committed.get(&change.path) == change.to.as_ref(),
                path: String::from_utf8_lossy(&change.path).into_owned(),
                left: change.to,
                base: change.from,
            })
            .collect();
        let text = serde_json::to_vec(&entries).map_err(|error| error.to_string())?;
        write_whole(&self.path, &text, WriteOptions::DURABLE)
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Returns the start of the first session since gates passed last. The first call records it.
    pub(crate) fn first_start(&self, started: SystemTime) -> Result<SystemTime, String> {
        let path = self.start_path();
        let unread = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        match std::fs::read_to_string(&path) {
            Ok(nanos) => {
                let nanos: u64 = nanos.trim().parse().map_err(|error| unread(&error))?;
                Ok(started.min(UNIX_EPOCH + Duration::from_nanos(nanos)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let nanos = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
                write_whole(&path, nanos.to_string().as_bytes(), WriteOptions::DURABLE)
                    .map_err(|error| unread(&error))?;
                Ok(started)
            }
            Err(error) => Err(unread(&error)),
        }
    }

    /// Returns the files at the start of the first session since gates passed last; none if they are not recorded.
    pub(crate) fn first_tree(&self) -> Result<Option<String>, String> {
        let path = self.tree_path();
        match std::fs::read_to_string(&path) {
            Ok(tree) => Ok(Some(tree)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    pub(crate) fn note_first_tree(&self, tree: &str) -> Result<(), String> {
        let path = self.tree_path();
        write_whole(&path, tree.as_bytes(), WriteOptions::DURABLE)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Records that the tests after a turn are unknown. Until a person looked at them, no session has a base.
    pub(crate) fn note_unknown(&self, why: &str) -> Result<(), String> {
        let path = self.unknown_path();
        write_whole(&path, why.as_bytes(), WriteOptions::DURABLE)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    fn unknown_path(&self) -> PathBuf {
        self.path.with_extension("unknown")
    }

    fn start_path(&self) -> PathBuf {
        self.path.with_extension("start")
    }

    fn tree_path(&self) -> PathBuf {
        self.path.with_extension("tree")
    }

    /// Forgets everything: gates passed together with the tests of the base.
    pub(crate) fn forget(&self) -> Result<(), String> {
        self.clear()?;
        remove(&self.unknown_path())?;
        remove(&self.tree_path())?;
        remove(&self.start_path())
    }

    /// Forgets the start of the first session: gates passed on its work.
    pub(crate) fn forget_first_tree(&self) -> Result<(), String> {
        remove(&self.tree_path())
    }

    /// Removes all entries: the tests are those of the base.
    fn clear(&self) -> Result<(), String> {
        remove(&self.path)
    }

    fn read(&self) -> Result<Vec<UnprovenTest>, String> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let unread = |why: String| format!("{}: {why}", self.path.display());
        let text = hookloop_git::files::read_text(&self.path, BYTES_MAX).map_err(unread)?;
        serde_json::from_str(&text).map_err(|error| unread(error.to_string()))
    }
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
