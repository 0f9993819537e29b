//! Values of a configuration file, with their line.

use std::fmt;
use std::path::PathBuf;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    pub path: PathBuf,
    pub line: u64,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// A value of a policy, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyValue<T> {
    pub value: T,
    pub at: FileLine,
}

/// A rule in effect, as one line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyLine {
    pub rule: String,
    pub value: String,
    pub at: FileLine,
}
