//! The entries of an index of git: the files of a checkout as git wrote them.
//!
//! Git compares times by the second, unless it was built otherwise. The index has them to the nanosecond. Reading it here
//! also saves a process for each list of files.

use std::fs;
use std::path::Path;

use hookloop_core::digest::hex;

use crate::repo::{RepoError, state_file};

/// The most bytes of an index.
const INDEX_MAX: u64 = 2 * 1024 * 1024 * 1024;
const HEADER: usize = 12;
/// The numbers before the name of the object: times, device, inode, mode, owner, group, size.
const NUMBERS: usize = 10;
/// Set in the flags of an entry with more flags.
const EXTENDED: u16 = 0x4000;
/// The bits of the flags that are not zero in a conflict.
const STAGE: u16 = 0x3000;
const TYPE: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const LINK: u32 = 0o120_000;

/// All entries of an index, in the order of their paths.
#[derive(Debug)]
pub(super) struct IndexEntries {
    pub(super) entries: Vec<IndexEntry>,
    /// The number of bytes of an object's name.
    name_bytes: usize,
}

/// One file of an index.
#[derive(Debug)]
pub(super) struct IndexEntry {
    pub(super) path: Vec<u8>,
    mode: u32,
    object: [u8; 32],
    pub(super) inode: EntryInode,
}

/// The state of a file when git wrote it. Numbers are cut to 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryInode {
    pub(super) changed: (u32, u32),
    pub(super) modified: (u32, u32),
    pub(super) number: u32,
    pub(super) size: u32,
}

impl IndexEntry {
    /// Whether the entry is a nested repository.
    pub(super) fn is_gitlink(&self) -> bool {
        self.mode & TYPE == GITLINK
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode & TYPE == LINK
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.path.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
    }
}

impl IndexEntries {
    /// Returns the entries of an index; `None` if there is no such file.
    pub(super) fn read(path: &Path, is_sha256: bool) -> Result<Option<IndexEntries>, RepoError> {
        let Some(bytes) = index_bytes(path)? else { return Ok(None) };
        parse(&bytes, is_sha256)
            .map(|(entries, _)| Some(entries))
            .ok_or_else(|| RepoError::permanent(format!("{} is no index", path.display())))
    }

    /// Writes an index with the entries alone, without git's knowledge about their trees.
    pub(super) fn copy_plain(from: &Path, to: &Path, is_sha256: bool) -> Result<(), RepoError> {
        let unread = || RepoError::permanent(format!("{} is no index", from.display()));
        let mut bytes = index_bytes(from)?.ok_or_else(unread)?;
        let (_, end) = parse(&bytes, is_sha256).ok_or_else(unread)?;
        bytes.truncate(end);
        // Git takes zeros for a digest that was left out.
        bytes.resize(end + name_bytes(is_sha256), 0);
        fs::write(to, bytes).map_err(RepoError::io(to))
    }

    /// Returns the commit of a nested repository; `None` if the path is not that of one.
    pub(super) fn gitlink(&self, path: &[u8]) -> Option<String> {
        let found = self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path));
        let entry = &self.entries[found.ok()?];
        entry.is_gitlink().then(|| self.object(entry))
    }

    /// Returns the name of an entry's object.
    pub(super) fn object(&self, entry: &IndexEntry) -> String {
        hex(&entry.object[..self.name_bytes])
    }

    /// Returns the paths and objects of all files with attributes.
    pub(super) fn attribute_files(&self) -> Vec<(&[u8], &[u8])> {
        let files = self.entries.iter().filter(|entry| entry.is_named(".gitattributes"));
        files.map(|entry| (entry.path.as_slice(), entry.object.as_slice())).collect()
    }

    /// Returns the entries whose file is another one than that of an earlier index.
    pub(super) fn written_since<'e>(
        &'e self,
        earlier: Option<&IndexEntries>,
    ) -> Vec<&'e IndexEntry> {
        let mut before = earlier.map_or(&[][..], |earlier| &earlier.entries).iter().peekable();
        let is_written = |entry: &&IndexEntry| {
            while before.next_if(|old| old.path < entry.path).is_some() {}
            let old = before.next_if(|old| old.path == entry.path);
            !entry.is_gitlink() && old.is_none_or(|old| old.inode != entry.inode)
        };
        self.entries.iter().filter(is_written).collect()
    }
}

fn name_bytes(is_sha256: bool) -> usize {
    if is_sha256 { 32 } else { 20 }
}

