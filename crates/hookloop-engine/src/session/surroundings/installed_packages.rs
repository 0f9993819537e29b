//! The files of installed Python packages, with the hashes that installers record.
//!
//! An installer that keeps packages in a cache gives each file several names. The time of the last change of such a file
//! is that of its newest name in any environment. So its content decides whether it changed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use hookloop_core::digest::{hex, sha256_hex};
use hookloop_git::files::read_text;

/// The directories of packages, each beside the records about its files.
const DIRECTORIES: [&str; 2] = ["site-packages", "dist-packages"];
/// Maximum records of one directory.
const RECORDS_MAX: usize = 10_000;
/// Maximum bytes of a record.
const RECORD_MAX: u64 = 16 * 1024 * 1024;
/// Maximum bytes of all files whose content is compared.
const BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The recorded hashes of packages, by the path of the file.
#[derive(Debug, Default)]
pub(super) struct PackageHashes {
    by_directory: HashMap<PathBuf, HashMap<PathBuf, String>>,
    bytes: u64,
}

impl PackageHashes {
    /// Whether a file has the content that a record names. `is_changed` tells whether a record may be wrong.
    pub(super) fn match_content(
        &mut self,
        path: &Path,
        is_changed: impl Fn(&Path) -> bool,
    ) -> bool {
        let is_packages = |above: &&Path| DIRECTORIES.iter().any(|name| above.ends_with(name));
        let Some(directory) = path.ancestors().skip(1).find(is_packages) else { return false };
        let hashes = self
            .by_directory
            .entry(directory.to_owned())
            .or_insert_with(|| recorded(directory, is_changed));
        let Some(hash) = hashes.get(path) else { return false };
        self.bytes =
            self.bytes.saturating_add(fs::metadata(path).map_or(BYTES_MAX, |data| data.len()));
        self.bytes <= BYTES_MAX && fs::read(path).is_ok_and(|content| sha256_hex(content) == *hash)
    }
}

/// Returns the hashes in the unchanged records of a directory.
fn recorded(directory: &Path, is_changed: impl Fn(&Path) -> bool) -> HashMap<PathBuf, String> {
    let Ok(entries) = fs::read_dir(directory) else { return HashMap::new() };
    let records = entries.flatten().map(|entry| entry.path().join("RECORD")).take(RECORDS_MAX);
    let mut hashes = HashMap::new();
    for record in records.filter(|record| record.is_file() && !is_changed(record)) {
        let Ok(text) = read_text(&record, RECORD_MAX) else { continue };
        for line in text.lines() {
            let mut fields = line.rsplitn(3, ',').skip(1);
            let (Some(hash), Some(path)) = (fields.next(), fields.next()) else { continue };
            let hash = hash.strip_prefix("sha256=").map(str::as_bytes);
            let Some(Ok(hash)) = hash.map(|hash| BASE64URL_NOPAD.decode(hash)) else { continue };
            let hash = hex(&hash);
            let known = hashes.entry(directory.join(path)).or_insert_with(|| hash.clone());
            if *known != hash {
                // Two records about one file prove nothing.
                known.clear();
            }
        }
    }
    hashes
}
