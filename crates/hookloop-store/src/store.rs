//! Log and view together, the units of work that change them, and group commit.
//!
//! A unit of work reads the view, stages events (which the view shows at once), and becomes one
//! atomic batch. With the log in the same file, batch and view are one transaction. With the log
//! elsewhere, the view is a copy that follows it: the unit's changes are undone, the batch is
//! appended, and what the log answered is applied; on a conflict the work is done again from what
//! the log then holds.

mod elsewhere;
mod group;
mod intake;
mod one_subject;
mod origin;
mod progress;
mod trip;
mod unit;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hookloop_core::event::{Event, LossAccepted};
use hookloop_core::id::Subject;
use rusqlite::Connection;

use elsewhere::Elsewhere;
use group::{Home, Inner, LogFile, say};
pub use origin::{Identity, ViewFile};
use progress::Progress;

use crate::chain::{self, Hash};
use crate::crash;
use crate::log::{
    AppendError, Appended, EventLog, Follow, FollowOne, LogError, NewEvent, Seq, StoredEvent,
};
use crate::pulse::{Beat, Held, Pulse};
use crate::snapshot::Snapshots;
use crate::sqlite::{
    self, AcknowledgedHeads, Broken, FileDamage, FileFollower, LogLoss, OpenError,
};
use crate::view::View;

pub use unit::Unit;

/// Units that one commit carries at most.
const MAX_GROUP: usize = 64;
/// Units that one commit of bulk work carries.
const BULK_GROUP: usize = 24;
/// Pages that bulk work leaves in the WAL, and the cache it may use.
const BULK_WAL_PAGES: u32 = 16_000;
const BULK_CACHE_KIB: u32 = 96 * 1024;
/// What SQLite starts with, and bulk work returns to.
const USUAL_WAL_PAGES: u32 = 1_000;
const USUAL_CACHE_KIB: u32 = 2_000;
/// How often a unit is done again because others wrote first.
pub(crate) const MAX_TRIES: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("{MAX_TRIES} attempts in a row met other writers")]
    Contended,
    #[error("the commit that this write was part of failed: {0}")]
    Commit(String),
    /// Found before the view was made again from it.
    #[error("the log is broken: {0}")]
    Broken(Broken),
    /// What went wrong for several writes at once.
    #[error(transparent)]
    Shared(Arc<StoreError>),
}

impl StoreError {
    /// The error itself, if nobody else is told of it.
    pub fn shared(error: Arc<StoreError>) -> StoreError {
        Arc::try_unwrap(error).unwrap_or_else(StoreError::Shared)
    }
}

impl StoreError {
    /// The damage of the file or the view that this error tells of, if it does.
    pub fn damage(&self) -> Option<FileDamage> {
        let error = match self {
            StoreError::Open(OpenError::Sqlite(error)) => error,
            StoreError::Log(LogError::Engine(source))
            | StoreError::Open(OpenError::Migration(LogError::Engine(source)))
            | StoreError::Append(AppendError::Log(LogError::Engine(source))) => {
                if let Some(error) = source.downcast_ref::<StoreError>() {
                    return error.damage();
                }
                source.downcast_ref::<rusqlite::Error>()?
            }
            StoreError::Shared(error) => return error.damage(),
            _ => return None,
        };
        sqlite::damage_of(error)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Log(error.into())
    }
}

/// Stands for the state hash of a view whose tables could not be read.
pub const UNREADABLE_VIEW: &str = "unreadable";

/// A view that was made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// The state hash before and after; [`UNREADABLE_VIEW`] before if the view could not be read.
    pub hashes: (String, String),
    /// The loss that was accepted by it.
    pub accepted: Option<Broken>,
}

/// What holds a log that is elsewhere, and what there is around it.
pub trait Engine: EventLog + Pulse + Snapshots {}

impl<T: EventLog + Pulse + Snapshots> Engine for T {}

/// A project's log and view. Clones share it; threads that write at the same time share commits.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

