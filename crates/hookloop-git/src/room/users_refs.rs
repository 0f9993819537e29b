//! The tags and branches of the user's repository, as a list that a repository in a room can have.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hookloop_core::digest::sha256_hex;
use hookloop_process::{WriteOptions, write_whole};
use serde::{Deserialize, Serialize};

use crate::repo::{FoundRepository, RepoError, state_file};
use crate::snapshot::SnapshotCommands;

/// The most refs of a room. Tags come first, then branches, then remote branches.
const REFS_MAX: usize = 50_000;
/// The most files of refs that are compared. With more, git lists the refs for each move.
const LOOSE_MAX: usize = 20_000;
const KINDS: [&str; 3] = ["refs/tags", "refs/heads", "refs/remotes"];
/// Files with refs, relative to the directory that all worktrees share.
const FILES: [&str; 2] = ["packed-refs", "reftable/tables.list"];
const LIST: &str = "users-refs.json";

/// The refs of the user's repository at the last move.
#[derive(Debug, Serialize, Deserialize)]
struct KnownRefs {
    /// Changes with the files of refs.
    fingerprint: String,
    text: String,
}

/// Returns the refs in the form of a `packed-refs` file. Git lists them only if a file of them changed.
pub(super) fn users_refs(
    commands: &SnapshotCommands,
    found: &FoundRepository,
    git_dir: &Path,
) -> Result<String, RepoError> {
    let path = git_dir.join(LIST);
    let fingerprint = fingerprint(&found.common);
    // Other content than refs is written again.
    let known: Option<KnownRefs> =
        fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let (Some(known), Some(fingerprint)) = (&known, &fingerprint)
        && known.fingerprint == *fingerprint
    {
        return Ok(known.text.clone());
    }
    let mut args = vec!["for-each-ref", "--format=%(objectname) %(refname)"];
    args.extend(KINDS);
    let said = commands.users(&found.git_dir, &args)?.well("for-each-ref")?;
    let text = chosen(&String::from_utf8_lossy(&said));
    match fingerprint {
        Some(fingerprint) => {
            let known = KnownRefs { fingerprint, text: text.clone() };
            let bytes = serde_json::to_vec(&known)
                .map_err(|error| RepoError::permanent(format!("refs are not written: {error}")))?;
            write_whole(&path, &bytes, WriteOptions::CACHE).map_err(RepoError::io(&path))?;
        }
        None => state_file::remove(&path)?,
    }
    Ok(text)
}

/// Returns as many lines as a room may have.
fn chosen(list: &str) -> String {
    let of_kind = |kind: &str| {
        let start = format!(" {kind}/");
        list.lines().filter(move |line| line.contains(&start))
    };
    let mut lines: Vec<&str> = KINDS.into_iter().flat_map(of_kind).take(REFS_MAX).collect();
    lines.sort_unstable_by_key(|line| line.split_once(' ').map(|(_, name)| name));
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns a text that changes with the files of refs; `None` if there are too many.
fn fingerprint(common: &Path) -> Option<String> {
    let mut text = String::new();
    let mut add = |path: &Path| {
        let Ok(found) = path.symlink_metadata() else { return false };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} {} {} {}.{} {}.{}",
            path.display(),
            found.ino(),
            found.size(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec()
        );
        found.is_dir()
    };
    for name in FILES {
        add(&common.join(name));
    }
    let mut left: Vec<_> = KINDS.iter().map(|kind| common.join(kind)).collect();
    let mut count = 0;
    while let Some(path) = left.pop() {
        count += 1;
        if count > LOOSE_MAX {
            return None;
        }
        if add(&path) {
            let entries = fs::read_dir(&path).ok()?;
            let start = left.len();
            left.extend(entries.flatten().map(|entry| entry.path()));
            left[start..].sort_unstable();
        }
    }
    Some(sha256_hex(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_in_the_order_of_their_names() {
        let list = "1 refs/heads/main\n2 refs/remotes/origin/main\n3 refs/tags/v1\n4 refs/stash\n";
        let expected = "1 refs/heads/main\n2 refs/remotes/origin/main\n3 refs/tags/v1\n";
        assert_eq!(chosen(list), expected);
    }

    #[test]
    fn a_changed_file_of_refs_changes_the_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let tags = dir.path().join("refs/tags");
        fs::create_dir_all(&tags).unwrap();
        let none = fingerprint(dir.path()).unwrap();
        assert_eq!(fingerprint(dir.path()).unwrap(), none);
        fs::write(tags.join("v1"), "1").unwrap();
        let one = fingerprint(dir.path()).unwrap();
        assert_ne!(one, none);
        fs::write(tags.join("v1"), "12").unwrap();
        let changed = fingerprint(dir.path()).unwrap();
        assert_ne!(changed, one);
        fs::write(dir.path().join("packed-refs"), "").unwrap();
        assert_ne!(fingerprint(dir.path()).unwrap(), changed);
    }
}
