//! Reads captured and hostile reports.
#![expect(clippy::unwrap_used, reason = "tests")]

mod captured;
mod hostile;

use std::fs;
use std::path::{Path, PathBuf};

fn captured_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured")
}

fn captured_bytes(file: &str) -> Vec<u8> {
    fs::read(captured_directory().join(file)).unwrap()
}

/// The directory in which all reports were written.
fn root() -> &'static Path {
    Path::new("/project")
}
