//! Paths that stay although no tree has them: the result of the setup, and copied files.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::Path;

use super::setup_manifest::SetupManifest;
use super::survey::joined;
use crate::repo::RepoError;

/// The kept paths of one checkout. They are read when the first one is needed.
#[derive(Debug)]
pub(super) struct KeptPaths<'k> {
    pub(super) room: &'k Path,
    /// The copied files, from the top of the room's files.
    pub(super) copies: Vec<Vec<u8>>,
    /// The directory of the checkout, from the top of the room's files.
    pub(super) prefix: &'k [u8],
    pub(super) loaded: &'k OnceCell<HashSet<Vec<u8>>>,
}

impl KeptPaths<'_> {
    /// Whether the checkout is that of the room itself.
    pub(super) fn is_top(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Returns whether a file is kept, or a directory has kept files.
    pub(super) fn contains(&self, path: &[u8]) -> Result<bool, RepoError> {
        let kept = match self.loaded.get() {
            Some(kept) => kept,
            None => {
                let mut kept = HashSet::new();
                let manifest = SetupManifest::read(self.room)?;
                for path in manifest.iter().flat_map(SetupManifest::files) {
                    insert(&mut kept, path);
                }
                self.copies.iter().for_each(|path| insert(&mut kept, path));
                self.loaded.get_or_init(|| kept)
            }
        };
        Ok(kept.contains(&joined(self.prefix, path)))
    }
}

/// Inserts a path with all directories above it.
pub(super) fn insert(kept: &mut HashSet<Vec<u8>>, path: &[u8]) {
    let mut path = path;
    while !path.is_empty() && kept.insert(path.to_vec()) {
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        path = &path[..end];
    }
}
