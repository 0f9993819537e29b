//! The log in a SQLite file.
//!
//! WAL, `synchronous=FULL`: what is committed is on disk. The last process to close the file moves
//! the WAL into it, but only once the WAL is worth it, so that most short commands pay for their own
//! write and no more.

use std::path::Path;
use std::time::{Duration, Instant};

use hookloop_core::cascade::Cause;
use hookloop_core::event::{Event, EventBody, FORMAT};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use crate::chain::{self, Hash, Link};
use crate::log::{Follow, LogError, Seq, StoredEvent};
use crate::pulse::{Beat, Held, WORKERS};
use crate::view::{self, Fold, View};

/// The version of the tables that this program makes and reads.
pub const SCHEMA: i64 = 12;
/// Older libraries can lose committed data when a WAL is reset.
const SQLITE_MIN: i32 = 3_051_003;
/// A WAL of this size is moved into the file when it is closed. Small, because a process that opens
/// the file alone reads the whole WAL once.
const CLOSE_WAL_BYTES: u64 = 160 * 1024;
/// Statements kept prepared.
const STATEMENTS: usize = 96;
/// How long a writer waits for the others before it gives up.
pub const BUSY_LIMIT: Duration = Duration::from_secs(60);
const BUSY_SLEEP_MAX: Duration = Duration::from_millis(4);
/// How often a follower looks for new events of other processes.
const FOLLOW_POLL: Duration = Duration::from_millis(20);
const FOLLOW_BATCH: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("its tables have version {found}; this hookloop knows up to {SCHEMA}")]
    Newer { found: i64 },
    #[error("SQLite {found} is too old")]
    OldLibrary { found: String },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("its tables are of an older version, and can't be brought up to date: {0}")]
    Migration(#[from] LogError),
}

/// Opens the file, makes it if it is not there, and brings its tables to [`SCHEMA`].
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let conn = configured(Connection::open(path)?)?;
    migrate(&conn)?;
    Ok(conn)
}

/// A view's tables without a file.
pub(crate) fn open_in_memory() -> Result<Connection, OpenError> {
    let conn = configured(Connection::open_in_memory()?)?;
    migrate(&conn)?;
    Ok(conn)
}

fn configured(mut conn: Connection) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(OpenError::OldLibrary { found: rusqlite::version().to_owned() });
    }
    conn.busy_handler(Some(wait_for_others))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A statement keeps its plan whatever is bound to it; without this, some are planned anew each time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Sleeps a little longer each time, not in step with other processes, up to [`BUSY_LIMIT`].
fn wait_for_others(tries: i32) -> bool {
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
        let _ = conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }
}

pub(crate) fn is_wal_large(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    std::fs::metadata(wal).is_ok_and(|wal| wal.len() >= CLOSE_WAL_BYTES)
}

fn migrate(conn: &Connection) -> Result<(), OpenError> {
    let version = |conn: &Connection| conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    match version(conn)? {
        SCHEMA => return Ok(()),
        found if found > SCHEMA => return Err(OpenError::Newer { found }),
        _ => {}
    }
    use_wal(conn)?;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    // Another process may have been first.
    match version(conn)? {
        0 => {
            conn.execute_batch(include_str!("log.sql"))?;
            conn.execute_batch(include_str!("pulse.sql"))?;
            conn.execute_batch(view::TABLES)?;
        }
        1 => {
            conn.execute_batch(include_str!("pulse.sql"))?;
            remake_view(conn, &mut |_| ())?;
        }
        // Another index, and tables for the runs of hooks; one for sessions; those of what they use; times of tasks,
        // and schedules; tasks that were left.
        2..SCHEMA => {
            forget_copies(conn)?;
            remake_view(conn, &mut |_| ())?;
        }
        SCHEMA => {}
        found => return Err(OpenError::Newer { found }),
    }
    conn.pragma_update(None, "user_version", SCHEMA)?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}

/// Kept in the file, so said once. `synchronous = FULL` is what SQLite does unless told otherwise.
///
/// To say it, SQLite reads first and then wants to write, and does not wait for others who do the same: of many who
/// open a new file at once, all but one would be told that it is locked.
fn use_wal(conn: &Connection) -> Result<(), rusqlite::Error> {
    let mut tries = 0;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && wait_for_others(tries) => tries += 1,
            said => return said,
        }
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// A view of a log elsewhere has copies of the few events that are still to be reacted to. It is not made from
/// those: it is read again from where the log is.
fn forget_copies(conn: &Connection) -> Result<(), LogError> {
    let is_elsewhere = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'origin')";
    match conn.query_row(is_elsewhere, [], |row| row.get(0))? {
        true => Ok(conn.execute_batch("DELETE FROM event")?),
        false => Ok(()),
    }
}

/// Empties the view and makes it again from the log beside it.
pub(crate) fn remake_view(
    conn: &Connection,
    progress: &mut dyn FnMut(Seq),
) -> Result<(), LogError> {
    conn.execute_batch(view::DROP)?;
    conn.execute_batch(view::TABLES)?;
    let mut fold = Fold::new(conn, View::new(conn).totals()?);
    each_event(conn, 1, |stored| {
        fold.apply(stored.seq, &stored.event)?;
        fold.owe(stored.seq, &stored.event)?;
        progress(stored.seq);
        Ok(true)
    })?;
    let last = "SELECT coalesce((SELECT hash FROM event ORDER BY seq DESC LIMIT 1), zeroblob(32))";
    fold.totals.hash = conn.query_row(last, [], |row| row.get(0))?;
    fold.view()?.write_totals(&fold.totals)
}

