//! Files that are copied into a room, because gates need them and git ignores them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use hookloop_core::digest::{hex, sha256_hex};

use super::Room;
use super::room_state::RoomCopy;
use super::survey::path;
use crate::repo::{RepoError, state_file};
use crate::snapshot::{SafeDirectory, unhex};

/// The most files that are copied into a room.
const COPIES_MAX: usize = 1_000;
const DRAFT: &str = "copy";

impl Room {
    /// Writes a file at a path from the top of the room's files. It does not become part of the tree.
    ///
    /// A path that leads through a link or out of the room is refused, as is a file of the tree.
    pub fn copy_in(&mut self, relative: &Path, content: &[u8]) -> Result<(), RepoError> {
        self.check_entered()?;
        check_path(relative)?;
        let bytes = relative.as_os_str().as_bytes();
        let tracked = self.tracked()?;
        if tracked.files.contains(bytes) || tracked.directories.contains(bytes) {
            return Err(refused(relative, "it is part of the tree"));
        }
        let unsafe_path = |why: String| refused(relative, &why);
        let directory = SafeDirectory::make(&self.files, relative).map_err(unsafe_path)?;
        let name = relative.file_name().unwrap_or_default();
        let full = self.files.join(relative);
        let is_file = full.symlink_metadata().is_ok_and(|found| found.is_file());
        let is_there = is_file && fs::read(&full).is_ok_and(|found| found == content);
        if !is_there {
            let draft = self.directory.join(DRAFT);
            fs::write(&draft, content).map_err(RepoError::io(&draft))?;
            if full.symlink_metadata().is_ok() {
                directory.remove(name).map_err(unsafe_path)?;
            }
            let is_executable = false;
            directory.write_file(name, &draft, name, is_executable).map_err(unsafe_path)?;
            state_file::remove(&draft)?;
        }
        let copy = RoomCopy { path: hex(bytes), sha256: sha256_hex(content) };
        self.state.copies.retain(|known| known.path != copy.path);
        self.state.copies.push(copy);
        if self.state.copies.len() > COPIES_MAX {
            return Err(refused(
                relative,
                &format!("a room has at most {COPIES_MAX} copied files"),
            ));
        }
        self.state.save(&self.directory)
    }

    /// Returns the paths of all copied files.
    pub(super) fn copy_paths(&self) -> Result<Vec<Vec<u8>>, RepoError> {
        self.state.copies.iter().map(|copy| unhex(&copy.path)).collect()
    }

    /// Returns the paths of copied files that have their content.
    pub(super) fn unchanged_copies(&self) -> Result<Vec<Vec<u8>>, RepoError> {
        let mut unchanged = Vec::new();
        for copy in &self.state.copies {
            let relative = unhex(&copy.path)?;
            // A link may have taken the place of a directory.
            if SafeDirectory::open(&self.files, path(&relative)).is_err() {
                continue;
            }
            let full = self.files.join(path(&relative));
            let is_file = full.symlink_metadata().is_ok_and(|found| found.is_file());
            if is_file && fs::read(&full).is_ok_and(|bytes| sha256_hex(bytes) == copy.sha256) {
                unchanged.push(relative);
            }
        }
        Ok(unchanged)
    }
}

fn check_path(relative: &Path) -> Result<(), RepoError> {
    let is_name = |part: Component<'_>| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    let is_empty = relative.as_os_str().is_empty();
    // A path is compared with those of trees, so it has one spelling.
    let is_plain =
        relative.components().collect::<std::path::PathBuf>().as_os_str() == relative.as_os_str();
    if is_empty || !is_plain || !relative.components().all(is_name) {
        return Err(refused(relative, "it is no path within the room's files"));
    }
    Ok(())
}

fn refused(relative: &Path, why: &str) -> RepoError {
    RepoError::permanent(format!("{} is not copied into a room: {why}", relative.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_file_has_a_path_within_the_room() {
        for (text, is_good) in [
            (".env.test", true),
            ("config/local.json", true),
            ("", false),
            ("/etc/passwd", false),
            ("../x", false),
            ("a/../../x", false),
            (".git/config", false),
            ("a/.GIT/config", false),
            ("a//b", false),
            ("./a", false),
            ("a/", false),
        ] {
            assert_eq!(check_path(Path::new(text)).is_ok(), is_good, "{text}");
        }
    }
}
