//! The reasons why a report is refused.

use std::io;
use std::path::PathBuf;

/// The reason why a report is refused. Contains no text of the report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("{part} has more than {limit} bytes")]
    TooLarge { part: &'static str, limit: u64 },
    #[error("{part} has more than {limit} {things}")]
    TooMany { part: &'static str, things: &'static str, limit: usize },
    #[error("{part} is nested more than {limit} levels deep")]
    TooDeep { part: &'static str, limit: usize },
    #[error(
        "not a known format: expected JUnit XML, CTRF, TAP, SARIF, `go test -json`, libtest JSON or Jest JSON"
    )]
    UnknownFormat,
    #[error("malformed at line {line}, column {column}: {reason}")]
    Malformed { line: usize, column: usize, reason: &'static str },
    /// Only character references and the five predefined entities of XML are read.
    #[error("refused at line {line}, column {column}: document types and entities are not read")]
    EntityRefused { line: usize, column: usize },
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("not a regular file: links, pipes and devices are not read")]
    NotRegular,
    #[error("the directory has no report files ({extensions})")]
    NoReports { extensions: String },
    #[error("no report file is named")]
    NoPaths,
    #[error("{}: {source}", path.display())]
    InFile { path: PathBuf, source: Box<ReportError> },
}

impl ReportError {
    /// Returns the error with the file that it is about, if it has none yet.
    pub(crate) fn in_file(self, path: PathBuf) -> ReportError {
        match self {
            ReportError::InFile { .. } => self,
            error => ReportError::InFile { path, source: Box::new(error) },
        }
    }

    /// Returns an error at a byte of a text.
    pub(crate) fn malformed(text: &str, offset: usize, reason: &'static str) -> ReportError {
        let (line, column) = position(text, offset);
        ReportError::Malformed { line, column, reason }
    }
}

/// Returns the line and the column of a byte, both counted from 1. Columns are bytes.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}
