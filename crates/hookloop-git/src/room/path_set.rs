//! Sets of paths that stay in a directory, and the removal of all others.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::index_entries::IndexEntries;
use super::survey::{joined, path};
use super::trash::{RoomTrash, list};
use crate::repo::RepoError;

/// The most entries of a room that are listed at once.
const ENTRIES_MAX: usize = 20_000_000;

/// Files, and the directories that lead to them.
#[derive(Debug, Default)]
pub(super) struct PathSet {
    pub(super) files: HashSet<Vec<u8>>,
    pub(super) directories: HashSet<Vec<u8>>,
}

impl PathSet {
    pub(super) fn add_file(&mut self, path: &[u8]) {
        self.files.insert(path.to_vec());
        self.add_directory(parent(path));
    }

    /// Adds a directory, which may be empty.
    pub(super) fn add_directory(&mut self, path: &[u8]) {
        let mut path = path;
        while !path.is_empty() && self.directories.insert(path.to_vec()) {
            path = parent(path);
        }
    }

    /// Adds the files of a checkout in a directory.
    pub(super) fn add_entries(&mut self, prefix: &[u8], entries: &IndexEntries) {
        self.add_directory(prefix);
        for entry in &entries.entries {
            let path = joined(prefix, &entry.path);
            if entry.is_gitlink() {
                self.add_directory(&path);
            } else {
                self.add_file(&path);
            }
        }
    }

    /// Returns whether a directory has files that are not in the set.
    pub(super) fn has_others(&self, root: &Path) -> Result<bool, RepoError> {
        let mut is_found = false;
        visit(root, |relative, is_directory| {
            is_found |= !is_directory && !self.files.contains(relative);
            Ok(!is_found)
        })?;
        Ok(is_found)
    }

    /// Returns the entries of a directory that are not in the set.
    pub(super) fn others(&self, root: &Path) -> Result<PathSet, RepoError> {
        let mut others = PathSet::default();
        visit(root, |relative, is_directory| {
            match is_directory {
                true if self.directories.contains(relative) => {}
                true => drop(others.directories.insert(relative.to_vec())),
                false if self.files.contains(relative) => {}
                false => drop(others.files.insert(relative.to_vec())),
            }
            Ok(true)
        })?;
        Ok(others)
    }

    /// Removes everything from a directory that is not in the set, apart from `.git` at its top.
    pub(super) fn remove_others(&self, root: &Path, trash: &RoomTrash) -> Result<(), RepoError> {
        visit(root, |relative, is_directory| {
            let stays = match is_directory {
                true => self.directories.contains(relative),
                false => self.files.contains(relative),
            };
            if !stays {
                trash.discard(&root.join(path(relative)))?;
            }
            Ok(stays)
        })
    }
}

/// Calls a function for each entry of a directory, apart from `.git` at its top. The function returns whether the
/// entries of a directory are visited, too.
pub(super) fn visit(
    root: &Path,
    mut visitor: impl FnMut(&[u8], bool) -> Result<bool, RepoError>,
) -> Result<(), RepoError> {
    let mut left = vec![Vec::new()];
    let mut count = 0;
    while let Some(directory) = left.pop() {
        let full = root.join(path(&directory));
        for entry in list(&full)? {
            count += 1;
            if count > ENTRIES_MAX {
                let why = format!("{} has more than {ENTRIES_MAX} files", root.display());
                return Err(RepoError::permanent(why));
            }
            let relative = joined(&directory, entry.file_name().as_bytes());
            if relative == b".git" {
                continue;
            }
            let kind = entry.file_type().map_err(RepoError::io(&entry.path()))?;
            if visitor(&relative, kind.is_dir())? && kind.is_dir() {
                left.push(relative);
            }
        }
    }
    Ok(())
}

pub(super) fn parent(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_the_set_stay_with_their_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (root, trash) = (dir.path().join("root"), RoomTrash::new(dir.path()));
        for name in ["a/b/c", "a/b/other", "a/d/e", "f", ".git/HEAD", "empty/x"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        let mut set = PathSet::default();
        set.add_file(b"a/b/c");
        set.add_directory(b"empty");
        set.remove_others(&root, &trash).unwrap();
        trash.empty();
        let mut left = Vec::new();
        visit(&root, |path, _| {
            left.push(String::from_utf8(path.to_vec()).unwrap());
            Ok(true)
        })
        .unwrap();
        left.sort();
        assert_eq!(left, ["a", "a/b", "a/b/c", "empty"]);
        assert!(root.join(".git/HEAD").exists());
        assert!(!dir.path().join("trash").exists());
    }
}
