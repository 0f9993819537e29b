//! Reads report files and directories of them.
//!
//! The code under test can put anything at the place of a report. So no link below the project is followed, and
//! only regular files are read.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use hookloop_core::checks::CheckRecords;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;

use crate::error::ReportError;
use crate::report::{self, FILE_BYTES_MAX};
use crate::sink::ReportSink;

/// Maximum bytes of all reports together.
pub const TOTAL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum number of report files.
pub const FILES_MAX: usize = 5_000;
/// Maximum entries of all directories together.
pub const ENTRIES_MAX: usize = 100_000;
/// Maximum depth of directories in a directory of reports.
pub const DIRECTORY_DEPTH_MAX: usize = 8;

/// The extensions of reports in a directory. Runners write other files beside them.
const EXTENSIONS: [&str; 6] = ["xml", "json", "jsonl", "ndjson", "sarif", "tap"];
const DIRECTORY_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE_FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Reads report files, and in directories all files with the extension of a report, in the order of their paths.
///
/// Relative paths are below `root`. All checks are merged. If the formats differ, the source is that of the first
/// file. A file that is missing, no report or malformed is an error that names the file.
pub fn read_files(paths: &[PathBuf], root: &Path) -> Result<CheckRecords, ReportError> {
    read_limited(paths, root, ReadLimits::DEFAULT)
}

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
struct ReadLimits {
    file_bytes: u64,
    total_bytes: u64,
    files: usize,
    entries: usize,
    depth: usize,
}

impl ReadLimits {
    const DEFAULT: ReadLimits = ReadLimits {
        file_bytes: FILE_BYTES_MAX,
        total_bytes: TOTAL_BYTES_MAX,
        files: FILES_MAX,
        entries: ENTRIES_MAX,
        depth: DIRECTORY_DEPTH_MAX,
    };
}

fn read_limited(
    paths: &[PathBuf],
    root: &Path,
    limits: ReadLimits,
) -> Result<CheckRecords, ReportError> {
    let mut listing = FileListing { limits, entries: 0, files: Vec::new() };
    for path in paths {
        let place = FilePlace::new(path, root);
        listing.add(&place).map_err(|error| error.in_file(place.shown()))?;
    }
    let mut files = listing.files;
    files.sort_by_key(FilePlace::path);
    files.dedup_by_key(|file| file.path());
    let mut bytes_left = limits.total_bytes;
    let mut sink = None;
    for file in &files {
        let bytes = file
            .bytes(limits.file_bytes, bytes_left)
            .and_then(|bytes| read_one(&bytes, root, &mut sink).map(|()| bytes.len() as u64))
            .map_err(|error| error.in_file(file.shown()))?;
        bytes_left -= bytes;
    }
    sink.map(ReportSink::finish).ok_or(ReportError::NoPaths)
}

fn read_one(bytes: &[u8], root: &Path, sink: &mut Option<ReportSink>) -> Result<(), ReportError> {
    let text = report::text_of(bytes)?;
    let format = report::format_of(&text)?;
    let sink = sink.get_or_insert_with(|| ReportSink::new(format.name(), root));
    report::read_into(&text, format, sink)
}

/// A path whose parts below `base` are opened one by one without following links.
#[derive(Clone, Debug)]
struct FilePlace {
    base: PathBuf,
    /// The base in messages: empty if it is the project.
    shown_base: PathBuf,
    parts: Vec<OsString>,
}

impl FilePlace {
    /// Returns the place of a path. The base of a path outside the project is the path's own directory.
    fn new(path: &Path, root: &Path) -> FilePlace {
        let path = root.join(path);
        let below = path.strip_prefix(root).ok().filter(|below| {
            below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        });
        if let Some(below) = below {
            let named = |part| match part {
                Component::Normal(name) => Some(OsStr::to_owned(name)),
                _ => None,
            };
            return FilePlace {
                base: root.to_owned(),
                shown_base: PathBuf::new(),
                parts: below.components().filter_map(named).collect(),
            };
        }
        let (base, parts) = match (path.parent(), path.file_name()) {
            (Some(base), Some(name)) => (base.to_owned(), vec![name.to_owned()]),
            _ => (path, Vec::new()),
        };
        FilePlace { shown_base: base.clone(), base, parts }
    }

    fn path(&self) -> PathBuf {
        self.base.iter().chain(self.parts.iter().map(OsString::as_os_str)).collect()
    }

    /// Returns the path for messages.
    fn shown(&self) -> PathBuf {
        self.shown_base.iter().chain(self.parts.iter().map(OsString::as_os_str)).collect()
    }

