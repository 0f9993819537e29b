//! Files that differ from an index, and what an index is told about them.
//!
//! `git add` would do both. It also asks each repository further down what it is like, and that one goes by its own
//! configuration, whose filters are commands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Lists files that were changed, are gone, or are new and not ignored, with a zero byte behind each.
pub(crate) const CHANGED: [&str; 7] =
    ["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard", "--deduplicate"];
/// Takes such a list in, but for what is in [`without_replaced`].
pub(crate) const TAKE_IN: [&str; 6] =
    ["update-index", "-z", "--add", "--replace", "--remove", "--stdin"];
/// Takes files out that are in such a list.
pub(crate) const TAKE_OUT: [&str; 4] = ["update-index", "-z", "--force-remove", "--stdin"];

/// The paths, and apart from them those of files in whose place there is a directory now.
pub(crate) fn without_replaced(top: &Path, paths: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut kept, mut replaced) = (Vec::new(), Vec::new());
    for path in paths.split_inclusive(|byte| *byte == 0) {
        let name = path.strip_suffix(b"\0").unwrap_or(path);
        let found = top.join(OsStr::from_bytes(name));
        let is_directory = found.symlink_metadata().is_ok_and(|found| found.is_dir());
        // A repository further down may be linked to.
        match is_directory && !found.join(".git").exists() {
            true => replaced.extend_from_slice(path),
            false => kept.extend_from_slice(path),
        }
    }
    (kept, replaced)
}

/// A repository further down is listed as a directory; it is not a part of this one.
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
    fn repositories_further_down_are_left_out() {
        assert_eq!(without_repositories(b"a\0sub/\0b/c\0"), b"a\0b/c\0");
        assert_eq!(without_repositories(b""), b"");
    }
}
