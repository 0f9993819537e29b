//! Writes a file whole or not at all.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::io::Errno;

/// Properties of a file that is written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The mode of the file, less the umask.
    pub mode: u32,
    /// Whether the content survives a crash of the machine. Without it, such a crash can leave an empty file.
    pub is_durable: bool,
    /// Whether an existing file is replaced. If not, it is an error of kind [`io::ErrorKind::AlreadyExists`].
    pub replaces: bool,
}

impl WriteOptions {
    /// A private file that survives a crash of the machine.
    pub const DURABLE: WriteOptions =
        WriteOptions { mode: 0o600, is_durable: true, replaces: true };
    /// A private file that can be recreated, so that it need not survive a crash of the machine.
    pub const CACHE: WriteOptions = WriteOptions { is_durable: false, ..WriteOptions::DURABLE };
}

/// Writes a file so that a reader sees the old content or all of the new one.
///
/// The content goes into a temporary file beside it, `NAME.random.new`, which is then renamed. A durable file is synced
/// before that and its directory after. A link at `path` is replaced, not followed.
pub fn write_whole(path: &Path, bytes: &[u8], options: WriteOptions) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        Some(_) => Path::new("."),
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let mut draft = tempfile::Builder::new()
        .prefix(&format!("{name}."))
        .suffix(".new")
        .permissions(Permissions::from_mode(options.mode))
        .tempfile_in(directory)?;
    draft.write_all(bytes)?;
    if options.is_durable {
        draft.as_file().sync_all()?;
    }
    // Closed first: a script that is open for writing cannot be run.
    let draft = draft.into_temp_path();
    let placed = if options.replaces { draft.persist(path) } else { draft.persist_noclobber(path) };
    placed.map_err(|error| error.error)?;
    if options.is_durable {
        sync_directory(directory)?;
    }
    Ok(())
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    match rustix::fs::fsync(File::open(directory)?) {
        // Some file systems have no sync of directories.
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_no_draft_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for options in [WriteOptions::DURABLE, WriteOptions::CACHE] {
            for text in ["first", "second, longer"] {
                write_whole(&path, text.as_bytes(), options).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
                assert_eq!(names(directory.path()), ["file"]);
            }
        }
    }

    #[test]
    fn an_existing_file_is_kept_if_it_is_not_to_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let options = WriteOptions { replaces: false, ..WriteOptions::DURABLE };
        write_whole(&path, b"first", options).unwrap();
        let error = write_whole(&path, b"second", options).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let link = directory.path().join("link");
        fs::write(&target, "theirs").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_whole(&link, b"ours", WriteOptions::DURABLE).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("folder");
        fs::create_dir(&path).unwrap();
        write_whole(&path, b"text", WriteOptions::DURABLE).unwrap_err();
        write_whole(Path::new("/"), b"text", WriteOptions::DURABLE).unwrap_err();
        assert_eq!(names(directory.path()), ["folder"]);
    }
}
