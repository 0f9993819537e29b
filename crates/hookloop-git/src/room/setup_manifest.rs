//! The result of the setup: every file that it left, with size, mode and times.
//!
//! A program can't set the time of the last change of an inode. So a file that a gate rewrote is noticed, even if it has
//! its old size and modification time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hookloop_core::digest::sha256_hex;
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::path_set::{PathSet, visit};
use super::survey::path;
use crate::repo::{RepoError, state_file};

/// The most files of a setup.
const SETUP_FILES_MAX: usize = 1_000_000;
const VERSION: u32 = 1;
const HEADER: &str = "setup.json";
const LIST: &str = "setup.list";

/// The files that a setup left.
#[derive(Debug)]
pub(super) struct SetupManifest {
    /// Among the files of the room.
    files: Vec<ManifestEntry>,
    /// Among the caches of the room. Programs change their caches, so these are no part of the check.
    caches: Vec<ManifestEntry>,
}

/// One file or directory of a setup.
#[derive(Debug, PartialEq, Eq)]
struct ManifestEntry {
    path: Vec<u8>,
    inode: ManifestInode,
}

/// The properties of a file that are compared.
#[derive(Debug, PartialEq, Eq)]
enum ManifestInode {
    Directory { mode: u32 },
    Other { mode: u32, size: u64, modified_ns: i64, changed_ns: i64 },
}

/// The part of a manifest that can be read without the list of files.
#[derive(Debug, Serialize, Deserialize)]
struct ManifestHeader {
    version: u32,
    /// The digest of the setup.
    digest: String,
    /// The digest of the list.
    list: String,
}

impl SetupManifest {
    /// Records all files that are not in the set.
    pub(super) fn record(
        room: &Path,
        digest: &str,
        tracked: &PathSet,
        is_copy: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), RepoError> {
        let files = entries(&room.join(super::FILES), |path, is_directory| match is_directory {
            true => !tracked.directories.contains(path),
            false => !tracked.files.contains(path) && !is_copy(path),
        })?;
        let caches = entries(&room.join(super::CACHES), |_, _| true)?;
        if files.len() + caches.len() > SETUP_FILES_MAX {
            let why = format!("the setup left more than {SETUP_FILES_MAX} files");
            return Err(RepoError::permanent(why));
        }
        let mut list = Vec::new();
        for (area, entries) in [('f', &files), ('c', &caches)] {
            entries.iter().for_each(|entry| entry.write(area, &mut list));
        }
        let header =
            ManifestHeader { version: VERSION, digest: digest.to_owned(), list: sha256_hex(&list) };
        let header = serde_json::to_vec(&header)
            .map_err(|error| RepoError::permanent(format!("a setup is not recorded: {error}")))?;
        SetupManifest::remove(room)?;
        // The header is written last: it names the list.
        for (name, bytes) in [(LIST, list), (HEADER, header)] {
            let path = room.join(name);
            write_whole(&path, &bytes, WriteOptions::CACHE).map_err(RepoError::io(&path))?;
        }
        Ok(())
    }

    /// Returns the digest of the recorded setup.
    pub(super) fn digest(room: &Path) -> Result<Option<String>, RepoError> {
        Ok(header(room)?.map(|header| header.digest))
    }

    /// Returns the recorded setup. One that can't be read does not count.
    pub(super) fn read(room: &Path) -> Result<Option<SetupManifest>, RepoError> {
        let Some(header) = header(room)? else { return Ok(None) };
        let path = room.join(LIST);
        let list = match fs::read(&path) {
            Ok(list) => list,
            Err(error) if state_file::absent(&error) => Vec::new(),
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        let manifest = (sha256_hex(&list) == header.list).then(|| parse(&list)).flatten();
        if manifest.is_none() {
            warn!(path = %path.display(), "the manifest of a setup can't be read");
        }
        Ok(manifest)
    }

    pub(super) fn remove(room: &Path) -> Result<(), RepoError> {
        state_file::remove(&room.join(HEADER))?;
        state_file::remove(&room.join(LIST))
    }

    /// Returns the first file that is not as the setup left it.
    pub(super) fn find_damage(&self, room: &Path) -> Option<PathBuf> {
        let files = room.join(super::FILES);
        let damaged = self.files.iter().find(|entry| !entry.is_unchanged(&files));
        damaged.map(|entry| path(&entry.path).to_owned())
    }

    /// Returns the paths of all files and directories among the files of the room.
    pub(super) fn files(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(|entry| entry.path.as_slice())
    }

    /// Adds the files of the room that the setup left.
    pub(super) fn add_files(&self, set: &mut PathSet) {
        self.files.iter().for_each(|entry| entry.add(set));
    }

    /// Returns the caches that are as the setup left them.
    pub(super) fn unchanged_caches(&self, room: &Path) -> PathSet {
        let caches = room.join(super::CACHES);
        let mut set = PathSet::default();
        let unchanged = self.caches.iter().filter(|entry| entry.is_unchanged(&caches));
        unchanged.for_each(|entry| entry.add(&mut set));
        set
    }
}

impl ManifestEntry {
    fn is_unchanged(&self, root: &Path) -> bool {
        let found = root.join(path(&self.path)).symlink_metadata();
        found.is_ok_and(|found| ManifestInode::of(&found) == self.inode)
    }

