//! Removes the files that a gate left and that git does not ignore.
//!
//! Only the rules of the tree count, and those that were pinned for snapshots. A file with rules that a gate wrote is
//! removed before git is asked. The one exception is a directory whose own rule is to ignore all of it: test runners and
//! linters mark their caches in this way, and git ignores such a directory too.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use super::checkout::RoomCheckout;
use super::kept_paths::KeptPaths;
use super::survey::{UntrackedEntry, joined, path};
use super::trash::{list, make_writable};
use crate::repo::RepoError;
use crate::snapshot::{paths, push};

/// The most files in directories that git does not ignore. With more, such a directory is removed whole.
const LISTED_MAX: usize = 500_000;
/// The most bytes of a file with the rule to ignore everything.
const RULE_MAX: u64 = 4096;
/// Names of files with rules.
const RULES: [&[u8]; 2] = [b".gitignore", b".gitattributes"];

/// The content of untracked directories.
#[derive(Debug, Default)]
struct ListedFiles {
    files: Vec<Vec<u8>>,
    /// Each directory comes before those in it.
    directories: Vec<Vec<u8>>,
    /// The number of files that were removed at once.
    removed: usize,
}

impl RoomCheckout<'_> {
    /// Removes untracked files, except those that are ignored or kept. Returns how many; a directory counts as one.
    pub(super) fn remove_untracked(
        &self,
        untracked: Vec<UntrackedEntry>,
        kept: &KeptPaths<'_>,
    ) -> Result<usize, RepoError> {
        let mut candidates = Vec::new();
        let mut removed = 0;
        for entry in untracked {
            // The directory that gates take for git's own.
            if kept.is_top() && entry.path == b".git" {
                continue;
            }
            let kind = LeftKind::of(&entry.path, entry.kind);
            if self.is_removed_at_once(&entry.path, kind, kept)? {
                self.discard(&entry.path)?;
                removed += 1;
            } else {
                candidates.push((entry.path, kind));
            }
        }
        let ignored = self.ignored(candidates.iter().map(|(path, _)| path.as_slice()))?;
        let mut listed = ListedFiles::default();
        for (path, kind) in candidates.iter().filter(|(path, _)| !ignored.contains(path)) {
            if *kind != LeftKind::Directory {
                if !kept.contains(path)? {
                    self.discard(path)?;
                    removed += 1;
                }
            } else if !self.list_untracked(path, kept, &mut listed)? {
                self.discard(path)?;
                removed += 1;
            }
        }
        Ok(removed + listed.removed + self.remove_listed(&listed, kept)?)
    }

    fn remove_listed(
        &self,
        listed: &ListedFiles,
        kept: &KeptPaths<'_>,
    ) -> Result<usize, RepoError> {
        let ignored = self.ignored(listed.files.iter().map(Vec::as_slice))?;
        let mut removed = 0;
        for file in listed.files.iter().filter(|file| !ignored.contains(*file)) {
            self.discard(file)?;
            removed += 1;
        }
        for directory in listed.directories.iter().rev() {
            if !kept.contains(directory)? {
                // A directory with ignored files stays.
                let _ = fs::remove_dir(self.files.join(path(directory)));
            }
        }
        Ok(removed)
    }

    /// Returns whether git ignores nothing of this kind, or takes it for rules.
    fn is_removed_at_once(
        &self,
        path: &[u8],
        kind: LeftKind,
        kept: &KeptPaths<'_>,
    ) -> Result<bool, RepoError> {
        match kind {
            LeftKind::Unstored => Ok(true),
            LeftKind::Rules => Ok(!kept.contains(path)?),
            LeftKind::Directory | LeftKind::File => Ok(false),
        }
    }

    /// Lists the content of an untracked directory. Returns false if it can't be listed.
    fn list_untracked(
        &self,
        directory: &[u8],
        kept: &KeptPaths<'_>,
        listed: &mut ListedFiles,
    ) -> Result<bool, RepoError> {
        let mut left = vec![directory.to_vec()];
        while let Some(directory) = left.pop() {
            let full = self.files.join(path(&directory));
            if !kept.contains(&directory)? && make_writable(&full).is_err() {
                return Ok(false);
            }
            // A path may be too long.
            let Ok(entries) = list(&full) else { return Ok(false) };
            if entries.iter().any(ignores_everything) {
                continue;
            }
            for entry in entries {
                let entry_path = joined(&directory, entry.file_name().as_bytes());
                let Ok(kind) = entry.file_type() else { return Ok(false) };
                let kind = LeftKind::of(&entry_path, raw_kind(kind));
                if self.is_removed_at_once(&entry_path, kind, kept)? {
                    self.discard(&entry_path)?;
                    listed.removed += 1;
                } else if kind == LeftKind::Directory {
                    left.push(entry_path);
                } else if !kept.contains(&entry_path)? {
                    listed.files.push(entry_path);
                }
            }
            listed.directories.push(directory);
            if listed.files.len() + listed.directories.len() + left.len() > LISTED_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns those of the paths that git ignores.
    fn ignored<'p>(
        &self,
        candidates: impl Iterator<Item = &'p [u8]>,
    ) -> Result<HashSet<Vec<u8>>, RepoError> {
        let mut list = Vec::new();
        candidates.for_each(|path| push(&mut list, path));
        if list.is_empty() {
            return Ok(HashSet::new());
        }
        let args = ["check-ignore", "-z", "--no-index", "--stdin"];
        let said = self.git_output(&self.index(), &args, list)?;
        if said.code == 1 {
            return Ok(HashSet::new());
        }
        let ignored = said.well("check-ignore")?;
        Ok(paths(&ignored).map(<[u8]>::to_vec).collect())
    }

    fn discard(&self, relative: &[u8]) -> Result<(), RepoError> {
        self.trash.discard(&self.files.join(path(relative)))
    }
}

/// The kind of an untracked entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftKind {
    File,
    Directory,
    /// A file that git reads rules from.
    Rules,
    /// A pipe, a socket, a device or a repository of a gate. Git would not list it.
    Unstored,
}

impl LeftKind {
    fn of(path: &[u8], kind: FileType) -> LeftKind {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let is_stored =
            matches!(kind, FileType::RegularFile | FileType::Symlink | FileType::Directory);
        if !is_stored || name.eq_ignore_ascii_case(b".git") {
            LeftKind::Unstored
        } else if kind == FileType::Directory {
            LeftKind::Directory
        } else if RULES.iter().any(|rules| name.eq_ignore_ascii_case(rules)) {
            LeftKind::Rules
        } else {
            LeftKind::File
        }
    }
}

fn raw_kind(kind: fs::FileType) -> FileType {
    if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else if kind.is_file() {
        FileType::RegularFile
    } else {
        FileType::Unknown
    }
}

/// Returns whether an entry of a directory is a rule to ignore all of the directory.
fn ignores_everything(entry: &DirEntry) -> bool {
    let is_file = |kind: fs::FileType| kind.is_file();
    entry.file_name() == ".gitignore"
        && entry.file_type().is_ok_and(is_file)
        && read_start(&entry.path()).is_some_and(|text| {
            let lines = text.lines().map(str::trim_end);
            lines.filter(|line| !line.is_empty() && !line.starts_with('#')).eq(["*"])
        })
}

fn read_start(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(RULE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}
