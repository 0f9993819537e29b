//! A directory that is opened step by step from the top, so that no link leads elsewhere.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory of one file.
#[derive(Debug)]
pub(crate) struct SafeDirectory(OwnedFd);

impl SafeDirectory {
    /// Opens the directory of a file.
    pub(crate) fn open(top: &Path, file: &Path) -> Result<SafeDirectory, String> {
        SafeDirectory::walk(top, file, false)
    }

    /// Opens the directory of a file, and creates those that are missing.
    pub(crate) fn make(top: &Path, file: &Path) -> Result<SafeDirectory, String> {
        SafeDirectory::walk(top, file, true)
    }

    fn walk(top: &Path, file: &Path, makes: bool) -> Result<SafeDirectory, String> {
        let failed =
            |path: &Path, errno: Errno| format!("{}: {}", path.display(), io::Error::from(errno));
        let opened = openat(CWD, top, OFlags::DIRECTORY.union(OFlags::CLOEXEC), Mode::empty());
        let mut directory = opened.map_err(|errno| failed(top, errno))?;
        let mut path = top.to_owned();
        for part in file.parent().into_iter().flat_map(Path::components) {
            path.push(part);
            let name = part.as_os_str();
            if makes {
                match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed(&path, errno)),
                }
            }
            let next = openat(&directory, name, DIRECTORY, Mode::empty());
            directory = next.map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => format!("{} is not a directory", path.display()),
                errno => failed(&path, errno),
            })?;
        }
        Ok(SafeDirectory(directory))
    }

    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), String> {
        unlinkat(&self.0, name, AtFlags::empty()).map_err(text)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), String> {
        renameat(&self.0, from, &self.0, to).map_err(text)
    }

    /// Creates a link like the one at `staged`.
    pub(super) fn write_link(&self, name: &OsStr, staged: &Path) -> Result<(), String> {
        let target = fs::read_link(staged).map_err(|error| error.to_string())?;
        symlinkat(target.as_os_str(), &self.0, name).map_err(text)
    }

    /// Copies the file at `staged`. It gets the permissions of the file that it replaces, or of any new file, with
    /// the recorded permission to execute.
    pub(crate) fn write_file(
        &self,
        name: &OsStr,
        staged: &Path,
        replaced: &OsStr,
        is_executable: bool,
    ) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut from = File::open(staged).map_err(failed)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = openat(&self.0, name, flags, Mode::from_raw_mode(0o666)).map_err(text)?;
        let mut to = File::from(to);
        let new = to.metadata().map_err(failed)?.mode();
        let old = statat(&self.0, replaced, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is_file = |mode: u32| mode & 0o170_000 == 0o100_000;
        let mode = old.map(|old| old.st_mode).filter(|mode| is_file(*mode)).unwrap_or(new);
        // Nobody else reads the content before it has its permissions.
        to.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
        io::copy(&mut from, &mut to).map_err(failed)?;
        // Every user who may read the file may execute it.
        let mode = match is_executable {
            true => mode | ((mode & 0o444) >> 2),
            false => mode & !0o111,
        };
        to.set_permissions(Permissions::from_mode(mode & 0o7777)).map_err(failed)
    }
}

fn text(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}