/// Stores an event behind the one whose hash is `before`; answers its own hash.
pub(crate) fn insert(
    conn: &Connection,
    seq: Seq,
    prev: Seq,
    event: &Event,
    before: &Hash,
) -> Result<Hash, LogError> {
    let subject = event.subject.to_string();
    let cause = event.cause.as_ref().map(|cause| serde_json::to_string(cause).unwrap_or_default());
    let data = event.body.encode();
    let link = Link {
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

const COLUMNS: &str = "seq, prev, id, at, format, kind, subject, actor, cause, due, data";

/// One row, as it is stored.
fn link<'r>(row: &'r Row<'_>) -> rusqlite::Result<Link<'r>> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(Link {
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
    let cause = link.cause.map(serde_json::from_str::<Cause>).transpose();
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
    Ok((link.prev, StoredEvent { seq: link.seq, after: None, event }))
}

/// Calls `each` for the events from `from` on, until it answers `false`.
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

/// The event at `seq`, and the place of the one before it on the same subject.
pub(crate) fn read_at(conn: &Connection, seq: Seq) -> Result<Option<(Seq, StoredEvent)>, LogError> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM event WHERE seq = ?1"))?;
    let mut rows = select.query([seq as i64])?;
    rows.next()?.map(decode).transpose()
}

/// The event at `seq` and those before it on the same subject: `limit` of them, oldest first.
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

/// Where a check of the chain found it broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("event {seq} is missing")]
    Missing { seq: Seq },
    #[error("event {seq} is not what was written")]
    Changed { seq: Seq },
    #[error("event {seq} can't be read: {reason}")]
    Unreadable { seq: Seq, reason: String },
    #[error("the log ends at event {found}, but {expected} were acknowledged")]
    Short { found: Seq, expected: Seq },
    #[error("event {seq} is behind the last one that was acknowledged")]
    Extra { seq: Seq },
    #[error("the file is damaged: {0}")]
    File(String),
}

/// Walks the chain up to `head`, whose hash is `expected`; answers how many events are intact.
pub(crate) fn verify_chain(
    conn: &Connection,
    head: Seq,
    expected: &Hash,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<Seq, Broken>, LogError> {
    let mut select = conn.prepare(&format!("SELECT {COLUMNS}, hash FROM event ORDER BY seq"))?;
    let mut rows = select.query([])?;
    let (mut before, mut done) = (chain::START, 0);
    loop {
        let unreadable = |error: rusqlite::Error| {
            Ok(Err(Broken::Unreadable { seq: done + 1, reason: error.to_string() }))
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
            return Ok(Err(Broken::Missing { seq: done + 1 }));
        }
        before = link.hash(&before);
        if before != stored {
            return Ok(Err(Broken::Changed { seq: link.seq }));
        }
        done = link.seq;
        progress(done);
    }
    Ok(match done {
        found if found < head => Err(Broken::Short { found, expected: head }),
        found if found > head => Err(Broken::Extra { seq: head + 1 }),
        _ if before != *expected => Err(Broken::Changed { seq: head }),
        _ => Ok(done),
    })
}

/// SQLite's own check of the file.
pub(crate) fn check_file(conn: &Connection) -> Result<Option<Broken>, LogError> {
    let answer = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    Ok(match answer.optional() {
        Ok(answer) => answer.filter(|text| text != "ok").map(Broken::File),
        Err(error) => Some(Broken::File(error.to_string())),
    })
}

/// Shows that `holder` is alive. The first beat of one forgets those that hold nothing any more, so
/// that the table is as small as what is held.
pub(crate) fn beat(
    conn: &Connection,
    held: &Held,
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

/// Shows that `holder` is alive if the last sign of life is still `seen`.
pub(crate) fn take(
    conn: &Connection,
    held: &Held,
    holder: &str,
    epoch: u64,
    seen: Option<&Beat>,
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

pub(crate) fn last_beat(conn: &Connection, held: &Held) -> Result<Option<Beat>, LogError> {
    let mut select =
        conn.prepare_cached("SELECT holder, epoch, count FROM pulse WHERE held = ?1")?;
    Ok(select.query_row([held.to_string()], read_beat).optional()?)
}

pub(crate) fn workers(conn: &Connection) -> Result<Vec<Beat>, LogError> {
    let select =
        "SELECT holder, epoch, count FROM pulse WHERE substr(held, 1, ?2) = ?1 ORDER BY held";
    let mut select = conn.prepare_cached(select)?;
    let rows = select.query_map(params![WORKERS, WORKERS.len() as i64], read_beat)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn forget(conn: &Connection, held: &Held) -> Result<(), LogError> {
    conn.prepare_cached("DELETE FROM pulse WHERE held = ?1")?.execute([held.to_string()])?;
    Ok(())
}

fn read_beat(row: &Row<'_>) -> rusqlite::Result<Beat> {
    let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
    Ok(Beat { holder: row.get(0)?, epoch: number(1)?, count: number(2)? })
}

/// Follows the file, whichever process writes to it.
pub(crate) struct FileFollower {
    pub(crate) conn: Connection,
    pub(crate) next: Seq,
}

impl Follow for FileFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let deadline = Instant::now() + timeout;
        loop {
            let events = read(&self.conn, self.next, FOLLOW_BATCH)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !events.is_empty() || left.is_zero() {
                self.next += events.len() as Seq;
                return Ok(events);
            }
            std::thread::sleep(FOLLOW_POLL.min(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let conn = open(&dir.path().join("log.db")).unwrap();
            let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            let full: i64 = conn.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
            assert_eq!((mode.as_str(), full), ("wal", 2));
        }
    }

    #[test]
    fn many_at_once_may_be_the_first() {
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
    fn a_file_of_a_newer_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        open(&path).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Newer { found }) if found == SCHEMA + 1));
    }
}