struct Shared {
    inner: Mutex<Inner>,
    /// What holds the log, where that is elsewhere.
    engine: Option<Arc<dyn Engine>>,
    /// A group of units was committed, or failed to be.
    settled: Condvar,
    /// Threads that are about to add a unit to the open group.
    arriving: AtomicUsize,
    /// Units that were staged for a log elsewhere have left the view.
    boarded: Condvar,
    /// A batch has come to the log, or will not.
    landed: Condvar,
    /// How far a view that follows its log has come, and who waits for more.
    progress: Progress,
}

impl Store {
    /// Opens the file at `path`, which holds log and view.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Ok(Store::new(sqlite::open_unless_lost(path)?, Home::File(LogFile::new(path))))
    }

    /// Opens the file at `path` to check it, also if it ends before the acknowledged head. A file that is missing or
    /// empty although it had events is an error, and stays as it is.
    pub fn open_to_check(path: &Path) -> Result<Store, StoreError> {
        sqlite::check_not_emptied(path)?;
        Ok(Store::new(sqlite::open(path)?, Home::File(LogFile::new(path))))
    }

    /// Opens the file at `path` for a person who accepts `loss`, which is recorded by
    /// [`Store::rebuild_after_loss`].
    pub fn open_after_loss(path: &Path, loss: Option<LogLoss>) -> Result<Store, StoreError> {
        let found = match sqlite::check_not_emptied(path) {
            Err(OpenError::Lost(found)) => Some(found),
            other => {
                other?;
                loss
            }
        };
        let file = LogFile { loss: found, ..LogFile::new(path) };
        Ok(Store::new(sqlite::open(path)?, Home::File(file)))
    }

    /// A view in memory over a log that is elsewhere.
    pub fn over(engine: Arc<dyn Engine>) -> Result<Store, StoreError> {
        let home = Home::Elsewhere(Elsewhere::new(engine));
        let store = Store::new(sqlite::open_in_memory()?, home);
        store.lock().catch_up(0)?;
        Ok(store)
    }

    /// A view in `file` over a log that is elsewhere. A new one starts with the engine's last
    /// snapshot. `identify` is given what it answered last time: the view of another log is thrown
    /// away.
    pub fn over_at(
        engine: Arc<dyn Engine>,
        file: ViewFile,
        identify: impl FnOnce(Option<String>) -> Result<Identity, StoreError>,
    ) -> Result<Store, StoreError> {
        let path = file.path.clone();
        let conn = origin::open_view(&*engine, file, identify)?;
        let elsewhere = Elsewhere::at(engine, &path, &conn)?;
        Ok(Store::new(conn, Home::Elsewhere(elsewhere)))
    }

    fn new(conn: Connection, home: Home) -> Store {
        let engine = match &home {
            Home::Elsewhere(elsewhere) => Some(elsewhere.engine.clone()),
            Home::File(_) => None,
        };
        Store(Arc::new(Shared {
            inner: Mutex::new(Inner::new(conn, home)),
            engine,
            settled: Condvar::new(),
            arriving: AtomicUsize::new(0),
            boarded: Condvar::new(),
            landed: Condvar::new(),
            progress: Progress::default(),
        }))
    }

    /// The view as the log has it: units that are staged for a log elsewhere have left it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        let inner = self.lock_with_staged();
        let inner = self.0.boarded.wait_while(inner, |inner| inner.traffic.is_boarding());
        inner.unwrap_or_else(PoisonError::into_inner)
    }

    /// A unit that panics is undone before the lock is free again.
    fn lock_with_staged(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a unit of work. When this returns, its events are on disk, and those of everyone who
    /// wrote at the same time with them. `work` runs again if others wrote first.
    pub fn transact<T, E: From<StoreError>>(
        &self,
        mut work: impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(engine) = &self.0.engine {
            return self.transact_elsewhere(&**engine, &mut work);
        }
        self.0.arriving.fetch_add(1, Ordering::SeqCst);
        let mut inner = self.lock();
        self.0.arriving.fetch_sub(1, Ordering::SeqCst);
        match catch_unwind(AssertUnwindSafe(|| inner.add_unit(&mut work))) {
            Ok(outcome) => {
                self.settle(inner)?;
                outcome
            }
            Err(panic) => {
                inner.give_up();
                drop(inner);
                self.0.settled.notify_all();
                resume_unwind(panic)
            }
        }
    }

    /// Whether both are the same, and not two of the same log.
    pub fn is(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The engine, where the log is elsewhere.
    fn engine(&self) -> Option<&dyn Engine> {
        self.0.engine.as_deref()
    }

    /// Commits the open group, or waits for the thread that will: the last to arrive does it.
    fn settle(&self, mut inner: MutexGuard<'_, Inner>) -> Result<(), StoreError> {
        let Some(group) = &inner.group else { return Ok(()) };
        if group.units < inner.linger {
            return Ok(());
        }
        let (number, full) = (group.number, group.units >= MAX_GROUP);
        if full || self.0.arriving.load(Ordering::SeqCst) == 0 {
            inner.commit();
            self.0.settled.notify_all();
        }
        let waiting = |inner: &mut Inner| inner.settled < number;
        let inner =
            self.0.settled.wait_while(inner, waiting).unwrap_or_else(PoisonError::into_inner);
        match &inner.failure {
            Some((failed, reason)) if *failed == number => Err(StoreError::Commit(reason.clone())),
            _ => Ok(()),
        }
    }

    /// Reads the view in one snapshot of what is committed.
    pub fn read<T, E: From<StoreError>>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = self.lock();
        inner.settle_for_reader()?;
        self.0.settled.notify_all();
        say(&inner.conn, "BEGIN")?;
        let answer = question(View::new(&inner.conn));
        say(&inner.conn, "ROLLBACK")?;
        answer
    }

    /// Asks the view one thing: a single query is its own snapshot.
    pub fn glance<T>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, LogError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        inner.settle_for_reader()?;
        self.0.settled.notify_all();
        Ok(question(View::new(&inner.conn))?)
    }

    /// Ends the use of a store by a process that is about to end: moves the WAL if that is due, and
    /// leaves the rest to the system, which is quicker at it.
    pub fn leave(self) {
        let worth_it = self.lock().home.path().is_some_and(sqlite::is_wal_large);
        match worth_it {
            true => drop(self),
            false => std::mem::forget(self),
        }
    }

    /// Makes the view again from the log; answers the state hash before and after. Fails if acknowledged events
    /// are missing: a new view would not know of them.
    pub fn rebuild(&self, progress: &mut dyn FnMut(Seq)) -> Result<(String, String), StoreError> {
        let mut inner = self.lock();
        // A log that lost events can't bring the view up to date.
        let settled = inner.settle_for_reader();
        if let Some(broken) = inner.check_events()? {
            return Err(StoreError::Broken(broken));
        }
        settled?;
        inner.remake(None, progress)
    }

    /// Makes the view again from a log of which acknowledged events are missing, and records that in the log with
    /// the event that `record` makes. A log that is whole is rebuilt as by [`Store::rebuild`].
    pub fn rebuild_after_loss(
        &self,
        record: &dyn Fn(LossAccepted) -> Event,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Rebuilt, StoreError> {
        let mut inner = self.lock();
        let settled = inner.settle_for_reader();
        let Some(broken) = inner.check_events()? else {
            settled?;
            let hashes = inner.remake(None, progress)?;
            return Ok(Rebuilt { hashes, accepted: None });
        };
        let is_elsewhere = matches!(inner.home, Home::Elsewhere(_));
        let is_gap = is_elsewhere && matches!(broken, Broken::Missing { .. });
        if !broken.can_be_accepted() && !is_gap {
            return Err(StoreError::Broken(broken));
        }
        let loss = inner.loss(&broken)?;
        let hashes = inner.remake(Some(record(loss)), progress)?;
        Ok(Rebuilt { hashes, accepted: Some(broken) })
    }

    /// Checks that the log is what was written, the view what the log leads to, and the file what SQLite wrote.
    pub fn verify(&self, progress: &mut dyn FnMut(Seq)) -> Result<Result<Seq, Broken>, StoreError> {
        let mut inner = self.lock();
        if let Home::File(_) = &inner.home {
            if let Some(broken) = sqlite::check_file(&inner.conn)? {
                return Ok(Err(broken));
            }
        } else {
            // The check tells better than the follower what is wrong with a log.
            let _ = inner.settle_for_reader();
        }
        inner.conn.execute_batch("BEGIN")?;
        let checked = inner.verify_in_transaction(progress);
        inner.conn.execute_batch("ROLLBACK")?;
        checked
    }

    /// From here until [`Store::finish_bulk`], commits are few: units are durable only then.
    pub fn begin_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = BULK_GROUP;
        inner.tune(BULK_WAL_PAGES, BULK_CACHE_KIB)
    }

    /// Makes everything since [`Store::begin_bulk`] durable.
    pub fn finish_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = 0;
        self.settle(inner)?;
        let inner = self.lock();
        inner.tune(USUAL_WAL_PAGES, USUAL_CACHE_KIB)?;
        // A WAL that is moved and used again needs no new blocks for each commit.
        Ok(inner.conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?)
    }
}

