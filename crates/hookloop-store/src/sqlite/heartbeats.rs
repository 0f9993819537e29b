//! Heartbeats in a table beside the view.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::heartbeat::{HeartbeatRecord, HeldResource, WORKERS};
use crate::log::LogError;

/// Records a heartbeat of `holder`. The first heartbeat of a resource deletes those of tasks
/// without a claim, so that the table stays small.
pub(crate) fn beat(
    conn: &Connection,
    held: &HeldResource,
    holder: &str,
    epoch: u64,
) -> Result<(), LogError> {
    let key = held.to_string();
    let again = "UPDATE pulse SET holder = ?2, epoch = ?3, count = count + 1 WHERE held = ?1";
    if conn.prepare_cached(again)?.execute(params![key, holder, epoch as i64])? == 1 {
        return Ok(());
    }
    let forget = "DELETE FROM pulse WHERE held IN (SELECT held FROM pulse
        JOIN task ON task.id = held WHERE task.claim IS NULL)";
    conn.prepare_cached(forget)?.execute([])?;
    // Another process may have been first.
    let first = "INSERT INTO pulse VALUES (?1, ?2, ?3, 1)
        ON CONFLICT DO UPDATE SET holder = ?2, epoch = ?3, count = count + 1";
    conn.prepare_cached(first)?.execute(params![key, holder, epoch as i64])?;
    Ok(())
}

/// Records a heartbeat of `holder` if the last one is still `seen`.
pub(crate) fn take(
    conn: &Connection,
    held: &HeldResource,
    holder: &str,
    epoch: u64,
    seen: Option<&HeartbeatRecord>,
) -> Result<bool, LogError> {
    let (key, epoch) = (held.to_string(), epoch as i64);
    let changed = match seen {
        Some(seen) => {
            let take = "UPDATE pulse SET holder = ?2, epoch = ?3, count = count + 1
                WHERE held = ?1 AND holder = ?4 AND epoch = ?5 AND count = ?6";
            let (was, count) = (seen.epoch as i64, seen.count as i64);
            let values = params![key, holder, epoch, seen.holder, was, count];
            conn.prepare_cached(take)?.execute(values)?
        }
        None => {
            let take = "INSERT OR IGNORE INTO pulse VALUES (?1, ?2, ?3, 1)";
            conn.prepare_cached(take)?.execute(params![key, holder, epoch])?
        }
    };
    Ok(changed == 1)
}

pub(crate) fn last_beat(
    conn: &Connection,
    held: &HeldResource,
) -> Result<Option<HeartbeatRecord>, LogError> {
    let mut select =
        conn.prepare_cached("SELECT holder, epoch, count FROM pulse WHERE held = ?1")?;
    Ok(select.query_row([held.to_string()], read_beat).optional()?)
}

pub(crate) fn workers(conn: &Connection) -> Result<Vec<HeartbeatRecord>, LogError> {
    let select =
        "SELECT holder, epoch, count FROM pulse WHERE substr(held, 1, ?2) = ?1 ORDER BY held";
    let mut select = conn.prepare_cached(select)?;
    let rows = select.query_map(params![WORKERS, WORKERS.len() as i64], read_beat)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn forget(conn: &Connection, held: &HeldResource) -> Result<(), LogError> {
    conn.prepare_cached("DELETE FROM pulse WHERE held = ?1")?.execute([held.to_string()])?;
    Ok(())
}

fn read_beat(row: &Row<'_>) -> rusqlite::Result<HeartbeatRecord> {
    let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
    Ok(HeartbeatRecord { holder: row.get(0)?, epoch: number(1)?, count: number(2)? })
}
