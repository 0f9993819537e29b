//! Losses and damage of a log, and the errors that report them.

use std::path::PathBuf;

use hookloop_core::store_config::TABLES_VERSION as SCHEMA;
use rusqlite::ErrorCode;

use crate::log::LogError;
use crate::seq::Seq;
use crate::view::ViewDifference;

#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    #[error("its tables have version {found}; this hookloop knows up to {SCHEMA}")]
    Newer { found: i64 },
    #[error("SQLite {found} is too old")]
    OldLibrary { found: String },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("its tables are of an older version, and can't be brought up to date: {0}")]
    Migration(#[from] LogError),
    #[error("{0}")]
    Lost(LogLoss),
}

/// The loss of a log: its file is missing, or lacks acknowledged events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLoss {
    pub path: PathBuf,
    /// The last event in the file, or `None` if the file is missing or empty.
    pub found: Option<Seq>,
    /// The last acknowledged event, if it is recorded.
    pub acknowledged: Option<Seq>,
}

impl std::fmt::Display for LogLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LogLoss { path, found, acknowledged } = self;
        let path = path.display();
        match found {
            Some(found) => write!(f, "the log in {path} ends at event {found}")?,
            None => write!(f, "the log is lost: {path} is missing or empty")?,
        }
        match acknowledged {
            Some(seq) => write!(f, ", but {seq} events were acknowledged"),
            None => f.write_str(", but sessions of this project are recorded beside it"),
        }
    }
}

/// The defect that a check of the chain found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogDefect {
    #[error("event {seq} is missing")]
    Missing { seq: Seq },
    #[error("event {seq} is not what was written")]
    Changed { seq: Seq },
    #[error("event {seq} can't be read: {reason}")]
    Unreadable { seq: Seq, reason: String },
    #[error("the log ends at event {found}, but {expected} were acknowledged")]
    Short { found: Seq, expected: Seq },
    #[error("{0}")]
    Lost(LogLoss),
    #[error("the last acknowledged event is recorded neither in the view nor beside the log")]
    NoHead,
    #[error("event {seq} is behind the last one that was acknowledged")]
    Extra { seq: Seq },
    #[error("the events up to {seq} are not those that were acknowledged")]
    Rewritten { seq: Seq },
    #[error("{messages} messages were removed from the stream of this log")]
    Removed { messages: u64 },
    #[error(
        "the stream of this log was deleted and created again: {expected} was the last event that was acknowledged before"
    )]
    Replaced { expected: Seq },
    #[error("{first} is not what the log says ({tables} tables differ)")]
    View { first: ViewDifference, tables: usize },
    #[error("the file is damaged: {0}")]
    File(String),
}

impl LogDefect {
    /// Returns the difference between a view and its log, if there is one.
    pub(crate) fn of_view(differences: Vec<ViewDifference>) -> Option<LogDefect> {
        let tables = differences.len();
        differences.into_iter().next().map(|first| LogDefect::View { first, tables })
    }

    /// Whether the remaining events form a log that can be continued.
    pub fn can_be_accepted(&self) -> bool {
        matches!(
            self,
            LogDefect::Short { .. }
                | LogDefect::Lost(_)
                | LogDefect::NoHead
                | LogDefect::Extra { .. }
                | LogDefect::Rewritten { .. }
                | LogDefect::Removed { .. }
                | LogDefect::Replaced { .. }
        )
    }
}

/// The damage of a log's file or its view, as SQLite reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileDamage {
    /// The file is not in the form that SQLite wrote.
    File(String),
    /// Tables or rows that are derived from the log are missing.
    View(String),
}

/// Returns the damage that `error` reports, if any.
pub(crate) fn damage_of(error: &rusqlite::Error) -> Option<FileDamage> {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Some(FileDamage::File(text)),
        // The end of the file is missing.
        Some(ErrorCode::SystemIoFailure) => Some(FileDamage::File(text)),
        _ if matches!(error, rusqlite::Error::QueryReturnedNoRows) => {
            Some(FileDamage::View("a row of the view is missing".to_owned()))
        }
        _ if text.contains("no such table") || text.contains("no such column") => {
            Some(FileDamage::View(text))
        }
        _ => None,
    }
}
