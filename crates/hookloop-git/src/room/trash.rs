//! Removes files that a gate left, with any mode and at any depth.
//!
//! A directory is renamed into the trash of the room first, so it is gone even if it can't be deleted. It is deleted by
//! open directories: a path may be longer than the system allows, and no link is followed.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, chmodat, fchmod, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use tracing::warn;

use crate::repo::{RepoError, state_file};

/// The most directories that are open at once, one in the other.
const OPEN_MAX: usize = 64;
/// The most times that directories in the trash are listed. Each time, they lose [`OPEN_MAX`] levels.
const ROUNDS_MAX: usize = 100_000;
/// The permissions that a directory needs so that its files can be deleted.
const OWNER: u32 = 0o700;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The trash of one room.
#[derive(Debug)]
pub(super) struct RoomTrash {
    directory: PathBuf,
}

impl RoomTrash {
    pub(super) fn new(room: &Path) -> RoomTrash {
        RoomTrash { directory: room.join("trash") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    /// Takes a file, a link or a directory away. It need not exist.
    pub(super) fn discard(&self, path: &Path) -> Result<(), RepoError> {
        let refused = match self.take(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
            taken => return taken.map_err(RepoError::io(path)),
        };
        // Its directory refuses. The permissions of a directory that stays are part of the setup's result.
        let Some(parent) = path.parent() else { return Err(RepoError::io(path)(refused)) };
        let before = parent.symlink_metadata().map_err(RepoError::io(parent))?.permissions();
        let open = fs::Permissions::from_mode(before.mode() | OWNER);
        fs::set_permissions(parent, open).map_err(RepoError::io(parent))?;
        let taken = self.take(path).map_err(RepoError::io(path));
        fs::set_permissions(parent, before).map_err(RepoError::io(parent))?;
        taken
    }

    fn take(&self, path: &Path) -> io::Result<()> {
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if state_file::absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !found.is_dir() {
            return fs::remove_file(path);
        }
        fs::create_dir_all(&self.directory)?;
        // The entry for its parent changes with the move.
        make_writable(path)?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        fs::rename(path, self.directory.join(name))
    }

    /// Takes everything in a directory away.
    pub(super) fn discard_content(&self, directory: &Path) -> Result<(), RepoError> {
        for entry in list(directory)? {
            self.discard(&directory.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Deletes everything that was discarded. Files that can't be deleted are in no room, and stay for the next try.
    pub(super) fn empty(&self) {
        if let Err(error) = self.delete() {
            warn!(path = %self.directory.display(), %error, "the trash of a room is not empty");
        }
    }

    fn delete(&self) -> io::Result<()> {
        let trash = match openat(CWD, &self.directory, DIRECTORY, Mode::empty()) {
            Ok(trash) => trash,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for _ in 0..ROUNDS_MAX {
            let names = names(trash.as_fd())?;
            if names.is_empty() {
                return fs::remove_dir(&self.directory);
            }
            for name in &names {
                delete(trash.as_fd(), trash.as_fd(), name, OPEN_MAX)?;
            }
        }
        Err(io::Error::other("its directories are too deep"))
    }
}

/// Deletes a file or a directory. A directory below the limit is moved to the trash itself, for the next round.
fn delete(
    trash: BorrowedFd<'_>,
    parent: BorrowedFd<'_>,
    name: &CStr,
    depth: usize,
) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    let directory = open_writable(parent, name)?;
    if depth == 0 {
        let to = uuid::Uuid::new_v4().simple().to_string();
        return Ok(renameat(parent, name, trash, to)?);
    }
    for name in names(directory.as_fd())? {
        delete(trash, directory.as_fd(), &name, depth - 1)?;
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory and permits changes of it.
fn open_writable(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let opened = match openat(parent, name, DIRECTORY, Mode::empty()) {
        // No link is there: only a directory can refuse.
        Err(Errno::ACCESS) => {
            chmodat(parent, name, Mode::from_raw_mode(OWNER), AtFlags::empty())?;
            openat(parent, name, DIRECTORY, Mode::empty())
        }
        opened => opened,
    };
    let directory = opened?;
    if fstat(&directory)?.st_mode & OWNER != OWNER {
        fchmod(&directory, Mode::from_raw_mode(OWNER))?;
    }
    Ok(directory)
}

fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Permits changes of a directory.
pub(super) fn make_writable(directory: &Path) -> io::Result<()> {
    let mode = directory.symlink_metadata()?.permissions().mode();
    if mode & OWNER == OWNER {
        return Ok(());
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(mode | OWNER))
}

/// Returns the entries of a directory, which may refuse to be read; none if it does not exist.
pub(super) fn list(directory: &Path) -> Result<Vec<fs::DirEntry>, RepoError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let permissions = fs::Permissions::from_mode(OWNER);
            fs::set_permissions(directory, permissions).map_err(RepoError::io(directory))?;
            fs::read_dir(directory)
        }
        entries => entries,
    };
    match entries {
        Ok(entries) => entries.collect::<Result<_, io::Error>>().map_err(RepoError::io(directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(RepoError::io(directory)(error)),
    }
}
