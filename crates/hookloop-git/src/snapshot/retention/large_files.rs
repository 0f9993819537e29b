//! The content of large files, which the trees of snapshots only point to.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::object_name::{ObjectName, lines};
use super::{entries, is_younger};
use crate::lfs::{LfsPointer, POINTER_MAX};
use crate::repo::{RepoError, state_file};
use crate::snapshot::Snapshots;

/// The most pointers that are read by one command.
const READ_AT_ONCE: usize = 50_000;
/// Lists the objects of snapshots, without the content of longer files.
const SMALL_ONES: [&str; 6] = [
    "rev-list",
    "--objects",
    "--no-object-names",
    "--missing=allow-any",
    "--filter=blob:limit=1025",
    "--stdin",
];
const SIZES: [&str; 2] = ["cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"];
const CONTENT: [&str; 2] = ["cat-file", "--batch"];

/// The stored content of large files, by its digest.
#[derive(Debug)]
pub(super) struct LargeFiles {
    files: BTreeMap<String, LargeFile>,
}

#[derive(Debug)]
struct LargeFile {
    path: PathBuf,
    /// The disk space that only this file takes.
    bytes: u64,
    modified: SystemTime,
}

impl LargeFiles {
    pub(super) fn list(directory: &Path) -> Result<LargeFiles, RepoError> {
        let mut files = BTreeMap::new();
        for first in entries(directory)? {
            for second in entries(&first.path())? {
                for entry in entries(&second.path())? {
                    let path = entry.path();
                    let found = entry.metadata().map_err(RepoError::io(&path))?;
                    let modified = found.modified().map_err(RepoError::io(&path))?;
                    let bytes = own_bytes(&found);
                    let digest = entry.file_name().to_string_lossy().into_owned();
                    files.insert(digest, LargeFile { path, bytes, modified });
                }
            }
        }
        Ok(LargeFiles { files })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the number of bytes of content that is not needed.
    pub(super) fn waste(&self, needed: &NeededFiles) -> u64 {
        let unneeded = self.files.iter().filter(|(digest, _)| !needed.has(digest));
        unneeded.map(|(_, file)| file.bytes).sum()
    }

    /// Deletes content that is not needed and older than this.
    pub(super) fn delete(
        &self,
        needed: &NeededFiles,
        now: SystemTime,
        age: Duration,
    ) -> Result<(), RepoError> {
        for (digest, file) in &self.files {
            if needed.has(digest) || is_younger(file.modified, now, age) {
                continue;
            }
            state_file::remove(&file.path)?;
            // Directories with other files are not empty, and stay.
            for directory in file.path.ancestors().skip(1).take(2) {
                let _ = fs::remove_dir(directory);
            }
        }
        Ok(())
    }
}

/// Returns the disk space of a file. A link to a file of the user's repository takes none.
pub(super) fn own_bytes(found: &fs::Metadata) -> u64 {
    if found.nlink() > 1 { 0 } else { found.len() }
}

/// The digests of content that is needed.
#[derive(Debug)]
pub(super) enum NeededFiles {
    /// A pointer may be where it can't be read now.
    All,
    These(BTreeSet<String>),
}

impl NeededFiles {
    fn has(&self, digest: &str) -> bool {
        match self {
            NeededFiles::All => true,
            NeededFiles::These(digests) => digests.contains(digest),
        }
    }

    pub(super) fn extend(&mut self, other: NeededFiles) {
        match (self, other) {
            (NeededFiles::These(digests), NeededFiles::These(others)) => digests.extend(others),
            (known, NeededFiles::All) => *known = NeededFiles::All,
            (NeededFiles::All, NeededFiles::These(_)) => {}
        }
    }
}

impl Snapshots {
    /// Returns the content that these snapshots, trees and pointers need.
    ///
    /// The pointers of unchanged files are only in the user's repository.
    pub(super) fn needed_files(
        &self,
        roots: &HashSet<ObjectName>,
        blobs: &HashSet<ObjectName>,
    ) -> Result<NeededFiles, RepoError> {
        let objects = self.all_objects()?;
        let mut listed = lines(blobs);
        if !roots.is_empty() {
            let said = self.store_output(&objects, &SMALL_ONES, lines(roots))?;
            let is_whole = said.stderr.trim().is_empty();
            listed.extend(said.well("rev-list")?);
            // A tree that can't be read may have pointers.
            if !is_whole {
                return Ok(NeededFiles::All);
            }
        }
        if listed.is_empty() {
            return Ok(NeededFiles::These(BTreeSet::new()));
        }
        let sizes = self.retention_git(&objects, &SIZES, listed)?;
        let sizes = String::from_utf8_lossy(&sizes);
        let names: HashSet<ObjectName> = sizes.lines().filter_map(small_blob).collect();
        let names: Vec<ObjectName> = names.into_iter().collect();
        let mut digests = BTreeSet::new();
        for names in names.chunks(READ_AT_ONCE) {
            let content = self.retention_git(&objects, &CONTENT, lines(names))?;
            let pointers = contents(&content)?.into_iter().filter_map(LfsPointer::read);
            digests.extend(pointers.map(|pointer| pointer.oid.to_ascii_lowercase()));
        }
        Ok(NeededFiles::These(digests))
    }
}

/// Returns the object of a line, if it can be a pointer. Missing objects have another kind of line.
fn small_blob(line: &str) -> Option<ObjectName> {
    let mut fields = line.strip_prefix("blob ")?.split(' ');
    let bytes: u64 = fields.next()?.parse().ok()?;
    let name = ObjectName::read(fields.next()?)?;
    (bytes <= POINTER_MAX).then_some(name)
}

/// Returns the content of each object in the output of `git cat-file --batch`.
fn contents(mut output: &[u8]) -> Result<Vec<&[u8]>, RepoError> {
    let mut found = Vec::new();
    while !output.is_empty() {
        let (content, rest) = first_content(output).ok_or_else(|| {
            RepoError::permanent("git cat-file gives an answer that hookloop can't read")
        })?;
        found.push(content);
        output = rest;
    }
    Ok(found)
}

/// Splits the first object off: a line that ends with its length, its content and a line end.
fn first_content(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&output[..end]).ok()?;
    let length: usize = line.rsplit(' ').next()?.parse().ok()?;
    let (content, rest) = output[end + 1..].split_at_checked(length)?;
    Some((content, rest.strip_prefix(b"\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_objects_are_read() {
        let output = b"ab blob 3\none\ncd blob 0\n\nef blob 4\n\n\n\n\n\n";
        let expected: [&[u8]; 3] = [b"one", b"", b"\n\n\n\n"];
        assert_eq!(contents(output).unwrap(), expected);
        for bad in ["ab missing\n", "ab blob 9\nshort\n", "ab blob 1"] {
            assert!(contents(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_small_blobs_can_be_pointers() {
        let name = "07".repeat(20);
        assert!(small_blob(&format!("blob 1024 {name}")).is_some());
        assert!(small_blob(&format!("blob 1025 {name}")).is_none());
        assert!(small_blob(&format!("tree 30 {name}")).is_none());
        assert!(small_blob(&format!("{name} missing")).is_none());
    }
}
