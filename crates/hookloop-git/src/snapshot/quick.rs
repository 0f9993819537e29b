//! A snapshot of few changed files, without a new index.
//!
//! The index stays as it was at the last full snapshot, and one process builds the tree from the tree of that
//! snapshot and the changed files. In a large repository, writing the index takes as long as looking for changes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::commands::ReadableObjects;
use super::place::SnapshotPlace;
use super::quick_state::{QuickState, QuickTree, seen};
use super::record;
use super::status::{StatusChanges, paths};
use crate::repo::{RepoError, state_file};

/// The most changed files.
const FILES_MAX: usize = 200;
/// The most bytes of changed files.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

impl SnapshotPlace<'_> {
    /// Stores the exact content of all files; `None` if too much changed.
    pub(super) fn quick_tree(
        &mut self,
        changes: &StatusChanges,
        message: &str,
    ) -> Result<Option<QuickTree>, RepoError> {
        let Some(quick) = &self.state.quick else { return Ok(None) };
        let count = paths(&changes.present).chain(paths(&changes.absent)).count();
        if self.state.has_filter || count > FILES_MAX || changes.bytes > BYTES_MAX {
            return Ok(None);
        }
        let seen = seen(&self.top, changes);
        if seen.is_some() && seen == quick.seen {
            return Ok(Some(QuickTree::Same));
        }
        let Some(input) = input(&self.top, changes, &quick.base, message)? else { return Ok(None) };
        let args = ["fast-import", "--quiet", "--force"];
        let said = self.exact(ReadableObjects::Own, &args, input)?;
        let said = String::from_utf8_lossy(&said);
        let unread = || RepoError::permanent(format!("git fast-import answers `{said}`"));
        let mut lines = said.lines();
        let commit = lines.next().and_then(|line| line.parse().ok()).ok_or_else(unread)?;
        let exact =
            lines.next().and_then(|line| line.split([' ', '\t']).nth(2)).ok_or_else(unread)?;
        let (base, exact) = (quick.base.clone(), exact.to_owned());
        self.state.quick = Some(QuickState { seen, base });
        Ok(Some(QuickTree::New { exact, commit }))
    }
}

/// Returns the commands that store the changed files and the commit of the snapshot; `None` if a file vanished.
fn input(
    top: &Path,
    changes: &StatusChanges,
    base: &str,
    message: &str,
) -> Result<Option<Vec<u8>>, RepoError> {
    let message = format!("{message}\n");
    let (by, length) = (record::BY, message.len());
    let mut input = format!(
        "commit refs/quick\nmark :1\ncommitter {by}\ndata {length}\n{message}M 040000 {base} \"\"\n"
    )
    .into_bytes();
    for path in paths(&changes.absent) {
        input.extend_from_slice(b"D ");
        push_quoted(&mut input, path);
        input.push(b'\n');
    }
    for path in paths(&changes.present) {
        let file = top.join(OsStr::from_bytes(path));
        let Some((mode, content)) = read(&file)? else { return Ok(None) };
        input.extend_from_slice(format!("M {mode} inline ").as_bytes());
        push_quoted(&mut input, path);
        input.extend_from_slice(format!("\ndata {}\n", content.len()).as_bytes());
        input.extend_from_slice(&content);
        input.push(b'\n');
    }
    input.extend_from_slice(b"get-mark :1\nls :1 \"\"\n");
    Ok(Some(input))
}

/// Returns the mode and the content of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<(&'static str, Vec<u8>)>, RepoError> {
    let gone = |error: std::io::Error| match state_file::absent(&error) {
        true => Ok(None),
        false => Err(RepoError::io(path)(error)),
    };
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) => return gone(error),
    };
    if found.is_symlink() {
        return match fs::read_link(path) {
            Ok(target) => Ok(Some(("120000", target.into_os_string().into_encoded_bytes()))),
            Err(error) => gone(error),
        };
    }
    if !found.is_file() || found.len() > BYTES_MAX {
        return Ok(None);
    }
    let mode = if found.mode() & 0o100 == 0 { "100644" } else { "100755" };
    match fs::read(path) {
        Ok(content) => Ok(Some((mode, content))),
        Err(error) => gone(error),
    }
}

/// Appends a path in double quotes, with every unusual byte as three octal digits.
pub(super) fn push_quoted(input: &mut Vec<u8>, path: &[u8]) {
    input.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => {
                input.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => input.push(*byte),
        }
    }
    input.push(b'"');
}
