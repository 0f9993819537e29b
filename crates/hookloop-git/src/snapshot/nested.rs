//! Repositories within a working directory: submodules by their commit, and the files of each.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hookloop_core::digest::hex;

use super::commands::ReadableObjects;
use super::place::SnapshotPlace;
use super::record::{NestedSnapshot, Snapshot, unhex};
use super::status::{paths, push};
use crate::git::paths::TAKE_OUT;
use crate::repo::{FoundRepository, RepoError};

/// The most repositories within a working directory.
const NESTED_MAX: usize = 256;
/// Mode of a nested repository in a tree.
pub(super) const GITLINK: &str = "160000";

impl SnapshotPlace<'_> {
    /// Returns the nested repositories that the index has, with their commits.
    pub(super) fn list_gitlinks(&self) -> Result<BTreeMap<String, String>, RepoError> {
        let list = self.exact(ReadableObjects::Own, &["ls-files", "-s", "-z"], Vec::new())?;
        let mut found = BTreeMap::new();
        for record in paths(&list).filter(|record| record.starts_with(GITLINK.as_bytes())) {
            let mut parts = record.splitn(2, |byte| *byte == b'\t');
            let (Some(entry), Some(path)) = (parts.next(), parts.next()) else { continue };
            let entry = String::from_utf8_lossy(entry);
            let commit = entry.split(' ').nth(1).unwrap_or_default().to_owned();
            found.insert(hex(path), commit);
        }
        Ok(found)
    }

    /// Takes snapshots of nested repositories. Returns whether one of the index has another commit now.
    pub(super) fn take_nested(
        &mut self,
        repositories: &[Vec<u8>],
    ) -> Result<(Vec<NestedSnapshot>, bool), RepoError> {
        let links: Vec<(Vec<u8>, String)> = self
            .state
            .gitlinks
            .iter()
            .map(|(path, commit)| Ok((unhex(path)?, commit.clone())))
            .collect::<Result<_, RepoError>>()?;
        if links.len() + repositories.len() > NESTED_MAX {
            let why = format!("{} has more than {NESTED_MAX} repositories", self.top.display());
            return Err(RepoError::permanent(why));
        }
        let mut nested = Vec::new();
        let (mut info, mut removed) = (Vec::new(), Vec::new());
        for (path, known) in links {
            let directory = self.top.join(OsStr::from_bytes(&path));
            if !directory.join(".git").exists() {
                // A submodule that was not initialized has an empty directory.
                if directory.symlink_metadata().is_err() {
                    push(&mut removed, &path);
                    self.state.gitlinks.remove(&hex(&path));
                }
                continue;
            }
            let snapshot = self.take_within(&directory, Some(FoundRepository::at(&directory)?))?;
            if let Some(head) = &snapshot.head
                && head.as_str() != known
            {
                info.extend_from_slice(format!("{GITLINK} {head}\t").as_bytes());
                push(&mut info, &path);
                self.state.gitlinks.insert(hex(&path), head.to_string());
            }
            nested.push(NestedSnapshot::new(&path, snapshot.id));
        }
        let is_relinked = !info.is_empty() || !removed.is_empty();
        if is_relinked {
            // The index differs from the last snapshot from here on.
            self.save()?;
        }
        if !info.is_empty() {
            self.exact(ReadableObjects::Own, &["update-index", "-z", "--index-info"], info)?;
        }
        if !removed.is_empty() {
            self.exact(ReadableObjects::Own, &TAKE_OUT, removed)?;
        }
        for path in repositories {
            let directory = self.top.join(OsStr::from_bytes(path));
            let snapshot = self.take_within(&directory, Some(FoundRepository::at(&directory)?))?;
            nested.push(NestedSnapshot::new(path, snapshot.id));
            let git = directory.join(".git");
            if git.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                let snapshot = self.take_within(&git, None)?;
                let path = [path.as_slice(), b"/.git"].concat();
                nested.push(NestedSnapshot::new(&path, snapshot.id));
            }
        }
        Ok((nested, is_relinked))
    }

    fn take_within(
        &self,
        directory: &Path,
        found: Option<FoundRepository>,
    ) -> Result<Snapshot, RepoError> {
        let (period, depth) = (&self.state.period, self.depth + 1);
        SnapshotPlace::open(self.commands, directory, found, period, depth)?.take()
    }
}
