//! Reads files inside a project. A link that leads out of the project is an error.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::NoTests;

/// Largest size of a file. Longer files do not describe tests.
const FILE_MAX: u64 = 4 * 1024 * 1024;
/// Largest number of directory entries, and largest depth, of a search.
const ENTRIES_MAX: usize = 10_000;
const DEPTH_MAX: usize = 6;

#[derive(Debug)]
pub struct TestedProject {
    /// The canonical path.
    root: PathBuf,
}

impl TestedProject {
    pub fn new(root: &Path) -> Result<TestedProject, NoTests> {
        let root = root.canonicalize().map_err(|error| unreadable(root, &error.to_string()))?;
        Ok(TestedProject { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the project has this file.
    pub fn has(&self, name: &str) -> Result<bool, NoTests> {
        Ok(self.place(name)?.is_some())
    }

    /// Returns the content of a file, if it exists.
    pub fn read(&self, name: &str) -> Result<Option<String>, NoTests> {
        let Some(path) = self.place(name)? else { return Ok(None) };
        let wrong = |error: std::io::Error| unreadable(Path::new(name), &error.to_string());
        // Another process could have replaced it by a pipe without a writer.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(unreadable(Path::new(name), &format!("is longer than {FILE_MAX} bytes")));
        }
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| unreadable(Path::new(name), "is not text in UTF-8"))?;
        Ok(Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()))
    }

    /// Returns the names in the project's directory.
    pub fn names(&self) -> Result<Vec<String>, NoTests> {
        let wrong = |error: std::io::Error| unreadable(&self.root, &error.to_string());
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(wrong)?.take(ENTRIES_MAX) {
            names.extend(entry.map_err(wrong)?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// Whether a file below a directory has a matching name. Links are not followed.
    pub fn any_below(
        &self,
        directory: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<bool, NoTests> {
        let top = self.root.join(directory);
        if !fs::symlink_metadata(&top).is_ok_and(|found| found.is_dir()) {
            return Ok(false);
        }
        let mut waiting = VecDeque::from([(top, 0)]);
        let mut looked_at = 0;
        while let Some((place, depth)) = waiting.pop_front() {
            let wrong = |error: std::io::Error| unreadable(&place, &error.to_string());
            for entry in fs::read_dir(&place).map_err(wrong)? {
                let entry = entry.map_err(wrong)?;
                looked_at += 1;
                if looked_at > ENTRIES_MAX {
                    let why =
                        format!("has more than {ENTRIES_MAX} entries and none that is a test");
                    return Err(unreadable(Path::new(directory), &why));
                }
                let kind = entry.file_type().map_err(wrong)?;
                if kind.is_dir() && depth < DEPTH_MAX {
                    waiting.push_back((entry.path(), depth + 1));
                } else if kind.is_file() && entry.file_name().to_str().is_some_and(&is_meant) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the files below a directory with a matching name, relative to the project's root.
    ///
    /// Links are not followed. Returns `None` if there are more than `ENTRIES_MAX` entries.
    pub fn all_below(
        &self,
        directory: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Option<Vec<String>>, NoTests> {
        let mut found = Vec::new();
        let top = self.root.join(directory);
        if !fs::symlink_metadata(&top).is_ok_and(|found| found.is_dir()) {
            return Ok(Some(found));
        }
        let mut waiting = VecDeque::from([(directory.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((place, depth)) = waiting.pop_front() {
            let wrong = |error: std::io::Error| unreadable(Path::new(&place), &error.to_string());
            for entry in fs::read_dir(self.root.join(&place)).map_err(wrong)? {
                let entry = entry.map_err(wrong)?;
                looked_at += 1;
                let kind = entry.file_type().map_err(wrong)?;
                if looked_at > ENTRIES_MAX || (kind.is_dir() && depth >= DEPTH_MAX) {
                    return Ok(None);
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = format!("{place}/{name}");
                if kind.is_dir() {
                    waiting.push_back((path, depth + 1));
                } else if kind.is_file() && is_meant(&name) {
                    found.push(path);
                }
            }
        }
        Ok(Some(found))
    }

    /// Returns the real path of a project file.
    fn place(&self, name: &str) -> Result<Option<PathBuf>, NoTests> {
        let wrong = |why: &str| Err(unreadable(Path::new(name), why));
        let path = match self.root.join(name).canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A broken link shows that a file is missing.
                return match fs::symlink_metadata(self.root.join(name)) {
                    Ok(_) => wrong("is a link to nothing"),
                    Err(_) => Ok(None),
                };
            }
            Err(error) => return wrong(&error.to_string()),
        };
        if !path.starts_with(&self.root) {
            return wrong("is a link that leads out of the project");
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => Ok(Some(path)),
            Ok(_) => Ok(None),
            Err(error) => wrong(&error.to_string()),
        }
    }
}

pub(crate) fn unreadable(file: &Path, why: &str) -> NoTests {
    NoTests::Unreadable { file: file.display().to_string(), why: why.to_owned() }
}
