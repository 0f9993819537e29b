//! The log in a SQLite file.
//!
//! WAL, `synchronous=FULL`: what is committed is on disk. The last process to close the file moves
//! the WAL into it, but only once the WAL is worth it, so that most short commands pay for their own
//! write and no more.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hookloop_core::cascade::EventCause;
use hookloop_core::event::{Event, EventBody, FORMAT};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use crate::chain::{self, Hash, Link};
use crate::log::{Follow, LogError, Seq, StoredEvent};
use crate::pulse::{Beat, Held, WORKERS};
use crate::recorded_head::RecordedHead;
use crate::view::{self, Fold, View, ViewDifference};

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
    #[error("{0}")]
    Lost(LogLoss),
}

/// The loss of a log: its file is missing, or lacks acknowledged events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLoss {
    pub path: PathBuf,
    /// The last event that the file has; none if the file is missing or empty.
    pub found: Option<Seq>,
    /// The last acknowledged event, where that is recorded.
    pub acknowledged: Option<Seq>,
}

impl std::fmt::Display for LogLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LogLoss { path, found, acknowledged } = self;
        let path = path.display();
        match found {
            Some(found) => write!(f, "the log in {path} ends at event {found}")?,
            None => write!(f, "the log is lost: {path} is missing or empty")?,
        }
        match acknowledged {
            Some(seq) => write!(f, ", but {seq} events were acknowledged"),
            None => f.write_str(", but sessions of this project are recorded beside it"),
        }
    }
}

/// Opens the file, makes it if it is not there, and brings its tables to [`SCHEMA`].
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    let conn = configured(Connection::open(path)?)?;
    migrate(&conn)?;
    Ok(conn)
}

/// Opens the file as [`open`] does, unless it is known to have lost events.
pub(crate) fn open_unless_lost(path: &Path) -> Result<Connection, OpenError> {
    check_not_emptied(path)?;
    // Read first: a record never names an event that is not on disk yet.
    let recorded = RecordedHead::read(path);
    let conn = open(path)?;
    let Some(recorded) = recorded else { return Ok(conn) };
    let head = conn.query_row("SELECT head FROM totals", [], |row| row.get::<_, i64>(0));
    match head {
        Ok(head) if (head as Seq) < recorded.seq => Err(OpenError::Lost(LogLoss {
            path: path.to_owned(),
            found: Some(head as Seq),
            acknowledged: Some(recorded.seq),
        })),
        // A view that can't be read is found by the first question that is asked of it.
        _ => Ok(conn),
    }
}

/// Fails if the file is missing or empty although events were acknowledged. SQLite does not open the file for this:
/// it would delete a WAL that is left beside it.
pub(crate) fn check_not_emptied(path: &Path) -> Result<(), OpenError> {
    if !is_file_empty(path) {
        return Ok(());
    }
    let Some(recorded) = RecordedHead::read(path).filter(|head| head.seq > 0) else {
        return Ok(());
    };
    // Another process may have made the file, and stored its first event, since the first look.
    if !is_file_empty(path) {
        return Ok(());
    }
    let acknowledged = Some(recorded.seq);
    Err(OpenError::Lost(LogLoss { path: path.to_owned(), found: None, acknowledged }))
}

/// Whether there is no file at `path`, or nothing in it.
pub fn is_file_empty(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(found) => found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
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
            remake_for_new_tables(conn)?;
        }
        // Another index, and tables for the runs of hooks; one for sessions; those of what they use; times of tasks,
        // and schedules; tasks that were left; messages that are no events.
        2..SCHEMA => remake_for_new_tables(conn)?,
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

/// Makes the view again for the tables of this version. The acknowledged head stays: if the log ends before it,
/// events are missing, and new tables are no reason to forget that.
fn remake_for_new_tables(conn: &Connection) -> Result<(), LogError> {
    let acknowledged = conn.query_row("SELECT head, hash FROM totals", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Hash>(1)?))
    });
    let is_elsewhere = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'origin')";
    let is_elsewhere: bool = conn.query_row(is_elsewhere, [], |row| row.get(0))?;
    if is_elsewhere {
        // The view of a log elsewhere has copies of the few events that are still to be reacted to. It is not made
        // from those: it is read again from where the log is.
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

/// Empties the view and makes it again from the log beside it.
pub(crate) fn remake_view(
    conn: &Connection,
    progress: &mut dyn FnMut(Seq),
) -> Result<(), LogError> {
    // Tables beside the view are left alone if they are there.
    conn.execute_batch(include_str!("log.sql"))?;
    conn.execute_batch(include_str!("pulse.sql"))?;
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
    let mut fold = Fold::new(into, View::new(into).totals()?);
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
    let scratch = || -> Result<Connection, OpenError> {
        let conn = configured(Connection::open("")?)?;
        conn.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")?;
        conn.execute_batch(view::TABLES)?;
        Ok(conn)
    };
    scratch().map_err(|error| LogError::Engine(Box::new(error)))
}

/// Compares the view beside the log with the view that the log leads to.
pub(crate) fn verify_view(conn: &Connection) -> Result<Option<Broken>, LogError> {
    let derived = scratch_view()?;
    match fold_log(conn, &derived, &mut |_| ()) {
        Ok(()) => {}
        Err(LogError::Damaged { seq, reason }) => {
            return Ok(Some(Broken::Unreadable { seq, reason }));
        }
        Err(error) => return Err(error),
    }
    Ok(Broken::of_view(view::differences(conn, &derived)?))
}

/// Stores an event behind the last one, and takes it into the view.
pub(crate) fn append_one(conn: &Connection, event: &Event) -> Result<(), LogError> {
    let mut fold = Fold::new(conn, View::new(conn).totals()?);
    let (seq, before) = (fold.totals.head + 1, fold.totals.hash);
    let prev = fold.apply(seq, event)?;
    fold.owe(seq, event)?;
    fold.totals.hash = insert(conn, seq, prev, event, &before)?;
    fold.view()?.write_totals(&fold.totals)
}

/// The place of the last event that is there, whatever was acknowledged.
pub(crate) fn last_place(conn: &Connection) -> Result<Seq, LogError> {
    let last =
        conn.query_row("SELECT coalesce(max(seq), 0) FROM event", [], |row| row.get::<_, i64>(0))?;
    Ok(last as Seq)
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
    #[error("{0}")]
    Lost(LogLoss),
    #[error("the last acknowledged event is recorded neither in the view nor beside the log")]
    NoHead,
    #[error("event {seq} is behind the last one that was acknowledged")]
    Extra { seq: Seq },
    #[error("the events up to {seq} are not those that were acknowledged")]
    Rewritten { seq: Seq },
    #[error("{messages} messages were removed from the stream of this log")]
    Removed { messages: u64 },
    #[error(
        "the stream of this log was made anew: {expected} was the last event that was acknowledged before"
    )]
    Replaced { expected: Seq },
    #[error("{first} is not what the log says ({tables} tables differ)")]
    View { first: ViewDifference, tables: usize },
    #[error("the file is damaged: {0}")]
    File(String),
}

