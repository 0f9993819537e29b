//! Bounded reading of the files that engines write.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Maximum bytes of one file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads a regular file below a directory. `None` if it is missing, too large, no text, or behind a link.
pub(crate) fn text_below(directory: &Path, path: &str) -> Option<String> {
    let mut at = directory.to_owned();
    for part in Path::new(path).components() {
        let std::path::Component::Normal(part) = part else { return None };
        at.push(part);
        if at.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
    }
    let metadata = fs::metadata(&at).ok()?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut text = String::new();
    File::open(&at).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_below_the_directory_are_read() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(home.path().join("outside"), "secret").unwrap();
        fs::write(inside.join("file"), "text").unwrap();
        std::os::unix::fs::symlink("../outside", inside.join("link")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        assert_eq!(text_below(&inside, "file").as_deref(), Some("text"));
        for path in ["link", "up/outside", "../outside", "missing", "/etc/hostname", ""] {
            assert_eq!(text_below(&inside, path), None, "{path}");
        }
    }
}