fn index_bytes(path: &Path) -> Result<Option<Vec<u8>>, RepoError> {
    match fs::metadata(path) {
        Err(error) if state_file::absent(&error) => Ok(None),
        Err(error) => Err(RepoError::io(path)(error)),
        Ok(found) if found.len() > INDEX_MAX => {
            let why = format!("{} has more than {INDEX_MAX} bytes", path.display());
            Err(RepoError::permanent(why))
        }
        Ok(_) => fs::read(path).map(Some).map_err(RepoError::io(path)),
    }
}

/// Returns all entries and the position after them; `None` for other content.
fn parse(bytes: &[u8], is_sha256: bool) -> Option<(IndexEntries, usize)> {
    let name_bytes = name_bytes(is_sha256);
    let version = number(bytes, 4)?;
    if !bytes.starts_with(b"DIRC") || !matches!(version, 2 | 3) {
        return None;
    }
    let count = number(bytes, 8)? as usize;
    // A wrong number must not reserve memory.
    let mut entries = Vec::with_capacity(count.min(bytes.len() / 64));
    let mut at = HEADER;
    for _ in 0..count {
        let (entry, next) = parse_entry(bytes, at, name_bytes)?;
        entries.push(entry);
        at = next;
    }
    Some((IndexEntries { entries, name_bytes }, at))
}

fn parse_entry(bytes: &[u8], at: usize, name_bytes: usize) -> Option<(IndexEntry, usize)> {
    let field = |position: usize| number(bytes, at + 4 * position);
    let after_numbers = at + 4 * NUMBERS;
    let mut object = [0; 32];
    object[..name_bytes].copy_from_slice(bytes.get(after_numbers..after_numbers + name_bytes)?);
    let flags_at = after_numbers + name_bytes;
    let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
    if flags & STAGE != 0 {
        return None;
    }
    let path_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
    let length = bytes.get(path_at..)?.iter().position(|byte| *byte == 0)?;
    let entry = IndexEntry {
        path: bytes.get(path_at..path_at + length)?.to_vec(),
        mode: field(6)?,
        object,
        inode: EntryInode {
            changed: (field(0)?, field(1)?),
            modified: (field(2)?, field(3)?),
            number: field(5)?,
            size: field(9)?,
        },
    };
    // One to eight zero bytes follow, up to a multiple of eight.
    let size = (path_at + length - at) / 8 * 8 + 8;
    Some((entry, at + size))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index with one entry, as git writes it.
    fn index(mode: u32, path: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        for number in [2, 1, 11, 12, 21, 22, 0, 31, mode, 0, 0, 41] {
            bytes.extend_from_slice(&u32::to_be_bytes(number));
        }
        bytes.extend_from_slice(&[7; 20]);
        bytes.extend_from_slice(&u16::to_be_bytes(u16::try_from(path.len()).unwrap()));
        bytes.extend_from_slice(path);
        let length = bytes.len() - HEADER;
        bytes.resize(HEADER + length / 8 * 8 + 8, 0);
        bytes
    }

    #[test]
    fn the_entries_of_an_index_have_their_paths_times_and_objects() {
        for length in 1..20 {
            let path = vec![b'a'; length];
            let bytes = index(0o100_644, &path);
            let (read, end) = parse(&bytes, false).unwrap();
            assert_eq!(end, bytes.len(), "padding for a path of {length} bytes");
            let [entry] = read.entries.as_slice() else { panic!("one entry") };
            assert_eq!(entry.path, path);
            let inode = EntryInode { changed: (11, 12), modified: (21, 22), number: 31, size: 41 };
            assert_eq!(entry.inode, inode);
            assert_eq!(read.object(entry), "07".repeat(20));
        }
    }

    #[test]
    fn other_files_are_no_index() {
        let bytes = index(0o100_644, b"a");
        assert!(parse(&bytes[..bytes.len() - 9], false).is_none());
        assert!(parse(b"DIRC", false).is_none());
        let mut version_4 = bytes;
        version_4[7] = 4;
        assert!(parse(&version_4, false).is_none());
    }

    #[test]
    fn a_file_was_written_if_it_is_new_or_its_inode_changed() {
        let bytes = index(0o100_644, b"a");
        let (old, _) = parse(&bytes, false).unwrap();
        let (same, _) = parse(&bytes, false).unwrap();
        assert!(same.written_since(Some(&old)).is_empty());
        assert_eq!(same.written_since(None).len(), 1);
        let (other, _) = parse(&index(0o100_644, b"b"), false).unwrap();
        assert_eq!(other.written_since(Some(&old)).len(), 1);
        let mut later = bytes;
        later[HEADER + 7] += 1;
        let (later, _) = parse(&later, false).unwrap();
        assert_eq!(later.written_since(Some(&old)).len(), 1);
    }
}
