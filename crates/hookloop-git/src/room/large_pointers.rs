//! Pointers to large files whose content is in no directory. A later move replaces them if the content has arrived.

use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::digest::hex;

use super::checkout::RoomCheckout;
use super::index_entries::{IndexEntries, IndexEntry};
use super::survey::path;
use crate::lfs::{LfsPointer, POINTER_MAX, find_content};
use crate::snapshot::unhex;

/// The fewest bytes of a pointer.
const POINTER_MIN: u32 = 80;
/// The most pointers of a room that are remembered.
const POINTERS_MAX: usize = 1_000;

impl RoomCheckout<'_> {
    /// Returns pointers that were written without their content and could have it now. The directories of all entries
    /// were found to be no links.
    pub(super) fn filled_pointers(&self, last: &[String], entries: &IndexEntries) -> Vec<PathBuf> {
        let is_filled =
            |file: &PathBuf| pointer(file).is_some_and(|pointer| self.has_content(&pointer));
        let names = last.iter().filter_map(|name| tracked(entries, name));
        names.map(|name| self.files.join(path(&name))).filter(is_filled).collect()
    }

    /// Returns the files that are pointers without content, among the written ones and those of the last move.
    pub(super) fn missing_pointers(
        &self,
        entries: &IndexEntries,
        written: &[&IndexEntry],
        last: &[String],
    ) -> Vec<String> {
        if !self.settings.has_large_files {
            return Vec::new();
        }
        let is_short = |entry: &&&IndexEntry| {
            let size = entry.inode.size;
            !entry.is_link() && size >= POINTER_MIN && u64::from(size) <= POINTER_MAX
        };
        let written = written.iter().filter(is_short).map(|entry| hex(&entry.path));
        let mut names: Vec<String> = written.chain(last.iter().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        let is_missing = |name: &String| {
            let file = tracked(entries, name).map(|name| self.files.join(path(&name)));
            let pointer = file.and_then(|file| pointer(&file));
            pointer.is_some_and(|pointer| !self.has_content(&pointer))
        };
        names.into_iter().filter(is_missing).take(POINTERS_MAX).collect()
    }

    fn has_content(&self, pointer: &LfsPointer) -> bool {
        find_content(self.content_directories(), pointer).is_some()
    }
}

/// Returns a path that the index has.
fn tracked(entries: &IndexEntries, name: &str) -> Option<Vec<u8>> {
    let name = unhex(name).ok()?;
    entries.entries.binary_search_by(|entry| entry.path.cmp(&name)).is_ok().then_some(name)
}

/// Returns the pointer that a file is.
fn pointer(file: &Path) -> Option<LfsPointer> {
    let found = file.symlink_metadata().ok()?;
    if !found.is_file() || found.len() > POINTER_MAX {
        return None;
    }
    LfsPointer::read(&fs::read(file).ok()?)
}
