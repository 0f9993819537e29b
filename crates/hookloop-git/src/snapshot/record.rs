//! A snapshot as a commit of hookloop's own: its tree has the exact content of the files, its message the rest.
//!
//! The commit has no date, so the same files have the same snapshot.

use hookloop_core::digest::hex;
use serde::{Deserialize, Serialize};

use crate::repo::{CommitId, RepoError};

/// The state of all files of a working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The name of the snapshot in hookloop's store.
    pub id: CommitId,
    /// The tree that a commit of all files would have.
    pub tree: String,
    /// The tree with the exact content of all files.
    pub exact: String,
    /// The working directory, in hexadecimal digits: names need not be text.
    pub top: String,
    /// The commit that was checked out.
    pub head: Option<CommitId>,
    /// The repositories below the working directory.
    pub nested: Vec<NestedSnapshot>,
}

/// The state of a repository within a working directory, or of its `.git` directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedSnapshot {
    /// The directory, relative to the working directory, in hexadecimal digits.
    pub path: String,
    pub id: CommitId,
}

/// The message of the commit.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SnapshotMessage {
    /// The tree of a commit; none if it is the exact one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    pub top: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The commit of the user's repository that has the content of unchanged files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<NestedSnapshot>,
}

impl NestedSnapshot {
    pub(super) fn new(path: &[u8], id: CommitId) -> NestedSnapshot {
        NestedSnapshot { path: hex(path), id }
    }
}

/// Returns the bytes of hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Result<Vec<u8>, RepoError> {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| RepoError::permanent(format!("`{digits}` is no path")))
}

/// The author of every snapshot, without a date.
pub(super) const BY: &str = "hookloop <hookloop@localhost> 0 +0000";

/// Returns the text of a commit object without a date.
pub(super) fn commit_text(tree: &str, parents: &[&CommitId], message: &str) -> Vec<u8> {
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    text.push_str(&format!("author {BY}\ncommitter {BY}\n\n{message}\n"));
    text.into_bytes()
}

/// Returns a snapshot from the text of its commit.
pub(super) fn read_commit(id: CommitId, text: &[u8]) -> Result<Snapshot, RepoError> {
    let unread = || RepoError::permanent(format!("{id} is not a snapshot"));
    let text = std::str::from_utf8(text).map_err(|_| unread())?;
    let (head, message) = text.split_once("\n\n").ok_or_else(unread)?;
    let exact = head.lines().find_map(|line| line.strip_prefix("tree ")).ok_or_else(unread)?;
    let exact = exact.to_owned();
    let SnapshotMessage { tree, top, head, base: _, nested } =
        serde_json::from_str(message).map_err(|_| unread())?;
    let tree = tree.unwrap_or_else(|| exact.clone());
    Ok(Snapshot { id, tree, exact, top, head, nested })
}
