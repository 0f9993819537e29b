//! The view that the log beside it leads to.

use hookloop_core::event::Event;
use rusqlite::Connection;

use super::damage::{LogDefect, LogOpenError};
use super::event_rows::{each_event, insert};
use super::settings::configured;
use crate::log::LogError;
use crate::seq::Seq;
use crate::view::{self, View, ViewFold};

/// Empties the view and makes it again from the log beside it.
pub(crate) fn remake_view(
    conn: &Connection,
    progress: &mut dyn FnMut(Seq),
) -> Result<(), LogError> {
    // Tables beside the view are left alone if they are there.
    conn.execute_batch(include_str!("../log.sql"))?;
    conn.execute_batch(include_str!("../heartbeat.sql"))?;
    conn.execute_batch(view::DROP)?;
    conn.execute_batch(view::TABLES)?;
    fold_log(conn, conn, progress)
}

/// Takes the log in `log` into the empty view in `into`, which may be the same file.
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

/// An empty view in a temporary file, which goes with the connection. A transaction is open.
pub(crate) fn scratch_view() -> Result<Connection, LogError> {
    let scratch = || -> Result<Connection, LogOpenError> {
        let conn = configured(Connection::open("")?)?;
        conn.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")?;
        conn.execute_batch(view::TABLES)?;
        Ok(conn)
    };
    scratch().map_err(|error| LogError::Engine(Box::new(error)))
}

/// Compares the view beside the log with the view that the log leads to.
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

/// Stores an event behind the last one, and takes it into the view.
pub(crate) fn append_one(conn: &Connection, event: &Event) -> Result<(), LogError> {
    let mut fold = ViewFold::new(conn, View::new(conn).totals()?);
    let (seq, before) = (fold.totals.head + 1, fold.totals.hash);
    let prev = fold.apply(seq, event)?;
    fold.owe(seq, event)?;
    fold.totals.hash = insert(conn, seq, prev, event, &before)?;
    fold.view()?.write_totals(&fold.totals)
}
