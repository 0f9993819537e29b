//! Hidden directories: the paths to them, and the entries beside these paths, which stay usable.
//!
//! Landlock can only allow, and a rule for a directory holds for everything below it. So the directories on the path to
//! a hidden one get no rule, and each of their other entries gets one.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;

use super::confinement::{ConfinementError, SIBLINGS_MAX};

/// A file of this system, independent of its path.
type FileIdentity = (u64, u64);

/// The directories on the paths to hidden ones, and the hidden ones themselves.
#[derive(Debug, Default)]
pub(super) struct HiddenPaths {
    /// Without links. None is below another.
    hidden: Vec<PathBuf>,
    closed: BTreeSet<FileIdentity>,
}

impl HiddenPaths {
    pub(super) fn new(directories: &[PathBuf]) -> Result<HiddenPaths, ConfinementError> {
        let mut real = BTreeSet::new();
        for path in directories {
            let failed = |errno: i32| ConfinementError::Hidden { path: path.clone(), errno };
            let found = path.canonicalize().map_err(|error| failed(errno_of(&error)))?;
            // The entries beside a file would be all other files of its directory.
            if path.is_relative() || found.parent().is_none() || !found.is_dir() {
                return Err(failed(Errno::INVAL.raw_os_error()));
            }
            real.insert(found);
        }
        // The entries of a hidden directory must not get rules as entries beside another one.
        let is_outermost =
            |path: &&PathBuf| !path.ancestors().skip(1).any(|above| real.contains(above));
        let hidden: Vec<PathBuf> = real.iter().filter(is_outermost).cloned().collect();
        let mut closed = BTreeSet::new();
        for path in hidden.iter().flat_map(|path| path.ancestors()) {
            let found = stat(path).map_err(|errno| ConfinementError::Hidden {
                path: path.to_owned(),
                errno: errno.raw_os_error(),
            })?;
            closed.insert((found.st_dev, found.st_ino));
        }
        Ok(HiddenPaths { hidden, closed })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Whether a rule for an open file would allow a hidden directory.
    ///
    /// A rule belongs to a file and not to its path. By a bind mount, a directory on the path has other paths, too.
    pub(super) fn is_closed(&self, file: &rustix::fs::Stat) -> bool {
        self.closed.contains(&(file.st_dev, file.st_ino))
    }

    /// Whether a path leads to a hidden directory.
    pub(super) fn leads_to_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.starts_with(path))
    }

    /// Returns the entries beside the paths to the hidden directories, without links.
    ///
    /// A link needs no rule, because Landlock checks the file that it leads to.
    pub(super) fn siblings(&self) -> Result<Vec<PathBuf>, ConfinementError> {
        let above: BTreeSet<&Path> =
            self.hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        let mut found = Vec::new();
        for directory in above {
            for entry in entries(directory)? {
                if found.len() >= SIBLINGS_MAX {
                    return Err(ConfinementError::TooManySiblings { path: directory.to_owned() });
                }
                found.push(entry);
            }
        }
        Ok(found)
    }
}

/// Returns the entries of a directory, without links and without those that can't be opened.
///
/// A directory that this user can't list has none, so the job can use none of its entries.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, ConfinementError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = open(directory, flags, Mode::empty()).and_then(Dir::new);
    let Ok(listed) = listed else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in listed {
        // The rest of a list that breaks off stays hidden.
        let Ok(entry) = entry else { break };
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if found.len() >= SIBLINGS_MAX {
            return Err(ConfinementError::TooManySiblings { path: directory.to_owned() });
        }
        found.push(directory.join(std::ffi::OsStr::from_bytes(name)));
    }
    Ok(found)
}

/// Opens an entry for a rule. Returns `None` for a link, and for an entry that can't be opened.
pub(super) fn open_entry(path: &Path) -> Option<(std::os::fd::OwnedFd, rustix::fs::Stat)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).ok()?;
    let found = fstat(&file).ok()?;
    let is_link = rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink();
    (!is_link).then_some((file, found))
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_else(|| Errno::IO.raw_os_error())
}
