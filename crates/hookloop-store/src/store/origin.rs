//! The file of a view over a log that is elsewhere: how it is opened, and what it says about where it
//! comes from.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Engine, StoreError};
use crate::log::{LogError, Seq};
use crate::sqlite;
use crate::view::{self, View};

/// Which log the view is of.
const LOG: &str = "log";
/// What this machine has written to it and may not have read back yet.
pub(super) const WRITTEN: &str = "written";
/// What `identify` answered last time.
pub(super) const NOTE: &str = "note";

/// Which log a view belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub log: String,
    /// What to hand to `identify` the next time.
    pub note: String,
}

/// The file of a view, as it was found.
#[derive(Debug)]
pub struct ViewFile {
    pub(super) path: PathBuf,
    conn: Option<Connection>,
    noted: Option<String>,
}

impl ViewFile {
    /// Looks at the file at `path`, which need not be there.
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

/// The view in `file`, or one that is made there from the engine's last snapshot.
pub(super) fn open_view(
    engine: &dyn Engine,
    file: ViewFile,
    identify: impl FnOnce(Option<String>) -> Result<Identity, StoreError>,
) -> Result<Connection, StoreError> {
    let ViewFile { path, conn, noted } = file;
    let path = &path;
    let Identity { log, note } = identify(noted.clone())?;
    let conn = match conn {
        Some(conn) => conn,
        None => {
            unpack_snapshot(engine, path)?;
            let conn = sqlite::open(path)?;
            prepare(&conn)?;
            conn
        }
    };
    // What is lost with the machine is read again.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    let known = get(&conn, LOG)?;
    if known.as_ref() != Some(&log) || noted.as_ref() != Some(&note) {
        conn.execute_batch("BEGIN IMMEDIATE")?;
        if known.is_some_and(|known| known != log) {
            conn.execute_batch(view::DROP)?;
            conn.execute_batch(view::TABLES)?;
            conn.execute_batch("DELETE FROM event; DELETE FROM origin")?;
        }
        set(&conn, LOG, &log)?;
        set(&conn, NOTE, &note)?;
        conn.execute_batch("COMMIT")?;
    }
    Ok(conn)
}

/// Makes the file of a view from the engine's last snapshot, if it has one.
fn unpack_snapshot(engine: &dyn Engine, path: &Path) -> Result<(), StoreError> {
    let Some(snapshot) = engine.latest(sqlite::SCHEMA)? else { return Ok(()) };
    let unusable = |error: std::io::Error| LogError::Engine(Box::new(error));
    // It gets its name when it is whole.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, &snapshot.view).map_err(unusable)?;
    let named = match ready_draft(&draft, snapshot.head) {
        // One that another process has made meanwhile, and may use already, is as good: it stays.
        true => std::fs::hard_link(&draft, path).or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        }),
        // The log has it all.
        false => Ok(()),
    };
    Ok(std::fs::remove_file(&draft).and(named).map_err(unusable)?)
}

/// Whether the file at `path` is a view up to event `head`; makes it one that many processes of this machine can
/// use, which a copy of another's is not.
fn ready_draft(path: &Path, head: Seq) -> bool {
    let Ok(conn) = Connection::open(path) else { return false };
    matches!(sqlite::check_file(&conn), Ok(None))
        && View::new(&conn).totals().is_ok_and(|totals| totals.head == head)
        && prepare(&conn).is_ok()
        // What the machine that made the snapshot remembers is its own affair.
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

pub(super) fn set(conn: &Connection, key: &str, value: &str) -> Result<(), StoreError> {
    let mut insert = conn.prepare_cached("INSERT OR REPLACE INTO origin VALUES (?1, ?2)")?;
    insert.execute(params![key, value])?;
    Ok(())
}
