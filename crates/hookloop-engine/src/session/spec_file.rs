//! The specification of a session, as it was when the session began.
//!
//! The agent can write to the file, and must not make its own work smaller.

use std::path::Path;

use hookloop_git::files::read_text;
use hookloop_process::{WriteOptions, write_whole};

/// Maximum length of a specification.
const SPEC_MAX: u64 = 512 * 1024;
/// The copy in the session's directory.
const COPY: &str = "spec";

/// Returns the specification of a session, which the first call copies into the session's directory.
pub(crate) fn read(path: &Path, directory: &Path) -> Result<String, String> {
    let copy = directory.join(COPY);
    if copy.exists() {
        return read_text(&copy, SPEC_MAX);
    }
    let text = read_text(path, SPEC_MAX)?;
    let kept = write_whole(&copy, text.as_bytes(), WriteOptions::CACHE);
    kept.map_err(|error| format!("it can't be copied to {}: {error}", copy.display()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_stays_as_it_was_first_read() {
        let directory = tempfile::tempdir().unwrap();
        let spec = directory.path().join("SPEC.md");
        assert!(read(&spec, directory.path()).is_err());
        std::fs::write(&spec, "one").unwrap();
        assert_eq!(read(&spec, directory.path()), Ok("one".to_owned()));
        std::fs::write(&spec, "two").unwrap();
        assert_eq!(read(&spec, directory.path()), Ok("one".to_owned()));
    }
}
