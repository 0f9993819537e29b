//! The files of a working directory that git ignores.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::place::SnapshotPlace;
use super::{ReadableObjects, Snapshots, StoreLock, status};
use crate::repo::{FoundRepository, RepoError};

/// Lists files that git ignores. A directory whose files are all ignored is one entry that ends with `/`.
const IGNORED: [&str; 6] =
    ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];

impl Snapshots {
    /// Returns the files of the project that git ignores, relative to the project, at most `max`.
    ///
    /// Ignored directories and files in them are left out. Without a repository, the project's own rules count.
    pub fn ignored_files(&self, max: usize) -> Result<Vec<PathBuf>, RepoError> {
        self.prepare()?;
        let _shared = StoreLock::shared(&self.commands)?;
        let root = self.root.canonicalize().map_err(RepoError::io(&self.root))?;
        let found = FoundRepository::find(&self.root)?;
        let top = found.as_ref().map_or(root.clone(), |found| found.top.clone());
        let place = SnapshotPlace::open(&self.commands, &top, found, &self.period, 0)?;
        let listed = place.exact(ReadableObjects::Own, &IGNORED, Vec::new())?;
        let below = |path: &[u8]| {
            let path = top.join(Path::new(std::ffi::OsStr::from_bytes(path)));
            Some(path.strip_prefix(&root).ok()?.to_owned())
        };
        let files = status::paths(&listed).filter(|path| !path.ends_with(b"/"));
        Ok(files.filter_map(below).take(max).collect())
    }
}
