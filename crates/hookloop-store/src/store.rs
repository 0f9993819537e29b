//! Log and view together, the units of work that change them, and group commit.
//!
//! A unit of work reads the view, stages events (which the view shows at once), and becomes one
//! atomic batch. With the log in the same file, batch and view are one transaction. With the log
//! elsewhere, the view is a copy that follows it: the unit's changes are undone, the batch is
//! appended, and what the log answered is applied; on a conflict the work is done again from what
//! the log then holds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hookloop_core::event::Event;
use hookloop_core::id::Subject;
use rusqlite::Connection;

use crate::log::{
    AppendError, Appended, EventLog, Follow, LogError, MAX_BATCH, NewEvent, Seq, StoredEvent,
};
use crate::sqlite::{self, Broken, FileFollower, OpenError};
use crate::view::{self, Fold, Totals, View};
use crate::{chain, crash};

/// Units that one commit carries at most.
const MAX_GROUP: usize = 64;
/// Units that one commit of bulk work carries.
const BULK_GROUP: usize = 24;
/// Pages that bulk work leaves in the WAL, and the cache it may use.
const BULK_WAL_PAGES: u32 = 16_000;
const BULK_CACHE_KIB: u32 = 96 * 1024;
/// How often a unit is done again because others wrote first.
const MAX_TRIES: usize = 1_000;
/// Events that a view takes over from a log elsewhere at once.
const CATCH_UP: usize = 1_000;

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
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Log(error.into())
    }
}

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
    /// A group of units was committed, or failed to be.
    settled: Condvar,
    /// Threads that are about to add a unit to the open group.
    arriving: AtomicUsize,
}

struct Inner {
    conn: Connection,
    home: Home,
    group: Option<Group>,
    /// Units that a commit waits for, in bulk work.
    linger: usize,
    /// A unit is under way; still so when the next one comes, it panicked.
    busy: bool,
    /// The number of the last group that was settled, and what went wrong with it.
    settled: u64,
    failure: Option<(u64, String)>,
}

enum Home {
    /// The log is a table beside the view.
    File(PathBuf),
    Elsewhere(Box<dyn EventLog>),
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Home::File(path) = &self.home {
            sqlite::before_close(&self.conn, path);
        }
    }
}

/// Units that will be one transaction.
struct Group {
    number: u64,
    units: usize,
    totals: Totals,
    /// Something was staged: there is a reason to commit.
    changed: bool,
}

