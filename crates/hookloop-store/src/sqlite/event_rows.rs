//! Events as rows of a table.

use hookloop_core::cascade::EventCause;
use hookloop_core::event::{Event, EventBody, FORMAT};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::chain::{self, ChainHash, ChainLink};
use crate::log::{LogError, StoredEvent};
use crate::seq::Seq;

pub(super) const COLUMNS: &str =
    "seq, prev, id, at, format, kind, subject, actor, cause, due, data";

/// Returns the place of the last stored event, which may differ from the acknowledged head.
pub(crate) fn last_place(conn: &Connection) -> Result<Seq, LogError> {
    let last =
        conn.query_row("SELECT coalesce(max(seq), 0) FROM event", [], |row| row.get::<_, i64>(0))?;
    Ok(last as Seq)
}

/// Stores an event after the one with the hash `before`. Returns its own hash.
pub(crate) fn insert(
    conn: &Connection,
    seq: Seq,
    prev: Seq,
    event: &Event,
    before: &ChainHash,
) -> Result<ChainHash, LogError> {
    let subject = event.subject.to_string();
    let cause = event.cause.as_ref().map(serde_json::to_string).transpose();
    let cause = cause.map_err(|error| LogError::Engine(Box::new(error)))?;
    let data = event.body.encode();
    let link = ChainLink {
        seq,
        prev,
        id: &event.id.0,
        at: event.at.0,
        format: FORMAT,
        kind: event.body.kind(),
        subject: &subject,
        actor: &event.actor,
        cause: cause.as_deref(),
        due: event.due,
        data: &data,
    };
    let hash = link.hash(before);
    conn.prepare_cached(
        "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        seq as i64,
        prev as i64,
        link.id,
        link.at,
        link.format,
        link.kind,
        link.subject,
        link.actor,
        link.cause,
        link.due,
        link.data,
        hash
    ])?;
    Ok(hash)
}

/// Returns the stored fields of a row.
pub(super) fn link<'r>(row: &'r Row<'_>) -> rusqlite::Result<ChainLink<'r>> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(ChainLink {
        seq: row.get::<_, i64>(0)? as Seq,
        prev: row.get::<_, i64>(1)? as Seq,
        id: row.get_ref(2)?.as_blob()?,
        at: row.get(3)?,
        format: row.get(4)?,
        kind: text(5)?,
        subject: text(6)?,
        actor: text(7)?,
        cause: row.get_ref(8)?.as_str_or_null()?,
        due: row.get(9)?,
        data: text(10)?,
    })
}

fn decode(row: &Row<'_>) -> Result<(Seq, StoredEvent), LogError> {
    let link = link(row)?;
    let damaged = |reason: &dyn std::fmt::Display| LogError::damaged(link.seq, reason);
    let id = <[u8; 16]>::try_from(link.id).map_err(|_| damaged(&"its id is not 16 bytes"))?;
    let cause = link.cause.map(serde_json::from_str::<EventCause>).transpose();
    let event = Event {
        id: EventId(id),
        at: Timestamp(link.at),
        subject: link.subject.parse::<Subject>().map_err(|error| damaged(&error))?,
        actor: link.actor.to_owned(),
        cause: cause.map_err(|error| damaged(&error))?,
        due: link.due,
        body: EventBody::decode(link.kind, link.format, link.data)
            .map_err(|error| damaged(&error))?,
    };
    Ok((link.prev, StoredEvent { seq: link.seq, after: None, digest: chain::START, event }))
}

/// Calls `each` for the events from `from` on, until it returns `false`.
pub(crate) fn each_event(
    conn: &Connection,
    from: Seq,
    mut each: impl FnMut(StoredEvent) -> Result<bool, LogError>,
) -> Result<(), LogError> {
    let mut select =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM event WHERE seq >= ?1 ORDER BY seq"))?;
    let mut rows = select.query([from as i64])?;
    while let Some(row) = rows.next()? {
        if !each(decode(row)?.1)? {
            break;
        }
    }
    Ok(())
}

pub(crate) fn read(
    conn: &Connection,
    from: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, LogError> {
    let mut events = Vec::new();
    if limit > 0 {
        each_event(conn, from, |event| {
            events.push(event);
            Ok(events.len() < limit)
        })?;
    }
    Ok(events)
}

/// Returns the event at `seq`, and the place of the one before it on the same subject.
pub(crate) fn read_at(conn: &Connection, seq: Seq) -> Result<Option<(Seq, StoredEvent)>, LogError> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM event WHERE seq = ?1"))?;
    let mut rows = select.query([seq as i64])?;
    rows.next()?.map(decode).transpose()
}

/// Returns the event at `seq` and those before it on the same subject, at most `limit`, oldest
/// first.
pub(crate) fn back_from(
    conn: &Connection,
    mut seq: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, LogError> {
    let mut events = Vec::new();
    while seq > 0 && events.len() < limit {
        let Some((prev, event)) = read_at(conn, seq)? else { break };
        events.push(event);
        seq = prev;
    }
    events.reverse();
    Ok(events)
}

pub(crate) fn has_table(conn: &Connection, name: &str) -> Result<bool, LogError> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    Ok(conn.query_row(exists, [name], |row| row.get(0))?)
}
