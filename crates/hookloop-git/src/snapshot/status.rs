//! The changes that `git status` reports.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::repo::RepoError;

/// The arguments of the command. The state of nested repositories is left out: git would run under their
/// configuration.
pub(super) const STATUS: [&str; 6] =
    ["status", "--porcelain", "-z", "-uall", "--no-renames", "--ignore-submodules=all"];

/// The most changed files of one snapshot.
const CHANGED_MAX: usize = 500_000;
/// The longest file that a snapshot stores.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// The most bytes of changed files that one snapshot stores.
const CHANGED_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// The differences between an index and a working directory. Each list has a zero byte after each path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatusChanges {
    /// New and changed files.
    pub present: Vec<u8>,
    /// Files that were deleted, or replaced by something else than a file.
    pub absent: Vec<u8>,
    /// The directories of nested repositories that the index does not have.
    pub repositories: Vec<Vec<u8>>,
    /// The size of the new and changed files.
    pub bytes: u64,
    /// Whether a file with ignore patterns changed.
    pub has_ignore_file: bool,
    /// Whether a changed file has a carriage return.
    pub has_carriage_return: bool,
}

impl StatusChanges {
    pub(super) fn is_none(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    pub(super) fn read(
        output: &[u8],
        top: &Path,
        looks_for_returns: bool,
    ) -> Result<StatusChanges, RepoError> {
        let mut changes = StatusChanges::default();
        for (number, record) in records(output).enumerate() {
            let (state, path) = record?;
            if number >= CHANGED_MAX {
                return Err(RepoError::permanent(format!(
                    "more than {CHANGED_MAX} files changed in {}: ignore those that are not part of the work",
                    top.display()
                )));
            }
            if let Some(directory) = path.strip_suffix(b"/") {
                changes.repositories.push(directory.to_vec());
                continue;
            }
            // Only the second column is about the working directory.
            if state[1] == b' ' {
                continue;
            }
            changes.has_ignore_file |=
                path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore".as_slice());
            let file = top.join(OsStr::from_bytes(path));
            // A deleted file may seem to exist through a link that took the place of its directory.
            let found = if state[1] == b'D' { None } else { stored_file(&file)? };
            let Some(metadata) = found else {
                push(&mut changes.absent, path);
                continue;
            };
            changes.bytes = changes.bytes.saturating_add(metadata.len());
            if metadata.len() > FILE_BYTES_MAX || changes.bytes > CHANGED_BYTES_MAX {
                return Err(RepoError::permanent(format!(
                    "{} makes the snapshot too large: ignore it, or remove it",
                    file.display()
                )));
            }
            if looks_for_returns && metadata.is_file() && !changes.has_carriage_return {
                changes.has_carriage_return = has_carriage_return(&file)?;
            }
            push(&mut changes.present, path);
        }
        Ok(changes)
    }
}

/// Returns a file or link that git can store; `None` if there is none.
fn stored_file(path: &Path) -> Result<Option<std::fs::Metadata>, RepoError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_file() || found.is_symlink() => Ok(Some(found)),
        Ok(_) => Ok(None),
        Err(error) if crate::repo::state_file::absent(&error) => Ok(None),
        Err(error) => Err(RepoError::io(path)(error)),
    }
}

fn has_carriage_return(path: &Path) -> Result<bool, RepoError> {
    use std::io::Read;
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        // It was deleted meanwhile.
        Err(error) if crate::repo::state_file::absent(&error) => return Ok(false),
        Err(error) => return Err(RepoError::io(path)(error)),
    };
    let mut piece = [0; 64 * 1024];
    loop {
        match file.read(&mut piece).map_err(RepoError::io(path))? {
            0 => return Ok(false),
            read if piece[..read].contains(&b'\r') => return Ok(true),
            _ => {}
        }
    }
}

type StatusRecord<'o> = ([u8; 2], &'o [u8]);

fn records(output: &[u8]) -> impl Iterator<Item = Result<StatusRecord<'_>, RepoError>> {
    let records = output.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    records.map(|record| match record {
        [index, files, b' ', path @ ..] if !path.is_empty() => Ok(([*index, *files], path)),
        other => {
            let line = String::from_utf8_lossy(other);
            Err(RepoError::permanent(format!(
                "git status answers `{line}`, which hookloop cannot read"
            )))
        }
    })
}

pub(crate) fn push(list: &mut Vec<u8>, path: &[u8]) {
    list.extend_from_slice(path);
    list.push(0);
}

/// Returns the paths of a list with a zero byte after each.
pub(crate) fn paths(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|path| !path.is_empty())
}