impl Store {
    /// Opens the file at `path`, which holds log and view.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Ok(Store::new(sqlite::open(path)?, Home::File(path.to_owned())))
    }

    /// A view in memory over a log that is elsewhere.
    pub fn over(log: Box<dyn EventLog>) -> Result<Store, StoreError> {
        let store = Store::new(sqlite::open_in_memory()?, Home::Elsewhere(log));
        store.lock().catch_up()?;
        Ok(store)
    }

    fn new(conn: Connection, home: Home) -> Store {
        let inner =
            Inner { conn, home, group: None, linger: 0, busy: false, settled: 0, failure: None };
        Store(Arc::new(Shared {
            inner: Mutex::new(inner),
            settled: Condvar::new(),
            arriving: AtomicUsize::new(0),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.0.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.busy {
            inner.give_up();
            self.0.settled.notify_all();
        }
        inner
    }

    /// Does a unit of work. When this returns, its events are on disk, and those of everyone who
    /// wrote at the same time with them. `work` runs again if others wrote first.
    pub fn transact<T, E: From<StoreError>>(
        &self,
        mut work: impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.arriving.fetch_add(1, Ordering::SeqCst);
        let mut inner = self.lock();
        self.0.arriving.fetch_sub(1, Ordering::SeqCst);
        match inner.home {
            Home::Elsewhere(_) => inner.transact_elsewhere(&mut work),
            Home::File(_) => {
                let outcome = inner.add_unit(&mut work);
                self.settle(inner)?;
                outcome
            }
        }
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
        inner.conn.execute_batch("BEGIN").map_err(StoreError::from)?;
        let answer = question(View::new(&inner.conn));
        inner.conn.execute_batch("ROLLBACK").map_err(StoreError::from)?;
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
        let worth_it = match &self.lock().home {
            Home::File(path) => sqlite::is_wal_large(path),
            Home::Elsewhere(_) => true,
        };
        match worth_it {
            true => drop(self),
            false => std::mem::forget(self),
        }
    }

    /// Makes the view again from the log; answers the state hash before and after.
    pub fn rebuild(&self, progress: &mut dyn FnMut(Seq)) -> Result<(String, String), StoreError> {
        let mut inner = self.lock();
        inner.settle_for_reader()?;
        inner.conn.execute_batch("BEGIN IMMEDIATE")?;
        match inner.replay_between_hashes(progress) {
            Ok((before, mut after)) => {
                crash::point("rebuild");
                inner.conn.execute_batch("COMMIT")?;
                if let Home::Elsewhere(_) = inner.home {
                    inner.catch_up()?;
                    after = View::new(&inner.conn).state_hash()?;
                }
                Ok((before, after))
            }
            Err(error) => {
                inner.conn.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    /// Checks that the log is what was written, and the file what SQLite wrote.
    pub fn verify(&self, progress: &mut dyn FnMut(Seq)) -> Result<Result<Seq, Broken>, StoreError> {
        let inner = self.lock();
        if let Some(broken) = sqlite::check_file(&inner.conn)? {
            return Ok(Err(broken));
        }
        inner.conn.execute_batch("BEGIN")?;
        let totals = View::new(&inner.conn).totals();
        let checked =
            totals.and_then(|t| sqlite::verify_chain(&inner.conn, t.head, &t.hash, progress));
        inner.conn.execute_batch("ROLLBACK")?;
        Ok(checked?)
    }

    /// From here until [`Store::finish_bulk`], commits are few: units are durable only then.
    pub fn begin_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = BULK_GROUP;
        let pages = format!("PRAGMA wal_autocheckpoint = {BULK_WAL_PAGES}");
        let cache = format!("PRAGMA cache_size = -{BULK_CACHE_KIB}");
        Ok(inner.conn.execute_batch(&format!("{pages}; {cache}"))?)
    }

    /// Makes everything since [`Store::begin_bulk`] durable.
    pub fn finish_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = 0;
        self.settle(inner)
    }
}

/// A store is a log too: its own, or the one that it follows.
impl EventLog for Store {
    fn append(&self, batch: &[NewEvent]) -> Result<Appended, AppendError> {
        if let Home::Elsewhere(log) = &self.lock().home {
            return log.append(batch);
        }
        self.transact(|unit| unit.append(batch)).map_err(|error: StoreError| match error {
            StoreError::Append(error) => error,
            StoreError::Log(error) => error.into(),
            other => LogError::Engine(Box::new(other)).into(),
        })
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        Ok(self.history(subject, 1)?.pop())
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let inner = self.lock();
        match &inner.home {
            Home::File(_) => {
                let version = View::new(&inner.conn).version(subject)?;
                sqlite::back_from(&inner.conn, version, limit)
            }
            Home::Elsewhere(log) => log.history(subject, limit),
        }
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let inner = self.lock();
        match &inner.home {
            Home::File(_) => sqlite::read(&inner.conn, from, limit),
            Home::Elsewhere(log) => log.read(from, limit),
        }
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        match &self.lock().home {
            Home::File(path) => {
                let conn = sqlite::open(path).map_err(|error| LogError::Engine(Box::new(error)))?;
                Ok(Box::new(FileFollower { conn, next: from.max(1) }))
            }
            Home::Elsewhere(log) => log.follow(from),
        }
    }
}

impl Inner {
    /// Runs `work` inside the open group, which it opens if there is none.
    fn add_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let alone = self.group.is_none();
        if alone {
            self.begin()?;
        } else {
            self.conn.execute_batch("SAVEPOINT unit").map_err(StoreError::from)?;
        }
        self.busy = true;
        let staged = self.stage_unit(work);
        self.busy = false;
        match staged {
            Ok(done) => {
                if !alone {
                    self.conn.execute_batch("RELEASE unit").map_err(StoreError::from)?;
                }
                Ok(done)
            }
            Err(error) => {
                let undo = if alone { "ROLLBACK" } else { "ROLLBACK TO unit; RELEASE unit" };
                self.conn.execute_batch(undo).map_err(StoreError::from)?;
                if alone {
                    self.group = None;
                }
                Err(error)
            }
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let totals = View::new(&self.conn).totals()?;
        let number = self.settled + 1;
        self.group = Some(Group { number, units: 0, totals, changed: false });
        Ok(())
    }

    /// Runs `work` and writes what it staged behind the log's last event.
    fn stage_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(group) = &mut self.group else { return Err(StoreError::Contended.into()) };
        let mut unit = Unit::new(&self.conn, &self.home, group.totals.clone());
        let done = work(&mut unit)?;
        let Unit { staged, fold, .. } = unit;
        fold.view().map_err(StoreError::from)?;
        let mut hash = fold.totals.hash;
        for Staged { seq, prev, event } in &staged {
            hash =
                sqlite::insert(&self.conn, *seq, *prev, event, &hash).map_err(StoreError::from)?;
            fold.owe(*seq, event).map_err(StoreError::from)?;
        }
        group.units += 1;
        group.changed |= !staged.is_empty();
        group.totals = fold.totals;
        group.totals.hash = hash;
        Ok(done)
    }

    /// Undoes a group in which a unit panicked half-way.
    fn give_up(&mut self) {
        self.busy = false;
        let _ = self.conn.execute_batch("ROLLBACK");
        if let Some(group) = self.group.take() {
            self.failure = Some((group.number, "another write of the same commit panicked".into()));
            self.settled = group.number;
        }
    }

    /// Ends the open group: all of its units are on disk, or none.
    fn commit(&mut self) {
        let Some(group) = self.group.take() else { return };
        if let Err(error) = self.write(&group) {
            let _ = self.conn.execute_batch("ROLLBACK");
            self.failure = Some((group.number, error.to_string()));
        }
        self.settled = group.number;
    }

    fn write(&self, group: &Group) -> Result<(), StoreError> {
        if !group.changed {
            return Ok(self.conn.execute_batch("ROLLBACK")?);
        }
        View::new(&self.conn).write_totals(&group.totals)?;
        crash::point("commit");
        self.conn.execute_batch("COMMIT")?;
        crash::point("committed");
        Ok(())
    }

    fn settle_for_reader(&mut self) -> Result<(), StoreError> {
        self.commit();
        match &self.home {
            Home::Elsewhere(_) => self.catch_up(),
            Home::File(_) => Ok(()),
        }
    }

    fn transact_elsewhere<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        for _ in 0..MAX_TRIES {
            self.catch_up()?;
            self.conn.execute_batch("BEGIN").map_err(StoreError::from)?;
            let totals = View::new(&self.conn).totals().map_err(StoreError::from);
            let outcome = totals.map_err(E::from).and_then(|totals| {
                let mut unit = Unit::new(&self.conn, &self.home, totals);
                let done = work(&mut unit)?;
                Ok((done, unit.batch()))
            });
            self.conn.execute_batch("ROLLBACK").map_err(StoreError::from)?;
            let (done, batch) = outcome?;
            let Home::Elsewhere(log) = &self.home else { return Ok(done) };
            if batch.is_empty() {
                return Ok(done);
            }
            match log.append(&batch) {
                Ok(_) => {
                    crash::point("appended");
                    self.catch_up()?;
                    return Ok(done);
                }
                Err(AppendError::Conflict { .. }) => {}
                Err(error) => return Err(StoreError::from(error).into()),
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Brings the view up to the end of a log that is elsewhere.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        let Home::Elsewhere(log) = &self.home else { return Ok(()) };
        if !self.conn.is_autocommit() {
            self.conn.execute_batch("ROLLBACK")?;
        }
        loop {
            let mut fold = Fold::new(&self.conn, View::new(&self.conn).totals()?);
            let events = log.read(fold.totals.head + 1, CATCH_UP)?;
            if events.is_empty() {
                return Ok(());
            }
            self.conn.execute_batch("BEGIN")?;
            for event in &events {
                take(&mut fold, event)?;
            }
            fold.view()?.write_totals(&fold.totals)?;
            self.conn.execute_batch("COMMIT")?;
        }
    }

    /// Both hashes are taken inside the transaction: what other processes write around it is no
    /// fault of the view.
    fn replay_between_hashes(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(String, String), StoreError> {
        let before = View::new(&self.conn).state_hash()?;
        self.replay(progress)?;
        Ok((before, View::new(&self.conn).state_hash()?))
    }

    fn replay(&self, progress: &mut dyn FnMut(Seq)) -> Result<(), StoreError> {
        self.conn.execute_batch(view::DROP)?;
        self.conn.execute_batch(view::TABLES)?;
        let mut fold = Fold::new(&self.conn, View::new(&self.conn).totals()?);
        let Home::File(_) = &self.home else { return Ok(()) };
        sqlite::each_event(&self.conn, 1, |event| {
            take(&mut fold, &event)?;
            progress(event.seq);
            Ok(true)
        })?;
        fold.totals.hash = last_hash(&self.conn)?;
        Ok(fold.view()?.write_totals(&fold.totals)?)
    }
}

fn take(fold: &mut Fold<'_>, stored: &StoredEvent) -> Result<(), LogError> {
    fold.apply(stored.seq, &stored.event)?;
    fold.owe(stored.seq, &stored.event)
}

fn last_hash(conn: &Connection) -> Result<chain::Hash, StoreError> {
    let last = "SELECT coalesce((SELECT hash FROM event ORDER BY seq DESC LIMIT 1), zeroblob(32))";
    Ok(conn.query_row(last, [], |row| row.get(0))?)
}

struct Staged {
    seq: Seq,
    prev: Seq,
    event: Event,
}

/// Work in progress: what the view says, and the events that are to be one batch.
pub struct Unit<'a> {
    conn: &'a Connection,
    home: &'a Home,
    fold: Fold<'a>,
    staged: Vec<Staged>,
}

impl std::fmt::Debug for Unit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unit of {} events", self.staged.len())
    }
}

impl<'a> Unit<'a> {
    fn new(conn: &'a Connection, home: &'a Home, totals: Totals) -> Unit<'a> {
        Unit { conn, home, fold: Fold::new(conn, totals), staged: Vec::new() }
    }

    /// The view, with what this unit has staged.
    pub fn view(&self) -> Result<View<'a>, LogError> {
        self.fold.view()
    }

    pub fn totals(&self) -> &Totals {
        &self.fold.totals
    }

    /// How many more events the batch can take.
    pub fn room(&self) -> usize {
        MAX_BATCH - self.staged.len()
    }

    /// Adds an event to the batch and to the view; answers its index in the batch.
    pub fn stage(&mut self, event: Event) -> Result<usize, StoreError> {
        if self.room() == 0 {
            return Err(AppendError::BatchSize(MAX_BATCH + 1).into());
        }
        let seq = self.fold.totals.head + 1;
        let prev = self.fold.apply(seq, &event)?;
        self.staged.push(Staged { seq, prev, event });
        Ok(self.staged.len() - 1)
    }

    /// Stages a batch that was made elsewhere, if its subjects have the versions it expects.
    fn append(&mut self, batch: &[NewEvent]) -> Result<Appended, StoreError> {
        let Some(first) = batch.first().filter(|_| batch.len() <= MAX_BATCH) else {
            return Err(AppendError::BatchSize(batch.len()).into());
        };
        let at = self.fold.totals.head + 1;
        for (i, new) in batch.iter().enumerate() {
            let subject = &new.event.subject;
            if batch[..i].iter().any(|earlier| earlier.event.subject == *subject) {
                continue;
            }
            let actual = self.view()?.version(subject)?;
            if actual == new.expected {
                continue;
            }
            if let Some(seq) = self.stored_before(first)? {
                return Ok(Appended::Before(seq));
            }
            let (subject, expected) = (subject.clone(), new.expected);
            return Err(AppendError::Conflict { subject, expected, actual }.into());
        }
        for new in batch {
            self.stage(new.event.clone())?;
        }
        Ok(Appended::At(at))
    }

    /// Where `new` was stored before, if it was: right behind the version that it expects.
    fn stored_before(&self, new: &NewEvent) -> Result<Option<Seq>, StoreError> {
        let mut seq = self.view()?.version(&new.event.subject)?;
        while seq > new.expected {
            let Some((prev, stored)) = sqlite::read_at(self.conn, seq)? else { break };
            if prev == new.expected {
                return Ok((stored.event.id == new.event.id).then_some(seq));
            }
            seq = prev;
        }
        Ok(None)
    }

    /// The staged event at `index` of the batch.
    pub fn staged(&self, index: usize) -> Option<&Event> {
        self.staged.get(index).map(|staged| &staged.event)
    }

    pub fn len(&self) -> usize {
        self.staged.len()
    }

    pub fn is_empty(&self) -> bool {
        self.staged.is_empty()
    }

    /// Leaves the reactions to the staged event at `index` to the dispatcher.
    pub fn defer(&mut self, index: usize) {
        if let Some(staged) = self.staged.get_mut(index) {
            staged.event.due = true;
        }
    }

    /// An event that is in the log already.
    pub fn event(&self, seq: Seq) -> Result<Option<StoredEvent>, StoreError> {
        Ok(match self.home {
            Home::File(_) => sqlite::read_at(self.conn, seq)?.map(|(_, event)| event),
            Home::Elsewhere(log) => log.read(seq, 1)?.into_iter().next(),
        })
    }

    /// The batch: each subject's first event expects the version that the view had.
    fn batch(self) -> Vec<NewEvent> {
        let expected = |staged: Staged| NewEvent { expected: staged.prev, event: staged.event };
        self.staged.into_iter().map(expected).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookloop_core::event::EventBody;
    use hookloop_core::id::EventId;
    use hookloop_core::task::TaskSpec;
    use hookloop_core::time::Timestamp;

    fn created(name: &str) -> Event {
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

    impl Store {
        fn read_all(&self) -> Vec<String> {
            let events = EventLog::read(self, 1, usize::MAX).unwrap();
            events.iter().map(|stored| stored.event.subject.to_string()).collect()
        }
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
