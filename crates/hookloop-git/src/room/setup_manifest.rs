//! The result of the setup: every file that it left, with size, mode and times.
//!
//! A program can't set the time of the last change of an inode. So a file that a gate rewrote is noticed, even if it has
//! its old size and modification time.
//!
//! The manifest also names the trees and the session of the setup, and the files of the tree that the setup copied: its
//! result depends on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hookloop_core::digest::{hex, sha256_hex};
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::path_set::{PathSet, parent, visit};
use super::survey::path;
use super::trash::RoomTrash;
use crate::repo::{RepoError, state_file};
use crate::snapshot::unhex;

/// The most files of a setup.
const SETUP_FILES_MAX: usize = 1_000_000;
const VERSION: u32 = 2;
/// The most files of the tree that a setup copies. With more, its result holds for its own trees only.
const SOURCES_MAX: usize = 10_000;
/// Files of fewer bytes are too often the same by chance, unless their directories have the same name, too.
const SOURCE_BYTES_MIN: u64 = 16;
/// The largest copy that is looked for.
const SOURCE_BYTES_MAX: u64 = 64 * 1024 * 1024;
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
    #[serde(flatten)]
    origin: SetupOrigin,
    /// Files of the tree with the same name and content as files of the setup; none if there are too many.
    sources: Option<SetupSources>,
}

/// The circumstances in which a setup ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupOrigin {
    /// A digest of the trees in the room; empty if files of gates were there, too.
    pub(super) trees: String,
    /// The digest of the refs that the setup saw.
    pub(super) refs: Option<String>,
    pub(super) session: String,
}

/// The files of the tree that a setup copied.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SetupSources {
    files: Vec<SetupSource>,
    directories: Vec<SourceDirectory>,
}

/// A directory of the tree that a setup copied. A new file in it would have been copied, too.
#[derive(Debug, Serialize, Deserialize)]
struct SourceDirectory {
    /// The path from the top of the room's files, in hexadecimal digits.
    path: String,
    /// The digest of the names of the files.
    names: String,
}

/// A file of the tree that a setup copied.
#[derive(Debug, Serialize, Deserialize)]
struct SetupSource {
    /// The path from the top of the room's files, in hexadecimal digits.
    path: String,
    sha256: String,
}

/// The setup that is recorded.
#[derive(Debug)]
pub(super) struct NewSetup<'s> {
    pub(super) digest: &'s str,
    pub(super) origin: SetupOrigin,
    pub(super) tracked: &'s PathSet,
    /// The paths of copied files.
    pub(super) copies: &'s [Vec<u8>],
    /// Files of gates that were there before the setup.
    pub(super) left: Option<&'s PathSet>,
}

