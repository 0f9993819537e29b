//! The reasons why a source or a manifest is not read.

/// The reason why a source or a manifest is not read. Contains no text of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    #[error("{part} has more than {limit} {things}")]
    TooMany { part: &'static str, things: &'static str, limit: usize },
    #[error("{part} is nested more than {limit} levels deep")]
    TooDeep { part: &'static str, limit: usize },
    #[error("syntax error at line {line}")]
    Syntax { line: usize },
    /// The parser stopped at its limit of steps.
    #[error("the source takes too many steps to parse")]
    TooComplex,
    #[error("the grammar of the language cannot be loaded")]
    GrammarRefused,
    #[error("malformed {format}: {reason}")]
    Manifest { format: &'static str, reason: &'static str },
    /// The tests of the base have no place in the work.
    #[error("the tests of the base cannot be inserted: {reason}")]
    NotInsertable { reason: &'static str },
}

impl EvidenceError {
    pub(crate) fn not_insertable(reason: &'static str) -> EvidenceError {
        EvidenceError::NotInsertable { reason }
    }
}