    fn add(&self, set: &mut PathSet) {
        match self.inode {
            ManifestInode::Directory { .. } => set.add_directory(&self.path),
            ManifestInode::Other { .. } => set.add_file(&self.path),
        }
    }

    fn write(&self, area: char, list: &mut Vec<u8>) {
        let inode = match &self.inode {
            ManifestInode::Directory { mode } => format!("{area} {mode} - - - "),
            ManifestInode::Other { mode, size, modified_ns, changed_ns } => {
                format!("{area} {mode} {size} {modified_ns} {changed_ns} ")
            }
        };
        list.extend_from_slice(inode.as_bytes());
        list.extend_from_slice(&self.path);
        list.push(0);
    }
}

impl ManifestInode {
    fn of(found: &fs::Metadata) -> ManifestInode {
        let mode = found.mode();
        if found.is_dir() {
            return ManifestInode::Directory { mode };
        }
        let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
        ManifestInode::Other {
            mode,
            size: found.size(),
            modified_ns: ns(found.mtime(), found.mtime_nsec()),
            changed_ns: ns(found.ctime(), found.ctime_nsec()),
        }
    }
}

fn header(room: &Path) -> Result<Option<ManifestHeader>, RepoError> {
    let path = room.join(HEADER);
    let Some(bytes) = state_file::read(&path)? else { return Ok(None) };
    let header: Result<ManifestHeader, _> = serde_json::from_slice(&bytes);
    let is_known = |header: &ManifestHeader| header.version == VERSION;
    let header = header.ok().filter(is_known);
    if header.is_none() {
        warn!(path = %path.display(), "the record of a setup can't be read");
    }
    Ok(header)
}

/// Returns the entries of a directory for which `is_listed`. Those of other directories are searched too.
fn entries(
    root: &Path,
    is_listed: impl Fn(&[u8], bool) -> bool,
) -> Result<Vec<ManifestEntry>, RepoError> {
    let mut found = Vec::new();
    visit(root, |relative, is_directory| {
        if is_listed(relative, is_directory) {
            let full = root.join(path(relative));
            let inode = full.symlink_metadata().map_err(RepoError::io(&full))?;
            found.push(ManifestEntry { path: relative.to_vec(), inode: ManifestInode::of(&inode) });
        }
        Ok(true)
    })?;
    Ok(found)
}

fn parse(list: &[u8]) -> Option<SetupManifest> {
    let mut manifest = SetupManifest { files: Vec::new(), caches: Vec::new() };
    for record in list.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let mut fields = record.splitn(6, |byte| *byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let (area, mode, size) = (text()?, text()?.parse().ok()?, text()?);
        let (modified, changed) = (text()?, text()?);
        let inode = match size {
            "-" => ManifestInode::Directory { mode },
            size => ManifestInode::Other {
                mode,
                size: size.parse().ok()?,
                modified_ns: modified.parse().ok()?,
                changed_ns: changed.parse().ok()?,
            },
        };
        let entry = ManifestEntry { path: fields.next()?.to_vec(), inode };
        match area {
            "f" => manifest.files.push(entry),
            "c" => manifest.caches.push(entry),
            _ => return None,
        }
    }
    Some(manifest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_manifest_reads_back_with_names_of_all_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let files = dir.path().join(crate::room::FILES);
        fs::create_dir_all(files.join("a b/\n")).unwrap();
        fs::write(files.join("a b/c d"), "12").unwrap();
        fs::create_dir_all(dir.path().join(crate::room::CACHES)).unwrap();
        let tracked = PathSet::default();
        SetupManifest::record(dir.path(), "digest", &tracked, &|_| false).unwrap();
        assert_eq!(SetupManifest::digest(dir.path()).unwrap().as_deref(), Some("digest"));
        let manifest = SetupManifest::read(dir.path()).unwrap().unwrap();
        let mut paths: Vec<&[u8]> = manifest.files().collect();
        paths.sort_unstable();
        assert_eq!(paths, [b"a b".as_slice(), b"a b/\n", b"a b/c d"]);
        assert_eq!(manifest.find_damage(dir.path()), None);
        fs::write(files.join("a b/c d"), "123").unwrap();
        assert_eq!(manifest.find_damage(dir.path()), Some("a b/c d".into()));
        fs::write(dir.path().join(LIST), "other").unwrap();
        assert!(SetupManifest::read(dir.path()).unwrap().is_none());
    }
}
