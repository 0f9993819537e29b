//! The file of a view over a log on servers, and the record of its origin in it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::engine::LogEngine;
use super::error::StoreError;
use crate::log::{LogError, Seq};
use crate::sqlite;
use crate::view::{self, View};

/// Largest number of files beside a new view that are searched for older views.
const FILES_MAX: usize = 100;
/// The identity of the view's log.
const LOG: &str = "log";
/// The last event that this machine has written and may not have read yet.
pub(super) const WRITTEN: &str = "written";
/// The last event that was acknowledged before the view was emptied for new tables.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
/// The last acknowledged event of a stream that was recreated since.
pub(super) const REPLACED: &str = "replaced";
/// Messages that were removed from the stream before the view began. Their project is unknown.
pub(super) const REMOVED: &str = "removed";
/// The place of the last loss that a person accepted.
pub(super) const LOSS_ACCEPTED: &str = "loss_accepted";
/// The last answer of `identify`.
pub(super) const NOTE: &str = "note";

/// The identity of a view's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    pub log: String,
    /// The value that `identify` gets the next time.
    pub note: String,
}

/// The file of a view before it is opened.
#[derive(Debug)]
pub struct ViewFile {
    pub(super) path: PathBuf,
    conn: Option<Connection>,
    noted: Option<String>,
}

impl ViewFile {
    /// Opens the file at `path` if it exists.
    pub fn find(path: &Path) -> Result<ViewFile, StoreError> {
        let path = path.to_owned();
        if !path.exists() {
            return Ok(ViewFile { path, conn: None, noted: None });
        }
        let conn = sqlite::open(&path)?;
        prepare(&conn)?;
        let noted = get(&conn, NOTE)?;
        Ok(ViewFile { path, conn: Some(conn), noted })
    }
}

/// Opens the view in `file`, or creates it from the engine's last snapshot.
pub(super) fn open_view(
    engine: &dyn LogEngine,
    file: ViewFile,
    identify: impl FnOnce(Option<String>) -> Result<LogIdentity, StoreError>,
) -> Result<Connection, StoreError> {
    let ViewFile { path, conn, noted } = file;
    let path = &path;
    let LogIdentity { log, note } = identify(noted.clone())?;
    let conn = match conn {
        Some(conn) => conn,
        None => {
            unpack_snapshot(engine, path)?;
            let conn = sqlite::open(path)?;
            prepare(&conn)?;
            let acknowledged = acknowledged_before(path, &log);
            if acknowledged > 0 {
                set(&conn, ACKNOWLEDGED, &acknowledged.to_string())?;
            }
            conn
        }
    };
    // After a crash of the machine, events that the view lost are read again.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    let known = get(&conn, LOG)?;
    if known.as_ref() != Some(&log) || noted.as_ref() != Some(&note) {
        conn.execute_batch("BEGIN IMMEDIATE")?;
        if known.is_some_and(|known| known != log) {
            let before = View::new(&conn).totals()?.head.max(number(&conn, REPLACED)?);
            conn.execute_batch(view::DROP)?;
            conn.execute_batch(view::TABLES)?;
            conn.execute_batch("DELETE FROM event; DELETE FROM origin")?;
            if before > 0 {
                set(&conn, REPLACED, &before.to_string())?;
            }
        }
        set(&conn, LOG, &log)?;
        set(&conn, NOTE, &note)?;
        conn.execute_batch("COMMIT")?;
    }
    Ok(conn)
}

/// Returns the last event of `log` that this machine acknowledged in views of other versions.
///
/// Such a view is a file beside this one.
fn acknowledged_before(path: &Path, log: &str) -> Seq {
    let head = |other: PathBuf| -> Option<Seq> {
        let is_view = other.extension().is_some_and(|ending| ending == "db");
        if other == path || !is_view {
            return None;
        }
        // An unreadable file has no information about this log.
        let conn = Connection::open_with_flags(&other, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        let known = get(&conn, LOG).ok()??;
        let head = conn.query_row("SELECT head FROM totals", [], |row| row.get::<_, i64>(0));
        head.ok().filter(|_| known == log).map(|head| head as Seq)
    };
    // Without a readable directory there is no older view to compare with.
    let entries = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    let files = entries.into_iter().flatten().flatten().take(FILES_MAX);
    files.filter_map(|entry| head(entry.path())).max().unwrap_or(0)
}

/// Creates the file of a view from the engine's last snapshot, if there is one.
fn unpack_snapshot(engine: &dyn LogEngine, path: &Path) -> Result<(), StoreError> {
    let Some(snapshot) = engine.latest(sqlite::SCHEMA)? else { return Ok(()) };
    let unusable = |error: std::io::Error| LogError::Engine(Box::new(error));
    // The draft gets the final name when it is complete.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, &snapshot.view).map_err(unusable)?;
    let named = if ready_draft(&draft, snapshot.head) {
        // Keeps a view that another process has created meanwhile and may already use.
        std::fs::hard_link(&draft, path).or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })
    } else {
        // The whole log is read instead.
        Ok(())
    };
    Ok(std::fs::remove_file(&draft).and(named).map_err(unusable)?)
}

/// Whether the file at `path` is a view up to event `head`.
///
/// Prepares it for this machine, as it is a copy of another machine's view.
fn ready_draft(path: &Path, head: Seq) -> bool {
    let Ok(conn) = Connection::open(path) else { return false };
    matches!(sqlite::check_file(&conn), Ok(None))
        && View::new(&conn).totals().is_ok_and(|totals| totals.head == head)
        && prepare(&conn).is_ok()
        // Removes records of the machine that made the snapshot.
        && conn.execute("DELETE FROM origin WHERE key <> ?1", [LOG]).is_ok()
        && conn.pragma_update(None, "journal_mode", "WAL").is_ok()
}

fn prepare(conn: &Connection) -> Result<(), StoreError> {
    let table =
        "CREATE TABLE IF NOT EXISTS origin(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";
    Ok(conn.execute_batch(table)?)
}

pub(super) fn get(conn: &Connection, key: &str) -> Result<Option<String>, StoreError> {
    let mut select = conn.prepare_cached("SELECT value FROM origin WHERE key = ?1")?;
    Ok(select.query_row([key], |row| row.get(0)).optional()?)
}

/// Returns a number that is stored beside the view, or 0 if there is none.
pub(super) fn number(conn: &Connection, key: &str) -> Result<u64, StoreError> {
    let Some(value) = get(conn, key)? else { return Ok(0) };
    let damaged =
        |_| LogError::damaged(0, format!("`{key}` beside the view is no number: {value}"));
    Ok(value.parse().map_err(damaged)?)
}

pub(super) fn set(conn: &Connection, key: &str, value: &str) -> Result<(), StoreError> {
    let mut insert = conn.prepare_cached("INSERT OR REPLACE INTO origin VALUES (?1, ?2)")?;
    insert.execute(params![key, value])?;
    Ok(())
}
