//! Lists files that differ from an index, and updates an index with them.
//!
//! `git add` would do both. But it also queries each nested repository under that repository's own configuration,
//! whose filters are commands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Lists files that were changed, deleted, or are new and not ignored, each with a zero byte behind it.
pub(crate) const CHANGED: [&str; 7] =
    ["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard", "--deduplicate"];
/// Adds such a list to an index, without the files that [`without_replaced`] separates.
pub(crate) const TAKE_IN: [&str; 6] =
    ["update-index", "-z", "--add", "--replace", "--remove", "--stdin"];
/// Removes the files of such a list from an index.
pub(crate) const TAKE_OUT: [&str; 4] = ["update-index", "-z", "--force-remove", "--stdin"];

/// Returns the paths, and separately those of files that a directory has replaced.
pub(crate) fn without_replaced(top: &Path, paths: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut kept, mut replaced) = (Vec::new(), Vec::new());
    for path in paths.split_inclusive(|byte| *byte == 0) {
        let name = path.strip_suffix(b"\0").unwrap_or(path);
        let found = top.join(OsStr::from_bytes(name));
        let is_directory = found.symlink_metadata().is_ok_and(|found| found.is_dir());
        // A nested repository may be a linked one.
        match is_directory && !found.join(".git").exists() {
            true => replaced.extend_from_slice(path),
            false => kept.extend_from_slice(path),
        }
    }
    (kept, replaced)
}

/// Returns the paths without nested repositories, which are listed as directories.
pub(crate) fn without_repositories(paths: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(paths.len());
    for path in paths.split_inclusive(|byte| *byte == 0) {
        if !path.ends_with(b"/\0") {
            kept.extend_from_slice(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_repositories_are_excluded() {
        assert_eq!(without_repositories(b"a\0sub/\0b/c\0"), b"a\0b/c\0");
        assert_eq!(without_repositories(b""), b"");
    }
}