    fn child(&self, name: &OsStr) -> FilePlace {
        let mut child = self.clone();
        child.parts.push(name.to_owned());
        child
    }

    /// Opens the directory that contains the last part.
    fn parent(&self) -> Result<OwnedFd, ReportError> {
        let base = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = open(&self.base, base, Mode::empty()).map_err(refused)?;
        for part in self.parts.iter().take(self.parts.len().saturating_sub(1)) {
            let below = openat(&directory, part, DIRECTORY_FLAGS, Mode::empty());
            directory = below.map_err(refused)?;
        }
        Ok(directory)
    }

    /// Returns the type without opening the file: to open a device can have effects.
    fn kind(&self, parent: &OwnedFd) -> Result<FileType, ReportError> {
        let Some(name) = self.parts.last() else { return Ok(FileType::Directory) };
        let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(refused)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    fn directory(&self) -> Result<OwnedFd, ReportError> {
        let parent = self.parent()?;
        match self.parts.last() {
            Some(name) => openat(&parent, name, DIRECTORY_FLAGS, Mode::empty()).map_err(refused),
            None => Ok(parent),
        }
    }

    /// Reads a regular file.
    fn bytes(&self, file_limit: u64, total_left: u64) -> Result<Vec<u8>, ReportError> {
        let parent = self.parent()?;
        let Some(name) = self.parts.last() else { return Err(ReportError::NotRegular) };
        if self.kind(&parent)? != FileType::RegularFile {
            return Err(ReportError::NotRegular);
        }
        let file = openat(&parent, name, FILE_FLAGS | OFlags::RDONLY, Mode::empty());
        let file = File::from(file.map_err(refused)?);
        if !file.metadata()?.is_file() {
            return Err(ReportError::NotRegular);
        }
        let mut bytes = Vec::new();
        file.take(file_limit.min(total_left) + 1).read_to_end(&mut bytes)?;
        let length = bytes.len() as u64;
        if length > file_limit {
            return Err(ReportError::TooLarge { part: "the file", limit: file_limit });
        }
        if length > total_left {
            let limit = TOTAL_BYTES_MAX;
            return Err(ReportError::TooLarge { part: "the set of all reports", limit });
        }
        Ok(bytes)
    }
}

/// Returns the reason why a part of a path cannot be opened. A link is reported in two ways.
fn refused(error: Errno) -> ReportError {
    match error {
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO => ReportError::NotRegular,
        other => ReportError::Unreadable(io::Error::from(other)),
    }
}

/// The report files that were found.
struct FileListing {
    limits: ReadLimits,
    entries: usize,
    files: Vec<FilePlace>,
}

impl FileListing {
    /// Adds a named file, or the reports of a named directory.
    fn add(&mut self, place: &FilePlace) -> Result<(), ReportError> {
        let parent = place.parent()?;
        match place.kind(&parent)? {
            FileType::RegularFile => self.push(place.clone()),
            FileType::Directory => {
                let before = self.files.len();
                self.add_directory(place, 1)?;
                if self.files.len() == before {
                    return Err(ReportError::NoReports { extensions: EXTENSIONS.join(", ") });
                }
                Ok(())
            }
            _ => Err(ReportError::NotRegular),
        }
    }

    fn push(&mut self, place: FilePlace) -> Result<(), ReportError> {
        let limit = self.limits.files;
        if self.files.len() >= limit {
            let part = "the set of all reports";
            return Err(ReportError::TooMany { part, things: "files", limit });
        }
        self.files.push(place);
        Ok(())
    }

    fn add_directory(&mut self, place: &FilePlace, depth: usize) -> Result<(), ReportError> {
        let limit = self.limits.depth;
        if depth > limit {
            return Err(ReportError::TooDeep { part: "a directory of reports", limit });
        }
        let directory = place.directory()?;
        for entry in Dir::read_from(&directory).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            let limit = self.limits.entries;
            if self.entries > limit {
                let part = "the set of all directories";
                return Err(ReportError::TooMany { part, things: "entries", limit });
            }
            let child = place.child(name);
            match child.kind(&directory)? {
                FileType::Directory => self.add_directory(&child, depth + 1)?,
                FileType::RegularFile if is_report_name(name) => self.push(child)?,
                // A report that cannot be read must not look like one that is not there.
                _ if is_report_name(name) => {
                    return Err(ReportError::NotRegular.in_file(child.shown()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_report_name(name: &OsStr) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
