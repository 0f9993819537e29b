//! Checks of the chain of events and of the file.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::damage::LogDefect;
use super::event_rows::{COLUMNS, has_table, link};
use crate::chain::{self, ChainHash};
use crate::log::LogError;
use crate::recorded_head::RecordedHead;
use crate::seq::Seq;

/// The last events that a log must have, according to the view and to the recorded head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcknowledgedHeads {
    pub(crate) view: Option<RecordedHead>,
    pub(crate) recorded: Option<RecordedHead>,
}

impl AcknowledgedHeads {
    /// Reads both. An unreadable view has no head.
    pub(crate) fn read(conn: &Connection, path: &Path) -> AcknowledgedHeads {
        // Read first: a record never names an event that is not on disk yet.
        let recorded = RecordedHead::read(path);
        let view = conn.query_row("SELECT head, hash FROM totals", [], |row| {
            Ok(RecordedHead { seq: row.get::<_, i64>(0)? as Seq, hash: row.get(1)? })
        });
        let unread = |error: &rusqlite::Error| {
            tracing::warn!(path = %path.display(), %error, "the view's head can't be read");
        };
        AcknowledgedHeads { view: view.inspect_err(unread).ok(), recorded }
    }

    /// Returns the last event that is known to be acknowledged.
    pub(crate) fn last(&self) -> Option<Seq> {
        self.view.max_by_place(self.recorded).map(|head| head.seq)
    }

    /// Compares the chain of a log that ends at `end` with both heads.
    fn check(
        &self,
        end: RecordedHead,
        hash_at: impl Fn(Seq) -> Result<ChainHash, LogError>,
    ) -> Result<Option<LogDefect>, LogError> {
        let Some(expected) = self.last() else {
            return Ok(Some(LogDefect::NoHead));
        };
        if end.seq < expected {
            return Ok(Some(LogDefect::Short { found: end.seq, expected }));
        }
        match self.view {
            Some(view) if end.seq > view.seq => {
                return Ok(Some(LogDefect::Extra { seq: view.seq + 1 }));
            }
            Some(view) if end.hash != view.hash => {
                return Ok(Some(LogDefect::Rewritten { seq: view.seq }));
            }
            _ => {}
        }
        let Some(recorded) = self.recorded.filter(|recorded| recorded.seq > 0) else {
            return Ok(None);
        };
        let is_same = hash_at(recorded.seq)? == recorded.hash;
        Ok((!is_same).then_some(LogDefect::Rewritten { seq: recorded.seq }))
    }
}

/// Picks the later of two heads.
trait MaxByPlace {
    fn max_by_place(self, other: Self) -> Self;
}

impl MaxByPlace for Option<RecordedHead> {
    fn max_by_place(self, other: Self) -> Self {
        [self, other].into_iter().flatten().max_by_key(|head| head.seq)
    }
}

/// Checks the chain up to the acknowledged heads. Returns the number of intact events.
pub(crate) fn verify_chain(
    conn: &Connection,
    heads: &AcknowledgedHeads,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<Seq, LogDefect>, LogError> {
    if !has_table(conn, "event")? {
        let expected = heads.last().unwrap_or(0);
        return Ok(Err(LogDefect::Short { found: 0, expected }));
    }
    let mut select = conn.prepare(&format!("SELECT {COLUMNS}, hash FROM event ORDER BY seq"))?;
    let mut rows = select.query([])?;
    let (mut before, mut done) = (chain::START, 0);
    loop {
        let unreadable = |error: rusqlite::Error| {
            Ok(Err(LogDefect::Unreadable { seq: done + 1, reason: error.to_string() }))
        };
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return unreadable(error),
        };
        let (link, stored) = match (link(row), row.get_ref(11).map(|hash| hash.as_blob())) {
            (Ok(link), Ok(Ok(stored))) => (link, stored),
            (Err(error), _) | (_, Err(error)) => return unreadable(error),
            (_, Ok(Err(error))) => return unreadable(error.into()),
        };
        if link.seq != done + 1 {
            return Ok(Err(LogDefect::Missing { seq: done + 1 }));
        }
        before = link.hash(&before);
        if before != stored {
            return Ok(Err(LogDefect::Changed { seq: link.seq }));
        }
        done = link.seq;
        progress(done);
    }
    let hash_at = |seq: Seq| {
        let select = "SELECT hash FROM event WHERE seq = ?1";
        Ok(conn.query_row(select, [seq as i64], |row| row.get(0))?)
    };
    let end = RecordedHead { seq: done, hash: before };
    Ok(heads.check(end, hash_at)?.map_or(Ok(done), Err))
}

/// Runs SQLite's own check of the file.
pub(crate) fn check_file(conn: &Connection) -> Result<Option<LogDefect>, LogError> {
    let answer = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    Ok(match answer.optional() {
        Ok(answer) => answer.filter(|text| text != "ok").map(LogDefect::File),
        Err(error) => Some(LogDefect::File(error.to_string())),
    })
}
