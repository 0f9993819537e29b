//! Files of other programs, replaced whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Nobody's settings are longer.
const SIZE_MAX: u64 = 8 * 1024 * 1024;
/// The mode of a new file, before the umask.
const NEW_MODE: u32 = 0o666;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} was changed by something else in the meantime; nothing was written", .0.display())]
    Changed(PathBuf),
    #[error("{} is longer than {SIZE_MAX} bytes", .0.display())]
    Long(PathBuf),
    #[error("{} is not a file", .0.display())]
    NoFile(PathBuf),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    |source| FileError::Io { path, source }
}

/// Where a path leads; itself if there is nothing yet. A link that leads nowhere is no file.
pub(crate) fn target(path: &Path) -> Result<PathBuf, FileError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            // Existing parts of the path may be links.
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => Ok(target(parent)?.join(name)),
                _ => Ok(path.to_owned()),
            }
        }
        Err(source) => Err(FileError::Io { path: path.to_owned(), source }),
    }
}

/// The bytes of a file; none if it is not there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(at(path))?,
    };
    match found {
        found if !found.is_file() => Err(FileError::NoFile(path.to_owned())),
        found if found.len() > SIZE_MAX => Err(FileError::Long(path.to_owned())),
        _ => fs::read(path).map(Some).map_err(at(path)),
    }
}

/// Puts `after` where `before` is, if it still is; no bytes are no file. Answers which directories it made.
pub(crate) fn replace(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Result<Vec<PathBuf>, FileError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let made = if after.is_some() { make_directories(directory)? } else { Vec::new() };
    let draft = after.map(|after| draft(path, directory, after)).transpose()?;
    if read(path)?.as_deref() != before {
        remove_empty(&made);
        return Err(FileError::Changed(path.to_owned()));
    }
    match (draft, before) {
        (Some(draft), Some(_)) => draft.persist(path).map(drop).map_err(|e| at(path)(e.error))?,
        (Some(draft), None) => {
            draft.persist_noclobber(path).map(drop).map_err(|e| at(path)(e.error))?;
        }
        (None, Some(_)) => fs::remove_file(path).map_err(at(path))?,
        (None, None) => {}
    }
    // Syncing the directory makes the new name durable. On a file system that can't sync it, nothing more is possible.
    if let Err(error) = File::open(directory).and_then(|directory| directory.sync_all()) {
        tracing::warn!(path = %directory.display(), %error, "a directory is not synced");
    }
    Ok(made)
}

/// The new file, whole and on disk, under a name of its own, with the rights of the old one.
fn draft(path: &Path, directory: &Path, text: &[u8]) -> Result<tempfile::NamedTempFile, FileError> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix(".hookloop-").permissions(Permissions::from_mode(NEW_MODE));
    let mut draft = builder.tempfile_in(directory).map_err(at(directory))?;
    if let Ok(old) = fs::metadata(path) {
        let file = draft.as_file();
        let new = file.metadata().map_err(at(path))?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            fchown(file, Some(old.uid()), Some(old.gid())).map_err(at(path))?;
        }
        file.set_permissions(old.permissions()).map_err(at(path))?;
    }
    draft.write_all(text).and_then(|()| draft.as_file().sync_all()).map_err(at(path))?;
    Ok(draft)
}

/// Makes what is missing of a path; answers it, outermost first.
fn make_directories(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let missing = directory.ancestors().take_while(|one| !one.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    for one in &missing {
        fs::create_dir(one).map_err(at(one))?;
    }
    Ok(missing)
}

/// Removes directories that hold nothing, innermost first.
pub(crate) fn remove_empty(directories: &[PathBuf]) {
    for one in directories.iter().rev() {
        // A directory that is not empty belongs to the user.
        let _ = fs::remove_dir(one);
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> CliError {
        match error {
            FileError::Changed(_) => CliError::refused(error).advice("run the command again"),
            FileError::Long(_) | FileError::NoFile(_) => CliError::usage(error),
            FileError::Io { .. } => CliError::system(error),
        }
    }
}
