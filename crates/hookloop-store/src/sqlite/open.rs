//! Opens the file of a log or a view, and migrates its tables.

use std::path::Path;

use hookloop_core::store_config::TABLES_VERSION as SCHEMA;
use rusqlite::{Connection, OptionalExtension, params};

use super::damage::{LogLoss, LogOpenError};
use super::replay::remake_view;
use super::settings::{configured, is_busy, wait_for_others};
use crate::chain::ChainHash;
use crate::log::LogError;
use crate::recorded_head::RecordedHead;
use crate::seq::Seq;
use crate::view::{self, View};

/// Opens or creates the file, and migrates its tables to [`SCHEMA`].
pub(crate) fn open(path: &Path) -> Result<Connection, LogOpenError> {
    let conn = configured(Connection::open(path)?)?;
    migrate(&conn)?;
    Ok(conn)
}

/// Opens the file as [`open`] does, unless it is known to have lost events.
pub(crate) fn open_unless_lost(path: &Path) -> Result<Connection, LogOpenError> {
    check_not_emptied(path)?;
    // Read first: a record never names an event that is not on disk yet.
    let recorded = RecordedHead::read(path);
    let conn = open(path)?;
    let Some(recorded) = recorded else { return Ok(conn) };
    let head = conn.query_row("SELECT head FROM totals", [], |row| row.get::<_, i64>(0));
    match head {
        Ok(head) if (head as Seq) < recorded.seq => Err(LogOpenError::Lost(LogLoss {
            path: path.to_owned(),
            found: Some(head as Seq),
            acknowledged: Some(recorded.seq),
        })),
        // If the view is unreadable, its first query reports that.
        _ => Ok(conn),
    }
}

/// Fails if the file is missing or empty although events were acknowledged.
///
/// SQLite must not open the file for this check: it would delete a WAL that is left beside it.
pub(crate) fn check_not_emptied(path: &Path) -> Result<(), LogOpenError> {
    if !is_file_empty(path) {
        return Ok(());
    }
    let Some(recorded) = RecordedHead::read(path).filter(|head| head.seq > 0) else {
        return Ok(());
    };
    // Another process may have created the file and stored its first event since the first check.
    if !is_file_empty(path) {
        return Ok(());
    }
    let acknowledged = Some(recorded.seq);
    Err(LogOpenError::Lost(LogLoss { path: path.to_owned(), found: None, acknowledged }))
}

/// Whether the file at `path` is missing or empty.
pub fn is_file_empty(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(found) => found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Opens a view in memory.
pub(crate) fn open_in_memory() -> Result<Connection, LogOpenError> {
    let conn = configured(Connection::open_in_memory()?)?;
    migrate(&conn)?;
    Ok(conn)
}

fn migrate(conn: &Connection) -> Result<(), LogOpenError> {
    let version = |conn: &Connection| conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    match version(conn)? {
        SCHEMA => return Ok(()),
        found if found > SCHEMA => return Err(LogOpenError::Newer { found }),
        _ => {}
    }
    use_wal(conn)?;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    // Another process may have been faster.
    match version(conn)? {
        0 => {
            conn.execute_batch(include_str!("../log.sql"))?;
            conn.execute_batch(include_str!("../heartbeat.sql"))?;
            conn.execute_batch(view::TABLES)?;
        }
        1 => {
            conn.execute_batch(include_str!("../heartbeat.sql"))?;
            remake_for_new_tables(conn)?;
        }
        // Later versions changed only tables or indexes of the view, which is rebuilt from the log.
        2..SCHEMA => remake_for_new_tables(conn)?,
        SCHEMA => {}
        found => return Err(LogOpenError::Newer { found }),
    }
    conn.pragma_update(None, "user_version", SCHEMA)?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}

/// Sets the WAL mode, which stays in the file. `synchronous = FULL` is SQLite's default.
///
/// SQLite reads first and then writes, and does not wait for other processes that do the same. If
/// many processes open a new file at once, all but one would fail with a locked file.
fn use_wal(conn: &Connection) -> Result<(), rusqlite::Error> {
    let mut tries = 0;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && wait_for_others(tries) => tries += 1,
            said => return said,
        }
    }
}

/// Rebuilds the view with the tables of this version, and keeps the acknowledged head.
///
/// If the log ends before that head, events are missing, and the migration must not hide it.
fn remake_for_new_tables(conn: &Connection) -> Result<(), LogError> {
    let acknowledged = conn.query_row("SELECT head, hash FROM totals", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, ChainHash>(1)?))
    });
    let is_elsewhere = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'origin')";
    let is_elsewhere: bool = conn.query_row(is_elsewhere, [], |row| row.get(0))?;
    if is_elsewhere {
        // The view of a log on servers has copies of the few due events only, so it is read again
        // from the servers.
        conn.execute_batch("DELETE FROM event")?;
    }
    remake_view(conn, &mut |_| ())?;
    let Some((head, hash)) = acknowledged.optional()? else { return Ok(()) };
    if is_elsewhere {
        let keep = "INSERT OR REPLACE INTO origin VALUES ('acknowledged', ?1)";
        conn.execute(keep, [head.to_string()])?;
    } else if View::new(conn).totals()?.head <= head as Seq {
        conn.execute("UPDATE totals SET head = ?1, hash = ?2", params![head, hash])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_in_wal_mode_with_full_sync() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let conn = open(&dir.path().join("log.db")).unwrap();
            let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            let full: i64 = conn.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
            assert_eq!((mode.as_str(), full), ("wal", 2));
        }
    }

    #[test]
    fn a_new_file_can_be_opened_by_many_threads_at_once() {
        const ROUNDS: usize = 40;
        const OPENERS: usize = 8;
        let dir = tempfile::tempdir().unwrap();
        for round in 0..ROUNDS {
            let path = dir.path().join(format!("log-{round}.db"));
            let all_are_there = std::sync::Barrier::new(OPENERS);
            let opener = || {
                all_are_there.wait();
                open(&path).map(drop)
            };
            let opened: Vec<_> = std::thread::scope(|scope| {
                let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(opener)).collect();
                openers.into_iter().map(|opener| opener.join().unwrap()).collect()
            });
            assert!(opened.iter().all(Result::is_ok), "round {round}: {opened:?}");
        }
    }

    #[test]
    fn a_file_of_a_newer_schema_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        open(&path).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
        assert!(matches!(open(&path), Err(LogOpenError::Newer { found }) if found == SCHEMA + 1));
    }
}