impl SetupManifest {
    /// Records all files that are neither tracked nor copied.
    pub(super) fn record(room: &Path, setup: &NewSetup<'_>) -> Result<(), RepoError> {
        let NewSetup { digest, origin, tracked, copies, left } = setup;
        let is_copy = |path: &[u8]| copies.iter().any(|copy| copy == path);
        let is_left = |path: &[u8], is_directory| {
            left.is_some_and(|left| match is_directory {
                true => left.directories.contains(path),
                false => left.files.contains(path),
            })
        };
        let files = entries(&room.join(super::FILES), |path, is_directory| match is_directory {
            _ if is_left(path, is_directory) => false,
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
        let header = ManifestHeader {
            version: VERSION,
            digest: (*digest).to_owned(),
            list: sha256_hex(&list),
            origin: origin.clone(),
            sources: copied_sources(&room.join(super::FILES), &files, tracked)?,
        };
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

    /// Returns the circumstances of the recorded setup.
    pub(super) fn origin(room: &Path) -> Result<Option<SetupOrigin>, RepoError> {
        Ok(header(room)?.map(|header| header.origin))
    }

    /// Returns whether the recorded setup has the result that it would have now, as far as it can be known: it ran on
    /// these trees, or in this session among the same files that it copied.
    pub(super) fn holds_for(
        room: &Path,
        now: &SetupOrigin,
        tracked: &PathSet,
    ) -> Result<bool, RepoError> {
        let Some(header) = header(room)? else { return Ok(false) };
        let is_own = header.origin.session == now.session;
        if header.origin.trees == now.trees && (is_own || header.origin.refs == now.refs) {
            return Ok(true);
        }
        let files = room.join(super::FILES);
        let is_same = |source: &SetupSource| {
            let path = unhex(&source.path).map(|relative| files.join(path(&relative)));
            path.is_ok_and(|path| {
                is_file(&path)
                    && fs::read(&path).is_ok_and(|read| sha256_hex(read) == source.sha256)
            })
        };
        let Some(sources) = header.sources.filter(|_| is_own) else { return Ok(false) };
        let paths: Result<Vec<Vec<u8>>, RepoError> =
            sources.directories.iter().map(|directory| unhex(&directory.path)).collect();
        let paths = paths?;
        let names = names_in(tracked, &paths.iter().map(Vec::as_slice).collect());
        let mut directories = sources.directories.iter().zip(&paths);
        let is_listed = directories
            .all(|(directory, path)| names.get(path.as_slice()) == Some(&directory.names));
        Ok(is_listed && sources.files.iter().all(is_same))
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

    /// Removes the files of the setup that no tree has, and its caches that changed.
    pub(super) fn discard(
        &self,
        room: &Path,
        tracked: &PathSet,
        trash: &RoomTrash,
    ) -> Result<(), RepoError> {
        let (files, caches) = (room.join(super::FILES), room.join(super::CACHES));
        let is_file =
            |entry: &&ManifestEntry| !matches!(entry.inode, ManifestInode::Directory { .. });
        for entry in self.files.iter().filter(is_file) {
            if !tracked.files.contains(&entry.path) {
                trash.discard(&files.join(path(&entry.path)))?;
            }
        }
        for entry in self.caches.iter().filter(is_file) {
            if !entry.is_unchanged(&caches) {
                trash.discard(&caches.join(path(&entry.path)))?;
            }
        }
        Ok(())
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

/// Returns the tracked files with the name and the content of a file that the setup left; none if there are too many.
///
/// A package that was installed by copying is found by them.
fn copied_sources(
    files: &Path,
    left: &[ManifestEntry],
    tracked: &PathSet,
) -> Result<Option<SetupSources>, RepoError> {
    let mut by_name: HashMap<(&[u8], u64), Vec<&[u8]>> = HashMap::new();
    for entry in left {
        let ManifestInode::Other { size, .. } = entry.inode else { continue };
        if size <= SOURCE_BYTES_MAX {
            by_name.entry((name_of(&entry.path), size)).or_default().push(&entry.path);
        }
    }
    let mut sources = SetupSources::default();
    let mut directories: BTreeSet<&[u8]> = BTreeSet::new();
    for source in &tracked.files {
        let full = files.join(path(source));
        let Ok(found) = full.symlink_metadata() else { continue };
        let Some(copies) = by_name.get(&(name_of(source), found.len())) else { continue };
        if !found.is_file() {
            continue;
        }
        let content = fs::read(&full).map_err(RepoError::io(&full))?;
        let is_copy = |copy: &&&[u8]| {
            let copy = files.join(path(copy));
            is_file(&copy) && fs::read(&copy).is_ok_and(|copied| copied == content)
        };
        let is_in_place = |copy: &&&[u8]| {
            name_of(parent(copy)) == name_of(parent(source)) && !parent(source).is_empty()
        };
        let has_directory = copies.iter().filter(is_in_place).any(|copy| is_copy(&copy));
        if has_directory {
            directories.insert(parent(source));
        }
        let is_large = found.len() >= SOURCE_BYTES_MIN;
        if has_directory || is_large && copies.iter().any(|copy| is_copy(&copy)) {
            sources.files.push(SetupSource { path: hex(source), sha256: sha256_hex(&content) });
        }
        if sources.files.len() > SOURCES_MAX {
            return Ok(None);
        }
    }
    let listed = names_in(tracked, &directories).into_iter();
    let listed = listed.map(|(path, names)| SourceDirectory { path: hex(path), names });
    sources.directories = listed.collect();
    Ok(Some(sources))
}

/// Returns a digest of the names of the tracked files in each of these directories.
fn names_in<'d>(tracked: &PathSet, directories: &BTreeSet<&'d [u8]>) -> BTreeMap<&'d [u8], String> {
    let mut names: BTreeMap<&[u8], Vec<&[u8]>> =
        directories.iter().map(|directory| (*directory, Vec::new())).collect();
    for file in &tracked.files {
        if let Some(names) = names.get_mut(parent(file)) {
            names.push(name_of(file));
        }
    }
    let digest = |mut names: Vec<&[u8]>| {
        names.sort_unstable();
        sha256_hex(names.join(&b'/'))
    };
    names.into_iter().map(|(directory, names)| (directory, digest(names))).collect()
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether there is a regular file. A pipe in its place would block a reader.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
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
        let (trees, session) = ("trees".to_owned(), "session".to_owned());
        let origin = SetupOrigin { trees, refs: None, session };
        let setup =
            NewSetup { digest: "digest", origin, tracked: &tracked, copies: &[], left: None };
        SetupManifest::record(dir.path(), &setup).unwrap();
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
