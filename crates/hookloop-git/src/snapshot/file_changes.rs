//! The files that differ between two snapshots.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Snapshots;
use super::nested::GITLINK;
use super::record::{Snapshot, unhex};
use super::status::paths;
use crate::repo::{CommitId, RepoError};

/// Git's mode of a symbolic link.
const LINK: &str = "120000";

/// The state of a file: git's mode of it, and the object with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub mode: String,
    pub object: String,
}

impl FileState {
    pub fn is_link(&self) -> bool {
        self.mode == LINK
    }
}

/// A path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPath {
    /// The path from the top of the working directory.
    pub path: String,
    /// Whether the first tree does not have it.
    pub is_new: bool,
}

/// A file that differs. A state is none where the file does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path from the top of the working directory.
    pub path: Vec<u8>,
    pub from: Option<FileState>,
    pub to: Option<FileState>,
}

impl Snapshots {
    /// Returns the paths that differ between two trees.
    pub fn changed_paths(&self, from: &str, to: &str) -> Result<Vec<ChangedPath>, RepoError> {
        if from == to {
            return Ok(Vec::new());
        }
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", from, to];
        let output = self.store(&args)?;
        let mut parts = paths(&output);
        let mut found = Vec::new();
        while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
            let path = String::from_utf8_lossy(path).into_owned();
            found.push(ChangedPath { path, is_new: status == b"A" });
        }
        Ok(found)
    }

    /// Returns the files that differ, including those of nested repositories.
    pub fn file_changes(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<FileChange>, RepoError> {
        let mut found = Vec::new();
        self.add_changes(&[], Some(from), Some(to), &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn add_changes(
        &self,
        prefix: &[u8],
        from: Option<&Snapshot>,
        to: Option<&Snapshot>,
        found: &mut Vec<FileChange>,
    ) -> Result<(), RepoError> {
        if from.map(|from| &from.id) == to.map(|to| &to.id) {
            return Ok(());
        }
        let empty = || self.store_text(&["hash-object", "-t", "tree", "-w", "--stdin"]);
        let tree = |side: Option<&Snapshot>| side.map_or_else(empty, |side| Ok(side.exact.clone()));
        let (old, new) = (tree(from)?, tree(to)?);
        let changes = self.tree_changes(&old, &new)?;
        let below =
            |change: FileChange| FileChange { path: [prefix, &change.path].concat(), ..change };
        found.extend(changes.into_iter().map(below));
        let nested = |side: Option<&Snapshot>| -> BTreeMap<String, CommitId> {
            let all = side.into_iter().flat_map(|side| &side.nested);
            all.map(|nested| (nested.path.clone(), nested.id.clone())).collect()
        };
        let (old, new) = (nested(from), nested(to));
        for path in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (old.get(path), new.get(path));
            if old == new {
                continue;
            }
            let read = |id: Option<&CommitId>| id.map(|id| self.read(id.clone())).transpose();
            let prefix = [prefix, &unhex(path)?, b"/"].concat();
            self.add_changes(&prefix, read(old)?.as_ref(), read(new)?.as_ref(), found)?;
        }
        Ok(())
    }
}

/// Returns the state of a file; `None` where there is none. A nested repository is no file.
pub(super) fn state(mode: &str, object: &str) -> Option<FileState> {
    let is_file = mode != "000000" && mode != GITLINK;
    is_file.then(|| FileState { mode: mode.to_owned(), object: object.to_owned() })
}