impl Broken {
    /// The difference between a view and its log, if there is one.
    pub(crate) fn of_view(differences: Vec<ViewDifference>) -> Option<Broken> {
        let tables = differences.len();
        differences.into_iter().next().map(|first| Broken::View { first, tables })
    }

    /// Whether the events that are left are a log that can be continued.
    pub fn can_be_accepted(&self) -> bool {
        matches!(
            self,
            Broken::Short { .. }
                | Broken::Lost(_)
                | Broken::NoHead
                | Broken::Extra { .. }
                | Broken::Rewritten { .. }
                | Broken::Removed { .. }
                | Broken::Replaced { .. }
        )
    }
}

/// The last events that a log must have, by the view and by the record beside the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcknowledgedHeads {
    pub(crate) view: Option<RecordedHead>,
    pub(crate) recorded: Option<RecordedHead>,
}

impl AcknowledgedHeads {
    /// Reads both. A view that can't be read has none.
    pub(crate) fn read(conn: &Connection, path: &Path) -> AcknowledgedHeads {
        // Read first: a record never names an event that is not on disk yet.
        let recorded = RecordedHead::read(path);
        let view = conn.query_row("SELECT head, hash FROM totals", [], |row| {
            Ok(RecordedHead { seq: row.get::<_, i64>(0)? as Seq, hash: row.get(1)? })
        });
        AcknowledgedHeads { view: view.ok(), recorded }
    }

    /// The last event that is known to have been acknowledged.
    pub(crate) fn last(&self) -> Option<Seq> {
        self.view.max_by_place(self.recorded).map(|head| head.seq)
    }

    /// Compares the chain of a log, which ends at `end`, with both.
    fn check(
        &self,
        end: RecordedHead,
        hash_at: impl Fn(Seq) -> Result<Hash, LogError>,
    ) -> Result<Option<Broken>, LogError> {
        let Some(expected) = self.last() else {
            return Ok(Some(Broken::NoHead));
        };
        if end.seq < expected {
            return Ok(Some(Broken::Short { found: end.seq, expected }));
        }
        match self.view {
            Some(view) if end.seq > view.seq => {
                return Ok(Some(Broken::Extra { seq: view.seq + 1 }));
            }
            Some(view) if end.hash != view.hash => {
                return Ok(Some(Broken::Rewritten { seq: view.seq }));
            }
            _ => {}
        }
        let Some(recorded) = self.recorded.filter(|recorded| recorded.seq > 0) else {
            return Ok(None);
        };
        let is_same = hash_at(recorded.seq)? == recorded.hash;
        Ok((!is_same).then_some(Broken::Rewritten { seq: recorded.seq }))
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

/// Walks the chain up to the acknowledged heads; answers how many events are intact.
pub(crate) fn verify_chain(
    conn: &Connection,
    heads: &AcknowledgedHeads,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<Seq, Broken>, LogError> {
    if !has_table(conn, "event")? {
        let expected = heads.last().unwrap_or(0);
        return Ok(Err(Broken::Short { found: 0, expected }));
    }
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
    let hash_at = |seq: Seq| {
        let select = "SELECT hash FROM event WHERE seq = ?1";
        Ok(conn.query_row(select, [seq as i64], |row| row.get(0))?)
    };
    let end = RecordedHead { seq: done, hash: before };
    Ok(heads.check(end, hash_at)?.map_or(Ok(done), Err))
}

pub(crate) fn has_table(conn: &Connection, name: &str) -> Result<bool, LogError> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    Ok(conn.query_row(exists, [name], |row| row.get(0))?)
}

/// The damage of a log's file or its view that an error of SQLite tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileDamage {
    /// The file is not what SQLite wrote.
    File(String),
    /// Tables or rows that are derived from the log are not there.
    View(String),
}

/// The damage that `error` tells of, if it does.
pub(crate) fn damage_of(error: &rusqlite::Error) -> Option<FileDamage> {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Some(FileDamage::File(text)),
        // The end of the file is missing.
        Some(ErrorCode::SystemIoFailure) => Some(FileDamage::File(text)),
        _ if matches!(error, rusqlite::Error::QueryReturnedNoRows) => {
            Some(FileDamage::View("a row of the view is missing".to_owned()))
        }
        _ if text.contains("no such table") || text.contains("no such column") => {
            Some(FileDamage::View(text))
        }
        _ => None,
    }
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
