//! Symbolic links of a tree that lead out of the room: the files behind them are no part of the tree.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Room;
use super::index_entries::IndexEntries;
use super::survey::{joined, path};
use crate::repo::RepoError;
use crate::snapshot::unhex;

/// The most links on the way to a file.
const LINKS_MAX: usize = 40;

/// Returns the links, at most `max`. `top` is the working directory on which the files are mounted.
pub(super) fn find(room: &Room, top: &Path, max: usize) -> Result<Vec<PathBuf>, RepoError> {
    let mut found = Vec::new();
    for checkout in &room.state.checkouts {
        let prefix = unhex(&checkout.path)?;
        let index = room.git_dir(&prefix).join("index");
        let is_sha256 = checkout.tree.len() == 64;
        let Some(entries) = IndexEntries::read(&index, is_sha256)? else { continue };
        for entry in entries.entries.iter().filter(|entry| entry.is_link()) {
            let link = path(&joined(&prefix, &entry.path)).to_owned();
            // A link that a gate removed leads nowhere.
            let Ok(target) = fs::read_link(room.files.join(&link)) else { continue };
            if leads_out(&room.files, &link, &target, top) {
                found.push(link);
                if found.len() >= max {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// Returns whether a link leads out of the working directory, over the links of the room.
fn leads_out(files: &Path, link: &Path, target: &Path, top: &Path) -> bool {
    let mut at: Vec<OsString> = names(link.parent().unwrap_or(Path::new("")));
    let mut left: Vec<OsString> = Vec::new();
    if !follow(target, top, &mut at, &mut left) {
        return true;
    }
    let mut links = 1;
    while let Some(name) = left.pop() {
        if name == ".." {
            if at.pop().is_none() {
                return true;
            }
            continue;
        }
        at.push(name);
        let here: PathBuf = at.iter().collect();
        if let Ok(target) = fs::read_link(files.join(here)) {
            at.pop();
            links += 1;
            // The system follows no more links either.
            if links > LINKS_MAX || !follow(&target, top, &mut at, &mut left) {
                return true;
            }
        }
    }
    false
}

/// Puts the parts of a link's target before those that are left. Returns false if it is not in the working directory.
fn follow(target: &Path, top: &Path, at: &mut Vec<OsString>, left: &mut Vec<OsString>) -> bool {
    let relative = match target.strip_prefix(top) {
        Ok(relative) => {
            at.clear();
            relative
        }
        Err(_) if target.is_absolute() => return false,
        Err(_) => target,
    };
    left.extend(names(relative).into_iter().rev());
    true
}

fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| !matches!(part, Component::CurDir));
    names.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_out_of_the_working_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        symlink("../../..", dir.path().join("a/b/c/up")).unwrap();
        symlink("a/b", dir.path().join("down")).unwrap();
        symlink("circle", dir.path().join("circle")).unwrap();
        let leads = |link: &str, target: &str| {
            leads_out(dir.path(), Path::new(link), Path::new(target), Path::new("/home/ada/shop"))
        };
        assert!(leads("data", "/etc/passwd"));
        assert!(leads("data", ".."));
        assert!(leads("a/data", "../../other/file"));
        assert!(leads("a/data", "/home/ada/shop/../other"));
        assert!(leads("data", "/home/ada/shopping"));
        assert!(leads("data", "a/b/c/up/../secret"), "over a link to the top");
        assert!(leads("data", "circle/a"));
        assert!(!leads("data", "a/b/c/up/lib"));
        assert!(!leads("data", "down/../x"));
        assert!(leads("data", "down/../../../x"));
        assert!(!leads("data", "lib/data"));
        assert!(!leads("a/b/data", "../../lib/data"));
        assert!(!leads("data", "/home/ada/shop/lib"));
        assert!(!leads("a/data", "./../b/../c"));
    }
}