impl Inner {
    fn verify_in_transaction(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Result<Seq, Broken>, StoreError> {
        let broken = match &self.home {
            Home::Elsewhere(elsewhere) => {
                let acknowledged = self.acknowledged()?;
                match elsewhere::verify(&*elsewhere.engine, &acknowledged, progress)? {
                    Ok(checked) => match elsewhere::compare_view(&self.conn, &checked)? {
                        Some(broken) => broken,
                        None => return Ok(Ok(checked.events)),
                    },
                    Err(broken) => broken,
                }
            }
            Home::File(_) => match self.verify_chain(progress)? {
                Ok(events) => match sqlite::verify_view(&self.conn)? {
                    Some(broken) => broken,
                    None => return Ok(Ok(events)),
                },
                Err(broken) => broken,
            },
        };
        Ok(Err(broken))
    }

    fn verify_chain(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Result<Seq, Broken>, StoreError> {
        let Home::File(file) = &self.home else { return Ok(Ok(0)) };
        if let Some(loss) = &file.loss {
            return Ok(Err(Broken::Lost(loss.clone())));
        }
        let heads = AcknowledgedHeads::read(&self.conn, &file.path);
        Ok(sqlite::verify_chain(&self.conn, &heads, progress)?)
    }

    /// What is wrong with the events of the log, whatever the view is.
    fn check_events(&self) -> Result<Option<Broken>, StoreError> {
        match &self.home {
            Home::File(_) => Ok(self.verify_chain(&mut |_| ())?.err()),
            Home::Elsewhere(elsewhere) => {
                let acknowledged = self.acknowledged()?;
                Ok(elsewhere::verify(&*elsewhere.engine, &acknowledged, &mut |_| ())?.err())
            }
        }
    }

    /// The record of a loss.
    fn loss(&self, broken: &Broken) -> Result<LossAccepted, StoreError> {
        let found = match &self.home {
            Home::File(_) if !sqlite::has_table(&self.conn, "event")? => 0,
            Home::File(_) => sqlite::last_place(&self.conn)?,
            Home::Elsewhere(elsewhere) => elsewhere.engine.head()?,
        };
        let removed = match &self.home {
            Home::File(_) => 0,
            Home::Elsewhere(elsewhere) => elsewhere.engine.removed()?,
        };
        let acknowledged = match broken {
            Broken::Replaced { expected } => *expected,
            Broken::Lost(loss) => loss.acknowledged.unwrap_or(0),
            _ => self.seen()?,
        };
        Ok(LossAccepted { problem: broken.to_string(), acknowledged, found, removed })
    }

    /// Makes the view again, with `record` behind the events that are left.
    fn remake(
        &mut self,
        record: Option<Event>,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(String, String), StoreError> {
        // On servers the record comes first: a process that dies in between has accepted nothing in silence.
        if let (Home::Elsewhere(elsewhere), Some(event)) = (&self.home, &record) {
            let engine = elsewhere.engine.clone();
            let last = engine.last(&event.subject)?.map_or(0, |stored| stored.seq);
            let event = event.clone();
            let accepted = engine.append(&[NewEvent { expected: last, event }])?.first();
            self.forget_loss(accepted)?;
        }
        self.forget_written()?;
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        match self.replay_between_hashes(record, progress) {
            Ok((before, mut after)) => {
                crash::point("rebuild");
                self.conn.execute_batch("COMMIT")?;
                if let Home::File(file) = &mut self.home {
                    file.loss = None;
                    let totals = View::new(&self.conn).totals()?;
                    self.record_head(&totals);
                }
                if let Home::Elsewhere(_) = self.home {
                    self.read_all(progress)?;
                    after = View::new(&self.conn).state_hash()?;
                }
                Ok((before, after))
            }
            Err(error) => {
                self.conn.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }
}

/// A store is a log too: its own, or the one that it follows.
impl EventLog for Store {
    fn append(&self, batch: &[NewEvent]) -> Result<Appended, AppendError> {
        if let Some(engine) = self.engine() {
            let appended = engine.append(batch)?;
            let last = appended.first() + batch.len() as Seq - 1;
            self.note_seen(last).map_err(|error| LogError::Engine(Box::new(error)))?;
            return Ok(appended);
        }
        self.transact(|unit| unit.append(batch)).map_err(|error: StoreError| match error {
            StoreError::Append(error) => error,
            StoreError::Log(error) => error.into(),
            other => LogError::Engine(Box::new(other)).into(),
        })
    }

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<Hash>, LogError> {
        match self.engine() {
            Some(engine) => engine.digests(batch),
            None => Ok(vec![chain::START; batch.len()]),
        }
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        Ok(self.history(subject, 1)?.pop())
    }

    // A log that is elsewhere may take long to answer: nobody else waits for that.
    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        if let Some(engine) = self.engine() {
            return engine.history(subject, limit);
        }
        let inner = self.lock();
        let version = View::new(&inner.conn).version(subject)?;
        sqlite::back_from(&inner.conn, version, limit)
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        match self.engine() {
            Some(engine) => engine.read(from, limit),
            None => sqlite::read(&self.lock().conn, from, limit),
        }
    }

    fn head(&self) -> Result<Seq, LogError> {
        match self.engine() {
            Some(engine) => engine.head(),
            None => Ok(View::new(&self.lock().conn).totals()?.head),
        }
    }

    fn removed(&self) -> Result<u64, LogError> {
        self.engine().map_or(Ok(0), EventLog::removed)
    }

    fn follow_subject(&self, subject: &Subject, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        match self.engine() {
            Some(engine) => engine.follow_subject(subject, from),
            None => {
                let (follow, subject) = (self.follow(from)?, subject.clone());
                Ok(Box::new(FollowOne { follow, subject }))
            }
        }
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        if let Some(engine) = self.engine() {
            return engine.follow(from);
        }
        let path = self.lock().home.path().map(Path::to_owned).unwrap_or_default();
        let conn = sqlite::open(&path).map_err(|error| LogError::Engine(Box::new(error)))?;
        Ok(Box::new(FileFollower { conn, next: from.max(1) }))
    }
}

impl Pulse for Store {
    fn beat(&self, held: &Held, holder: &str, epoch: u64) -> Result<(), LogError> {
        if let Some(engine) = self.engine() {
            return engine.beat(held, holder, epoch);
        }
        let mut inner = self.lock();
        // A transaction of its own: a unit that is undone must not take the beat with it.
        inner.commit();
        self.0.settled.notify_all();
        sqlite::beat(&inner.conn, held, holder, epoch)
    }

    fn take(
        &self,
        held: &Held,
        holder: &str,
        epoch: u64,
        seen: Option<&Beat>,
    ) -> Result<bool, LogError> {
        if let Some(engine) = self.engine() {
            return engine.take(held, holder, epoch, seen);
        }
        let mut inner = self.lock();
        inner.commit();
        self.0.settled.notify_all();
        sqlite::take(&inner.conn, held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &Held) -> Result<Option<Beat>, LogError> {
        match self.engine() {
            Some(engine) => engine.last_beat(held),
            None => sqlite::last_beat(&self.lock().conn, held),
        }
    }

    fn workers(&self) -> Result<Vec<Beat>, LogError> {
        match self.engine() {
            Some(engine) => engine.workers(),
            None => sqlite::workers(&self.lock().conn),
        }
    }

    fn forget(&self, held: &Held) -> Result<(), LogError> {
        if let Some(engine) = self.engine() {
            return engine.forget(held);
        }
        let mut inner = self.lock();
        inner.commit();
        self.0.settled.notify_all();
        sqlite::forget(&inner.conn, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookloop_core::event::EventBody;
    use hookloop_core::id::EventId;
    use hookloop_core::task::TaskSpec;
    use hookloop_core::time::Timestamp;

    use crate::view::TaskFilter;

    pub(super) fn created(name: &str) -> Event {
        let mut id = [0; 16];
        id[..name.len()].copy_from_slice(name.as_bytes());
        Event {
            id: EventId(id),
            at: Timestamp(0),
            subject: Subject::Task(name.parse().unwrap()),
            actor: "tester".into(),
            cause: None,
            due: false,
            body: EventBody::TaskCreated(TaskSpec { goal: name.into(), ..TaskSpec::default() }),
        }
    }

    fn add(store: &Store, name: &str) {
        store.transact(|unit| unit.stage(created(name)).map(drop)).unwrap();
    }

    #[test]
    fn a_unit_that_fails_or_panics_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("log.db")).unwrap();
        let failed: Result<(), StoreError> = store.transact(|unit| {
            unit.stage(created("fails"))?;
            Err(StoreError::Contended)
        });
        assert!(failed.is_err());
        let panicking = store.clone();
        let panicked = std::thread::spawn(move || {
            panicking.transact(|unit| -> Result<(), StoreError> {
                unit.stage(created("panics"))?;
                panic!("half-way");
            })
        });
        assert!(panicked.join().is_err());
        add(&store, "works");
        let tasks = store.read(|view| Ok::<_, StoreError>(view.totals()?.tasks())).unwrap();
        assert_eq!((tasks, store.read_all()), (1, vec!["works".to_owned()]));
        let (before, after) = store.rebuild(&mut |_| ()).unwrap();
        assert_eq!(before, after);
    }

    #[test]
    fn a_list_is_of_what_is_asked_for() {
        let store = Store::over(Arc::new(crate::memory::MemoryLog::default())).unwrap();
        for (name, goal) in
            [("a", "Say \"50% done\""), ("b", "under_score"), ("c", "Größe"), ("d50", "")]
        {
            let spec = TaskSpec {
                goal: goal.into(),
                labels: vec!["Odd\\one".into()],
                ..TaskSpec::default()
            };
            let event = Event { body: EventBody::TaskCreated(spec), ..created(name) };
            store.transact(|unit| unit.stage(event.clone()).map(drop)).unwrap();
        }
        let check = |text: &str, before: Option<u64>, expected: &str| {
            let filter = TaskFilter { text: Some(text.into()), before, ..TaskFilter::default() };
            let found = store.read(|view| Ok::<_, StoreError>(view.list(&filter)?)).unwrap();
            let ids: Vec<&str> = found.iter().map(|row| row.task.id.as_str()).collect();
            assert_eq!(ids.join(" "), expected, "{text}");
        };
        check("50", None, "d50 a");
        check("50%", None, "a");
        check("\"50% DONE\"", None, "a");
        check("_", None, "b");
        check("größe", None, "c");
        check("GRÖ", None, "");
        check("d\\O", None, "d50 c b a");
        check("goal", None, "");
        check("o", Some(3), "b a");
    }

    impl Store {
        fn read_all(&self) -> Vec<String> {
            let events = EventLog::read(self, 1, usize::MAX).unwrap();
            events.iter().map(|stored| stored.event.subject.to_string()).collect()
        }
    }

    #[test]
    fn what_a_rival_made_of_the_same_is_read_not_assumed() {
        let log = Arc::new(crate::memory::MemoryLog::default());
        let [one, rival] = [(); 2].map(|()| Store::over(log.clone()).unwrap());
        let mut tries = 0;
        let late = one.transact(|unit| {
            tries += 1;
            // The rival is first: the same id, at another time, and with less to say.
            if tries == 1 {
                let event = Event { at: Timestamp(1), ..created("a") };
                rival.transact(|unit| unit.stage(event.clone()).map(drop))?;
            }
            if unit.view()?.task(&"a".parse().unwrap())?.is_none() {
                unit.stage(created("a"))?;
            }
            unit.stage(created("b"))
        });
        late.unwrap();
        add(&rival, "c");
        assert_eq!((tries, one.read_all()), (2, ["a", "b", "c"].map(str::to_owned).to_vec()));
        let hash = |store: &Store| store.read(|view| Ok::<_, StoreError>(view.state_hash()?));
        assert_eq!(hash(&one).unwrap(), hash(&rival).unwrap());
    }

    #[test]
    fn what_was_delivered_twice_is_done_once() {
        let log = Arc::new(crate::memory::MemoryLog::default());
        let store = Store::over(log.clone()).unwrap();
        let mut tries = 0;
        let added = store.transact(|unit| {
            tries += 1;
            let event = created("a");
            if tries == 1 {
                log.append(&[NewEvent { expected: 0, event: event.clone() }])?;
            }
            unit.stage(event)
        });
        added.unwrap();
        assert_eq!((tries, store.read_all()), (1, vec!["a".to_owned()]));
        let tasks = store.read(|view| Ok::<_, StoreError>(view.totals()?.tasks()));
        assert_eq!(tasks.unwrap(), 1);
    }

    #[test]
    fn a_full_disk_is_said_and_survived() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("log.db")).unwrap();
        add(&store, "before");
        let limit = |pages: u32| {
            let inner = store.lock();
            inner.conn.pragma_update(None, "max_page_count", pages).unwrap();
        };
        limit(1);
        let large = TaskSpec { goal: "x".repeat(64 * 1024), ..TaskSpec::default() };
        for _ in 0..2 {
            let event = Event { body: EventBody::TaskCreated(large.clone()), ..created("large") };
            let full: Result<(), StoreError> =
                store.transact(|unit| unit.stage(event.clone()).map(drop));
            assert!(full.unwrap_err().to_string().contains("full"));
        }
        limit(1_000_000);
        add(&store, "after");
        assert_eq!(store.read_all(), ["before", "after"]);
        assert_eq!(store.verify(&mut |_| ()).unwrap(), Ok(2));
    }

    #[test]
    fn threads_share_commits_and_lose_nothing() {
        const THREADS: usize = 8;
        const EACH: usize = 40;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("log.db")).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let store = &store;
                scope.spawn(move || (0..EACH).for_each(|n| add(store, &format!("t{thread}-{n}"))));
            }
        });
        assert_eq!(store.read_all().len(), THREADS * EACH);
        assert_eq!(store.verify(&mut |_| ()).unwrap(), Ok((THREADS * EACH) as Seq));
    }
}
