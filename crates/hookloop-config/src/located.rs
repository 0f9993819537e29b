//! Statements of a configuration file with the line that they are on.

use std::fmt;
use std::path::PathBuf;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    pub path: PathBuf,
    pub line: u64,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// Something that a policy says, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Said<T> {
    pub value: T,
    pub at: At,
}

/// What holds, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub rule: String,
    pub value: String,
    pub at: At,
}
