//! The files of a project: one digest for all of them, and the files that changed since the last look.
//!
//! Files that git ignores are left out. A file is read again only if its inode shows a write. So a look costs one
//! walk over the directories and the reading of changed files.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_core::digest::hex;
use ignore::WalkBuilder;
use sha2::{Digest, Sha256};

/// The most files of a project that are examined.
const FILES_MAX: usize = 500_000;
/// The longest file that is read. A longer one counts as changed if its inode changed.
const READ_MAX: u64 = 64 * 1024 * 1024;
/// A file that was written so shortly before a look is read again at the next one: its time may not change.
const RACY_NS: i128 = 100_000_000;
/// The number of bytes of a digest that distinguish two states.
const DIGEST_BYTES: usize = 16;
/// The files of a project as they were at the last look.
#[derive(Debug, Default)]
pub struct WatchedFiles {
    known: BTreeMap<PathBuf, KnownFile>,
    has_looked: bool,
    /// The files as another process saw them before the first look of this one.
    earlier: Option<SeenFiles>,
}

/// Names of files, each with a value that changes with the content or the mode.
pub type SeenFiles = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownFile {
    inode: FileInode,
    content: [u8; 32],
    /// The file was being written at the time.
    is_racy: bool,
}

impl KnownFile {
    fn seen(&self, path: &Path) -> (String, String) {
        let content = short_hex(&self.content);
        (path.display().to_string(), format!("{:o} {content}", self.inode.mode))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileInode {
    number: u64,
    mode: u32,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// The result of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesLook {
    /// The digest of all names and contents.
    pub digest: String,
    /// Files that were added, changed or deleted since the look before. Empty at the first look, unless another
    /// process looked before.
    pub changed: Vec<String>,
}

impl WatchedFiles {
    /// Returns files that another process has looked at before.
    pub fn after(earlier: Option<SeenFiles>) -> WatchedFiles {
        WatchedFiles { earlier, ..WatchedFiles::default() }
    }

    /// Returns the files of the last look, for another process; `None` without a look, or with more than `max`
    /// files.
    pub fn seen(&self, max: usize) -> Option<SeenFiles> {
        let is_kept = self.has_looked && self.known.len() <= max;
        is_kept.then(|| self.known.iter().map(|(path, known)| known.seen(path)).collect())
    }

    /// Looks at the files under `root`; `None` if there are too many, or the directory can't be walked.
    pub fn look(&mut self, root: &Path) -> Option<FilesLook> {
        let mut now = BTreeMap::new();
        let mut changed = Vec::new();
        for entry in walk(root) {
            let unread = |error: &ignore::Error| {
                tracing::warn!(root = %root.display(), %error, "the files can't be walked");
            };
            let entry = entry.inspect_err(unread).ok()?;
            let metadata = match entry.metadata() {
                Ok(metadata) if !metadata.is_dir() => metadata,
                _ => continue,
            };
            if now.len() >= FILES_MAX {
                return None;
            }
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
            let before = self.known.remove(&path);
            let known = known(entry.path(), &metadata, before);
            if before.map(|before| (before.content, before.inode.mode))
                != Some((known.content, known.inode.mode))
            {
                changed.push(path.display().to_string());
            }
            now.insert(path, known);
        }
        // The entries that remain are deleted files.
        changed.extend(self.known.keys().map(|path| path.display().to_string()));
        changed.sort();
        self.known = now;
        if !std::mem::replace(&mut self.has_looked, true) {
            changed = self.earlier.take().map_or_else(Vec::new, |earlier| self.since(earlier));
        }
        Some(FilesLook { digest: self.digest(), changed })
    }

    /// Returns the files that differ from those that another process saw.
    fn since(&self, mut earlier: SeenFiles) -> Vec<String> {
        let now = self.known.iter().map(|(path, known)| known.seen(path));
        let differs = |(name, value): (String, String)| {
            (earlier.remove(&name).as_ref() != Some(&value)).then_some(name)
        };
        let mut changed: Vec<String> = now.filter_map(differs).collect();
        changed.extend(earlier.into_keys());
        changed.sort();
        changed
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (path, known) in &self.known {
            let name = path.as_os_str().as_bytes();
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(known.inode.mode.to_le_bytes());
            hash.update(known.content);
        }
        short_hex(&hash.finalize())
    }
}

/// Returns the file under `root` to which this process writes its output or its errors, unless git ignores it.
pub fn own_output(root: &Path) -> Option<PathBuf> {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let outputs: Vec<(u64, u64)> = [out.as_fd(), err.as_fd()]
        .into_iter()
        .flat_map(|fd| File::from(fd.try_clone_to_owned().ok()?).metadata().ok())
        .filter(Metadata::is_file)
        .map(|metadata| (metadata.dev(), metadata.ino()))
        .collect();
    if outputs.is_empty() {
        return None;
    }
    let is_output = |entry: &ignore::DirEntry| {
        let metadata = entry.metadata();
        metadata.is_ok_and(|metadata| outputs.contains(&(metadata.dev(), metadata.ino())))
    };
    let entry = walk(root).take(FILES_MAX).flatten().find(is_output)?;
    Some(entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned())
}

/// Returns every file of the project that git does not ignore, including hidden ones.
pub fn walk(root: &Path) -> ignore::Walk {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).require_git(false).git_global(false).ignore(false).follow_links(false);
    builder.filter_entry(|entry| entry.file_name() != ".git");
    builder.build()
}

fn known(path: &Path, metadata: &Metadata, before: Option<KnownFile>) -> KnownFile {
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    let inode = FileInode {
        number: metadata.ino(),
        mode: metadata.mode(),
        size: metadata.size(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    };
    if let Some(before) = before.filter(|before| before.inode == inode && !before.is_racy) {
        return before;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let is_racy = i128::try_from(now).unwrap_or(i128::MAX) - inode.changed_ns < RACY_NS;
    KnownFile { inode, content: content(path, metadata, inode), is_racy }
}

fn content(path: &Path, metadata: &Metadata, inode: FileInode) -> [u8; 32] {
    let mut hash = Sha256::new();
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        hash.update(target.as_os_str().as_bytes());
        return hash.finalize().into();
    }
    let is_read = metadata.is_file() && inode.size <= READ_MAX;
    let mut piece = [0; 16 * 1024];
    let mut file = is_read.then(|| fs::File::open(path).ok()).flatten();
    match &mut file {
        Some(file) => {
            while let Ok(read @ 1..) = file.read(&mut piece) {
                hash.update(&piece[..read]);
            }
        }
        None => {
            hash.update(inode.size.to_le_bytes());
            hash.update(inode.modified_ns.to_le_bytes());
        }
    }
    hash.finalize().into()
}

/// Returns the content of a text file of at most `max` bytes.
pub fn read_text(path: &Path, max: u64) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    match size > max {
        true => Err(format!("it has {size} bytes; at most {max}")),
        false => fs::read_to_string(path).map_err(|error| error.to_string()),
    }
}

fn short_hex(digest: &[u8]) -> String {
    hex(&digest[..DIGEST_BYTES.min(digest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_reported_without_ignored_and_git_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a", "1");
        write("sub/b", "2");
        write(".gitignore", "target\n");
        write("target/x", "3");
        write(".git/index", "4");
        let mut files = WatchedFiles::default();
        let mut look = || files.look(dir.path()).unwrap();
        let first = look();
        assert_eq!(first.changed, [""; 0]);
        assert_eq!(look(), first, "nothing was written");
        write("a", "1");
        write("target/x", "5");
        write(".git/index", "6");
        assert_eq!(look(), first, "the same, ignored, or git's own");
        // The same size, at once: times alone would not tell.
        write("sub/b", "7");
        let second = look();
        assert_eq!(second.changed, ["sub/b"]);
        assert_ne!(second.digest, first.digest);
        fs::remove_file(dir.path().join("a")).unwrap();
        write("c", "8");
        assert_eq!(look().changed, ["a", "c"]);
        write("sub/b", "2");
        write("a", "1");
        fs::remove_file(dir.path().join("c")).unwrap();
        assert_eq!(look().digest, first.digest, "as it was");
    }

    #[test]
    fn changes_are_found_since_the_snapshot_of_another_process() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        for name in ["a", "b", "c"] {
            write(name, "1");
        }
        let mut first = WatchedFiles::default();
        assert_eq!(first.seen(10), None, "nobody has looked");
        first.look(dir.path()).unwrap();
        assert_eq!(first.seen(2), None, "too many");
        let seen = first.seen(3);
        write("a", "2");
        write("b", "1");
        fs::remove_file(dir.path().join("c")).unwrap();
        write("d", "1");
        let mut next = WatchedFiles::after(seen);
        assert_eq!(next.look(dir.path()).unwrap().changed, ["a", "c", "d"]);
        assert_eq!(next.look(dir.path()).unwrap().changed, [""; 0]);
        assert_eq!(WatchedFiles::after(None).look(dir.path()).unwrap().changed, [""; 0]);
    }
}
