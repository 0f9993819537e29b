//! Reads a file of another tool; it rejects files that are too large, not text, or outside the directory.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The longest file that is read.
const FILE_MAX: u64 = 64 * 1024 * 1024;
/// The largest file that is one document; larger files must be lines.
const DOCUMENT_MAX: usize = 4 * 1024 * 1024;
/// Of a document in YAML.
const NODES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 64;
const ANCHORS_MAX: usize = 100;
const ALIASES_MAX: usize = 1_000;

/// A file that was read.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl SourceFile {
    pub(super) fn read(path: &Path) -> Result<SourceFile, String> {
        let said = |error: std::io::Error| error.to_string();
        let found = fs::symlink_metadata(path).map_err(said)?;
        if found.is_symlink() && leads_out(path) {
            return Err("this is a link that leads out of its directory".to_owned());
        }
        // The path could be a pipe without a writer.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).map_err(said)?;
        if !file.metadata().map_err(said)?.is_file() {
            return Err("this is not a file".to_owned());
        }
        let mut bytes = Vec::new();
        file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(said)?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("it is longer than {FILE_MAX} bytes, which are enough"));
        }
        let text = String::from_utf8(bytes).map_err(|wrong| {
            let line = wrong.as_bytes()[..wrong.utf8_error().valid_up_to()].split(|b| *b == b'\n');
            format!("line {} is not UTF-8", line.count())
        })?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(SourceFile { path: path.to_owned(), text })
    }

    /// The name of the file, without its directory.
    pub(super) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    pub(super) fn ends_with(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.name().ends_with(end))
    }

    pub(super) fn json(&self) -> Result<Value, String> {
        self.check_length()?;
        serde_json::from_str(&self.text).map_err(|error| error.to_string())
    }

    /// YAML, with the anchors that others allow.
    pub(super) fn yaml(&self) -> Result<Value, String> {
        self.check_length()?;
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_aliases: ALIASES_MAX,
                max_anchors: ANCHORS_MAX,
                max_depth: DEPTH_MAX,
                max_documents: 1,
                max_nodes: NODES_MAX,
            },
            with_snippet: false,
            strict_booleans: true,
        };
        serde_saphyr::from_str_with_options(&self.text, options).map_err(|error| error.to_string())
    }

    /// JSON objects, one a line, with the number of each.
    pub(super) fn json_lines(&self) -> impl Iterator<Item = Result<(usize, Value), String>> {
        let lines = self.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(index, line)| {
            let number = index + 1;
            let read = serde_json::from_str(line);
            read.map(|value| (number, value)).map_err(|error| format!("line {number}: {error}"))
        })
    }

    fn check_length(&self) -> Result<(), String> {
        if self.text.len() > DOCUMENT_MAX {
            Err(format!("it is longer than {DOCUMENT_MAX} bytes, which are enough"))
        } else {
            Ok(())
        }
    }
}

/// Whether a link's file is not below the directory that the link is in.
fn leads_out(link: &Path) -> bool {
    let directory = link.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    match (link.canonicalize(), directory) {
        (Ok(file), Ok(directory)) => !file.starts_with(directory),
        _ => true,
    }
}
