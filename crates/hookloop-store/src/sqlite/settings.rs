//! The configuration of SQLite for a log or a view.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::damage::LogOpenError;

/// The first version that does not lose committed data when a WAL is reset.
const SQLITE_MIN: i32 = 3_051_003;
/// Size from which a WAL is moved into the file on close.
///
/// It is small, because a process that opens the file alone reads the whole WAL once.
const CLOSE_WAL_BYTES: u64 = 160 * 1024;
/// Number of cached prepared statements.
const STATEMENTS: usize = 96;
/// Time that a writer waits for the lock of other processes.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(60);
const BUSY_SLEEP_MAX: Duration = Duration::from_millis(4);

pub(super) fn configured(mut conn: Connection) -> Result<Connection, LogOpenError> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(LogOpenError::OldLibrary { found: rusqlite::version().to_owned() });
    }
    conn.busy_handler(Some(wait_for_others))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A statement keeps its plan for all parameters. Otherwise SQLite plans some statements each
    // time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Sleeps a little longer each time, with a different jitter in each process, up to [`BUSY_LIMIT`].
pub(super) fn wait_for_others(tries: i32) -> bool {
    let tries = tries.unsigned_abs();
    let longest = BUSY_SLEEP_MAX.min(Duration::from_micros(100) * (tries + 1));
    let jitter = std::process::id().wrapping_mul(2_654_435_761).wrapping_add(tries * 40_503) % 64;
    std::thread::sleep(longest / 2 + longest / 128 * jitter);
    Duration::from_millis(3) * tries < BUSY_LIMIT
}

/// Lets the close of `conn` move the WAL into the file at `path`, if the WAL is large.
pub(crate) fn before_close(conn: &Connection, path: &Path) {
    if is_wal_large(path) {
        // Best effort: a WAL that stays is read by the next process.
        let set = conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        if let Err(error) = set {
            tracing::debug!(path = %path.display(), %error, "a large WAL stays");
        }
    }
}

pub(crate) fn is_wal_large(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    std::fs::metadata(wal).is_ok_and(|wal| wal.len() >= CLOSE_WAL_BYTES)
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}
