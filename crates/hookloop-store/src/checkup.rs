//! A look at the file of a log from outside: nothing is changed, and it is over by a limit.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::sqlite::{self, AcknowledgedHeads, LogLoss, OpenError};

/// A lock that is held for longer is more than one commit.
const BUSY_AFTER: Duration = Duration::from_millis(400);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkup {
    /// The version of its tables.
    pub schema: i64,
    pub wholeness: Wholeness,
    /// Somebody holds the lock for writing.
    pub is_busy: bool,
    pub bytes: u64,
    /// Acknowledged events that the log does not have.
    pub loss: Option<LogLoss>,
}

/// Whether the file is what SQLite wrote. Whether its events are what was acknowledged, `verify` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wholeness {
    Whole,
    /// The time was over.
    Unknown,
    Damaged(String),
}

/// The library that reads the file.
pub fn library() -> &'static str {
    rusqlite::version()
}

/// Looks at the file at `path` for as long as `within`.
pub fn look(path: &Path, within: Duration) -> Result<Checkup, OpenError> {
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
    let loss = if wholeness == Wholeness::Whole { loss(&conn, path)? } else { None };
    Ok(Checkup { schema, wholeness, is_busy, bytes, loss })
}

/// Compares the end of the log with the acknowledged heads.
fn loss(conn: &Connection, path: &Path) -> Result<Option<LogLoss>, OpenError> {
    let acknowledged = AcknowledgedHeads::read(conn, path).last();
    let found = if sqlite::has_table(conn, "event")? { sqlite::last_place(conn)? } else { 0 };
    let is_short = acknowledged.is_some_and(|acknowledged| found < acknowledged);
    Ok(is_short.then(|| LogLoss { path: path.to_owned(), found: Some(found), acknowledged }))
}

/// The loss of a log whose file is missing or empty although events were acknowledged.
pub fn loss_of_emptied(path: &Path) -> Option<LogLoss> {
    match sqlite::check_not_emptied(path) {
        Err(OpenError::Lost(loss)) => Some(loss),
        _ => None,
    }
}

fn wholeness(conn: &Connection, within: Duration) -> Wholeness {
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
            Ok(said) if said == "ok" => Wholeness::Whole,
            Ok(said) => Wholeness::Damaged(said),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Wholeness::Unknown
            }
            Err(error) => Wholeness::Damaged(error.to_string()),
        }
    })
}
