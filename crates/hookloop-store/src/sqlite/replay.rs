//! Derives the view from the log in the same file.

use hookloop_core::event::Event;
use rusqlite::Connection;

use super::damage::{LogDefect, LogOpenError};
use super::event_rows::{each_event, insert};
use super::settings::configured;
use crate::log::LogError;
use crate::seq::Seq;
use crate::view::{self, View, ViewFold};

/// Empties the view and rebuilds it from the log in the same file.
pub(crate) fn remake_view(
    conn: &Connection,
    progress: &mut dyn FnMut(Seq),
) -> Result<(), LogError> {
    // Existing tables outside the view stay unchanged.
    conn.execute_batch(include_str!("../log.sql"))?;
    conn.execute_batch(include_str!("../heartbeat.sql"))?;
    conn.execute_batch(view::DROP)?;
    conn.execute_batch(view::TABLES)?;
    fold_log(conn, conn, progress)
}

/// Applies the log in `log` to the empty view in `into`, which may be the same file.
fn fold_log(
    log: &Connection,
    into: &Connection,
    progress: &mut dyn FnMut(Seq),
) -> Result<(), LogError> {
    let mut fold = ViewFold::new(into, View::new(into).totals()?);
    each_event(log, 1, |stored| {
        fold.apply(stored.seq, &stored.event)?;
        fold.owe(stored.seq, &stored.event)?;
        progress(stored.seq);
        Ok(true)
    })?;
    let last = "SELECT coalesce((SELECT hash FROM event ORDER BY seq DESC LIMIT 1), zeroblob(32))";
    fold.totals.hash = log.query_row(last, [], |row| row.get(0))?;
    fold.view()?.write_totals(&fold.totals)
}

/// Opens an empty view in a temporary file, with an open transaction.
///
/// The file is deleted with the connection.
pub(crate) fn scratch_view() -> Result<Connection, LogError> {
    let scratch = || -> Result<Connection, LogOpenError> {
        let conn = configured(Connection::open("")?)?;
        conn.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")?;
        conn.execute_batch(view::TABLES)?;
        Ok(conn)
    };
    scratch().map_err(|error| LogError::Engine(Box::new(error)))
}

/// Compares the stored view with the view that is derived from the log.
pub(crate) fn verify_view(conn: &Connection) -> Result<Option<LogDefect>, LogError> {
    let derived = scratch_view()?;
    match fold_log(conn, &derived, &mut |_| ()) {
        Ok(()) => {}
        Err(LogError::Damaged { seq, reason }) => {
            return Ok(Some(LogDefect::Unreadable { seq, reason }));
        }
        Err(error) => return Err(error),
    }
    Ok(LogDefect::of_view(view::differences(conn, &derived)?))
}

/// Stores an event after the last one, and applies it to the view.
pub(crate) fn append_one(conn: &Connection, event: &Event) -> Result<(), LogError> {
    let mut fold = ViewFold::new(conn, View::new(conn).totals()?);
    let (seq, before) = (fold.totals.head + 1, fold.totals.hash);
    let prev = fold.apply(seq, event)?;
    fold.owe(seq, event)?;
    fold.totals.hash = insert(conn, seq, prev, event, &before)?;
    fold.view()?.write_totals(&fold.totals)
}
