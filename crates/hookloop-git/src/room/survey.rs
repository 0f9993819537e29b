//! Compares the files of a checkout with its index, directory by directory.
//!
//! Gates are over by then, so the files don't change meanwhile. Directories come before the directories in them. So each
//! path leads through directories that were found to be no links.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, openat, statat,
};
use rustix::io::Errno;

use super::index_entries::{EntryInode, IndexEntries, IndexEntry};
use super::trash::RoomTrash;
use crate::repo::RepoError;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The permissions of a directory that are compared. The system may set others.
const COMPARED: u32 = 0o1777;

/// The differences between the files and the index of a checkout.
#[derive(Debug, Default)]
pub(super) struct CheckoutSurvey {
    /// Tracked files that are missing, or not as git wrote them.
    pub(super) changed: Vec<PathBuf>,
    /// Entries of tracked directories that the index does not have.
    pub(super) untracked: Vec<UntrackedEntry>,
}

/// An entry of a tracked directory that the index does not have.
#[derive(Debug)]
pub(super) struct UntrackedEntry {
    /// The path from the top of the checkout.
    pub(super) path: Vec<u8>,
    pub(super) kind: FileType,
}

/// The checkout that is compared.
#[derive(Debug)]
pub(super) struct SurveyTarget<'s> {
    pub(super) files: &'s Path,
    pub(super) entries: &'s IndexEntries,
    /// The directories of checkouts within this one.
    pub(super) nested: &'s BTreeSet<Vec<u8>>,
    pub(super) directory_mode: u32,
    pub(super) trash: &'s RoomTrash,
}

/// An entry of a tracked directory.
#[derive(Clone, Copy, Debug)]
enum TrackedChild<'e> {
    File(&'e IndexEntry),
    Directory,
    /// Another checkout, or a repository without files here.
    Nested,
}

type Children<'e> = HashMap<&'e [u8], TrackedChild<'e>>;

impl SurveyTarget<'_> {
    /// Compares all tracked directories. A directory that a gate replaced is removed, and permissions of directories
    /// are set.
    pub(super) fn compare(&self) -> Result<CheckoutSurvey, RepoError> {
        let mut survey = CheckoutSurvey::default();
        let directories = self.tracked_directories();
        let opened = openat(CWD, self.files, DIRECTORY, Mode::empty());
        let top = opened.map_err(|errno| RepoError::io(self.files)(errno.into()))?;
        for (directory, children) in &directories {
            match self.open(top.as_fd(), directory)? {
                Some(opened) => self.compare_directory(opened, directory, children, &mut survey)?,
                None => survey.changed.extend(children.iter().filter_map(|(name, child)| {
                    let is_missing = !matches!(child, TrackedChild::Directory);
                    is_missing.then(|| self.files.join(path(&joined(directory, name))))
                })),
            }
        }
        Ok(survey)
    }

    fn tracked_directories(&self) -> BTreeMap<&[u8], Children<'_>> {
        let mut directories: BTreeMap<&[u8], Children<'_>> = BTreeMap::new();
        directories.entry(b"").or_default();
        for entry in &self.entries.entries {
            let child = match entry.is_gitlink() {
                true => TrackedChild::Nested,
                false => TrackedChild::File(entry),
            };
            insert(&mut directories, &entry.path, child);
        }
        for nested in self.nested {
            insert(&mut directories, nested, TrackedChild::Nested);
        }
        directories
    }

    /// Opens a directory, which gets its permissions; `None` if there is none.
    fn open(&self, top: BorrowedFd<'_>, directory: &[u8]) -> Result<Option<OwnedFd>, RepoError> {
        let full = self.files.join(path(directory));
        let failed = |errno: Errno| RepoError::io(&full)(errno.into());
        let name = if directory.is_empty() { b"." } else { directory };
        let mode = Mode::from_raw_mode(self.directory_mode);
        let opened = match openat(top, name, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.trash.discard(&full)?;
                return Ok(None);
            }
            Err(Errno::ACCESS) => {
                chmodat(top, name, mode, AtFlags::empty()).map_err(failed)?;
                openat(top, name, DIRECTORY, Mode::empty())
            }
            opened => opened,
        };
        let opened = opened.map_err(failed)?;
        if fstat(&opened).map_err(failed)?.st_mode & COMPARED != self.directory_mode {
            fchmod(&opened, mode).map_err(failed)?;
        }
        Ok(Some(opened))
    }

    fn compare_directory(
        &self,
        opened: OwnedFd,
        directory: &[u8],
        children: &Children<'_>,
        survey: &mut CheckoutSurvey,
    ) -> Result<(), RepoError> {
        let full = self.files.join(path(directory));
        let failed = |errno: Errno| RepoError::io(&full)(errno.into());
        let mut listed = Dir::new(opened).map_err(failed)?;
        let mut seen = 0;
        while let Some(found) = listed.read() {
            let found = found.map_err(failed)?;
            let opened = listed.fd().map_err(failed)?;
            let name = found.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Some(child) = children.get(name) else {
                let kind = match found.file_type() {
                    FileType::Unknown => {
                        let stat = statat(opened, name, AtFlags::SYMLINK_NOFOLLOW);
                        FileType::from_raw_mode(stat.map_err(failed)?.st_mode)
                    }
                    kind => kind,
                };
                survey.untracked.push(UntrackedEntry { path: joined(directory, name), kind });
                continue;
            };
            seen += 1;
            let is_same = match child {
                TrackedChild::Directory => true,
                TrackedChild::Nested => {
                    let is_there = is_directory(opened, name).map_err(failed)?;
                    if is_there {
                        // Git would read it.
                        self.trash.discard(&full.join(path(name)).join(".git"))?;
                    }
                    is_there
                }
                TrackedChild::File(entry) => {
                    let stat = statat(opened, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
                    is_as_written(entry, &stat)
                }
            };
            if !is_same {
                survey.changed.push(full.join(path(name)));
            }
        }
        if seen < children.len() {
            let opened = listed.fd().map_err(failed)?;
            for (name, child) in children {
                let is_file = !matches!(child, TrackedChild::Directory);
                if is_file && !exists(opened, name).map_err(failed)? {
                    survey.changed.push(full.join(path(name)));
                }
            }
        }
        Ok(())
    }
}

/// Inserts an entry and all directories above it.
fn insert<'e>(
    directories: &mut BTreeMap<&'e [u8], Children<'e>>,
    path: &'e [u8],
    child: TrackedChild<'e>,
) {
    let (mut path, mut child) = (path, child);
    // Each step leaves a shorter path.
    loop {
        let end = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match end {
            Some(end) => (&path[..end], &path[end + 1..]),
            None => (&b""[..], path),
        };
        let is_known = directories.contains_key(directory);
        directories.entry(directory).or_default().insert(name, child);
        if is_known || directory.is_empty() {
            return;
        }
        (path, child) = (directory, TrackedChild::Directory);
    }
}

fn is_as_written(entry: &IndexEntry, stat: &Stat) -> bool {
    // The kind of an inode does not change. With `core.symlinks` off, a link of the tree is a file.
    // The numbers in an index have 32 bits.
    let inode = EntryInode {
        changed: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        modified: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        number: stat.st_ino as u32,
        size: stat.st_size as u32,
    };
    entry.inode == inode
}

fn is_directory(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<bool> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn exists(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<bool> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns the path of an entry of a directory.
pub(super) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        b"" => name.to_vec(),
        directory => [directory, b"/", name].concat(),
    }
}

pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
