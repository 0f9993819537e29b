//! Checks the file of a log from outside, without changes and within a time limit.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::sqlite::{self, AcknowledgedHeads, LogLoss, LogOpenError};

/// Time after which a lock held by another process is reported. A commit is shorter.
const BUSY_AFTER: Duration = Duration::from_millis(400);

/// The result of a checkup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheckup {
    /// The version of its tables.
    pub schema: i64,
    pub wholeness: FileIntegrity,
    /// Another process holds the write lock.
    pub is_busy: bool,
    pub bytes: u64,
    /// Acknowledged events that the log does not have.
    pub loss: Option<LogLoss>,
}

/// Whether SQLite finds the file intact. `verify` compares its events with the acknowledged ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileIntegrity {
    Whole,
    /// The check did not finish in time.
    Unknown,
    Damaged(String),
}

/// Returns the version of the library that reads the file.
pub fn library() -> &'static str {
    rusqlite::version()
}

/// Checks the file at `path`, for at most `within`.
pub fn look(path: &Path, within: Duration) -> Result<FileCheckup, LogOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_AFTER)?;
    let schema = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let is_busy = match conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
        Ok(()) => false,
        Err(error) if sqlite::is_busy(&error) => true,
        Err(error) => return Err(error.into()),
    };
    let wholeness = wholeness(&conn, within);
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    let loss = if wholeness == FileIntegrity::Whole { loss(&conn, path)? } else { None };
    Ok(FileCheckup { schema, wholeness, is_busy, bytes, loss })
}

/// Compares the end of the log with the acknowledged heads.
fn loss(conn: &Connection, path: &Path) -> Result<Option<LogLoss>, LogOpenError> {
    let acknowledged = AcknowledgedHeads::read(conn, path).last();
    let found = if sqlite::has_table(conn, "event")? { sqlite::last_place(conn)? } else { 0 };
    let is_short = acknowledged.is_some_and(|acknowledged| found < acknowledged);
    Ok(is_short.then(|| LogLoss { path: path.to_owned(), found: Some(found), acknowledged }))
}

/// Returns the loss of a log whose file is missing or empty although events were acknowledged.
pub fn loss_of_emptied(path: &Path) -> Option<LogLoss> {
    match sqlite::check_not_emptied(path) {
        Err(LogOpenError::Lost(loss)) => Some(loss),
        _ => None,
    }
}

fn wholeness(conn: &Connection, within: Duration) -> FileIntegrity {
    let interrupt = conn.get_interrupt_handle();
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_over.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let said = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        drop(over);
        match said {
            Ok(said) if said == "ok" => FileIntegrity::Whole,
            Ok(said) => FileIntegrity::Damaged(said),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                FileIntegrity::Unknown
            }
            Err(error) => FileIntegrity::Damaged(error.to_string()),
        }
    })
}
