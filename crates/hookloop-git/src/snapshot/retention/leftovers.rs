//! Files that killed processes left in the store.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{entries, is_younger};
use crate::repo::{RepoError, state_file};

/// The start of the names of git's temporary files.
const OF_GIT: [&str; 2] = ["tmp_", ".tmp-"];
/// The start of the names of directories with the output of a git command.
const OUTPUT: &str = "answer-";

/// Removes files that no process has written to for this time.
pub(super) fn remove(store: &Path, now: SystemTime, age: Duration) -> Result<(), RepoError> {
    let objects = store.join("objects");
    let is_of_git = |name: &str| OF_GIT.iter().any(|start| name.starts_with(start));
    remove_in(store, now, age, |name| name.starts_with(OUTPUT))?;
    remove_in(&objects, now, age, is_of_git)?;
    for directory in entries(&objects)? {
        remove_in(&directory.path(), now, age, is_of_git)?;
    }
    // Git writes the index of a pack last, and it is deleted first.
    let packs = objects.join("pack");
    remove_in(&packs, now, age, |name| {
        let stem = name.strip_suffix(".pack").or_else(|| name.strip_suffix(".rev"));
        stem.is_some_and(|stem| !packs.join(format!("{stem}.idx")).exists())
    })?;
    remove_in(&store.join("lfs"), now, age, |name| name.ends_with(".new"))
}

fn remove_in(
    directory: &Path,
    now: SystemTime,
    age: Duration,
    is_leftover: impl Fn(&str) -> bool,
) -> Result<(), RepoError> {
    for entry in entries(directory)? {
        if !is_leftover(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if state_file::absent(&error) => continue,
            Err(error) => return Err(RepoError::io(&path)(error)),
        };
        if is_younger(found.modified().map_err(RepoError::io(&path))?, now, age) {
            continue;
        }
        if found.is_dir() {
            state_file::remove_all(&path)?;
        } else {
            state_file::remove(&path)?;
        }
    }
    Ok(())
}
