//! A view over a log that is elsewhere: a local copy that follows it.
//!
//! How units get from here into the log is in `trip`; this is how the view gets what the log has.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use hookloop_core::event::Event;
use rusqlite::Connection;

use super::group::{Home, Inner, say, take};
use super::origin::{self, NOTE, WRITTEN};
use super::{Engine, Shared, Store, StoreError};
use crate::chain;
use crate::log::{LogError, NewEvent, Seq, StoredEvent};
use crate::snapshot::Snapshot;
use crate::sqlite::{self, Broken};
use crate::view::{Fold, View};

/// How long one wait for events lasts, and all of them together.
const STEP: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(30);
/// Tries after which a unit that others keep overtaking waits a little before it is done again.
const EAGER_TRIES: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Events that a view asks for at once; one that misses more follows the log until it has them.
const CATCH_UP: usize = 1_000;
/// How often a view that nobody follows for us is looked at for news.
const NEWS_POLL: Duration = Duration::from_millis(20);
/// Followers of a view that fail wait this long.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);
/// Waits without an event after which a follower is given up, if somebody knows that there are more: its
/// own signs of life are far apart.
const STALLED_STEPS: usize = 3;

pub(super) struct Elsewhere {
    pub(super) engine: Arc<dyn Engine>,
    /// The view's file; none for a view in memory.
    pub(super) path: Option<PathBuf>,
    /// What this process has written: reads show at least that.
    written: Seq,
    pace: Pace,
}

/// When a view is brought up to the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Before every use.
    EachTime,
    /// Once, and again when others turn out to have written: a short command sees one moment.
    Once,
    /// All the time, by a thread of this process.
    Live,
}

impl Elsewhere {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Elsewhere {
        Elsewhere { engine, path: None, written: 0, pace: Pace::EachTime }
    }

    /// With the view in a file, `conn`.
    pub(super) fn at(
        engine: Arc<dyn Engine>,
        path: &Path,
        conn: &Connection,
    ) -> Result<Elsewhere, StoreError> {
        let written = origin::get(conn, WRITTEN)?.and_then(|seq| seq.parse().ok()).unwrap_or(0);
        Ok(Elsewhere { engine, path: Some(path.to_owned()), written, pace: Pace::EachTime })
    }
}

impl Store {
    /// Lets a thread of this process follow the log from now on, so that reads need not ask for it.
    pub fn go_live(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.catch_up(0)?;
        let head = View::new(&inner.conn).totals()?.head;
        let Home::Elsewhere(elsewhere) = &mut inner.home else { return Ok(()) };
        if std::mem::replace(&mut elsewhere.pace, Pace::Live) != Pace::Live {
            self.0.progress.reach(head);
            let (engine, store) = (elsewhere.engine.clone(), Arc::downgrade(&self.0));
            let follower = std::thread::Builder::new().name("hookloop-view".to_owned());
            follower
                .spawn(move || follow(&*engine, &store, head))
                .map_err(|error| LogError::Engine(Box::new(error)))?;
        }
        Ok(())
    }

    /// Brings the view up to the end of the log now, and from here on only when others turn out to
    /// have written. Fails if the log is not the one that the view was made from any more.
    pub fn hold_still(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let end = inner.check_log()?;
        match &mut inner.home {
            Home::Elsewhere(elsewhere) if elsewhere.pace == Pace::EachTime => {
                elsewhere.pace = Pace::Once;
            }
            _ => {}
        }
        inner.catch_up(end)
    }

    /// Undoes [`Store::hold_still`]: every use sees the end of the log.
    pub fn keep_up(&self) {
        match &mut self.lock().home {
            Home::Elsewhere(elsewhere) if elsewhere.pace == Pace::Once => {
                elsewhere.pace = Pace::EachTime;
            }
            _ => {}
        }
    }

    /// Waits until the view has more than event `known`; answers its last one.
    pub fn wait_for_news(&self, known: Seq, timeout: Duration) -> Result<Seq, StoreError> {
        let end = Instant::now() + timeout;
        loop {
            let mut inner = self.lock();
            inner.settle_for_reader()?;
            let head = View::new(&inner.conn).totals()?.head;
            let left = end.saturating_duration_since(Instant::now());
            if head > known || left.is_zero() {
                return Ok(head);
            }
            let is_live = inner.is_live();
            drop(inner);
            match is_live {
                true => {
                    self.0.progress.wait(known + 1, end);
                }
                false => std::thread::sleep(NEWS_POLL.min(left)),
            }
        }
    }

    /// The last event that this machine has seen or written, whatever the log has now.
    pub fn seen(&self) -> Result<Seq, StoreError> {
        let inner = self.lock();
        let head = View::new(&inner.conn).totals()?.head;
        match &inner.home {
            Home::Elsewhere(elsewhere) => Ok(head.max(elsewhere.written)),
            Home::File(_) => Ok(head),
        }
    }

    /// What this machine keeps beside the view of a log that is elsewhere.
    pub fn recall(&self, key: &str) -> Result<Option<String>, StoreError> {
        origin::get(&self.lock().conn, key)
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<(), StoreError> {
        origin::set(&self.lock().conn, key, value)
    }

    /// Forgets what `identify` answered: the next process that opens this view asks again.
    pub(crate) fn forget_note(&self) -> Result<(), StoreError> {
        self.remember(NOTE, "")
    }

    /// Waits until a view that follows its log has event `seq`; any other fetches it when it is used.
    pub(super) fn wait_if_live(&self, seq: Seq) -> Result<(), StoreError> {
        let is_live = self.lock().is_live();
        if is_live { self.wait_seen(seq) } else { Ok(()) }
    }

    /// Waits until a view that follows its log has event `seq`.
    fn wait_seen(&self, seq: Seq) -> Result<(), StoreError> {
        match self.0.progress.wait(seq, Instant::now() + PATIENCE) {
            true => Ok(()),
            false => Err(behind(seq).into()),
        }
    }

    /// Brings what this process has just written into its view.
    pub(super) fn see_own(&self, first: Seq, batch: Vec<NewEvent>) -> Result<(), StoreError> {
        let last = first + batch.len() as Seq - 1;
        let mut inner = self.lock();
        // If nobody wrote in between, what was written is all there is to see.
        if View::new(&inner.conn).totals()?.head + 1 != first {
            drop(inner);
            return self.note_seen(last);
        }
        let stored = |(seq, NewEvent { event, .. })| StoredEvent { seq, after: None, event };
        let events: Vec<StoredEvent> = (first..).zip(batch).map(stored).collect();
        inner.take_in(&events)?;
        self.0.progress.reach(last);
        Ok(())
    }

    /// The last event in the engine's snapshot; 0 if it has none.
    pub fn snapshot_head(&self) -> Result<Seq, StoreError> {
        match self.engine() {
            Some(engine) => Ok(engine.latest_head(sqlite::SCHEMA)?),
            None => Ok(0),
        }
    }

    /// From now on reads show at least event `seq`.
    pub(super) fn note_seen(&self, seq: Seq) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if !inner.is_live() {
            return inner.note_written(seq);
        }
        drop(inner);
        self.wait_seen(seq)
    }

    /// Saves the view for machines that start later. Answers the last event in it.
    pub fn save_snapshot(&self) -> Result<Seq, StoreError> {
        let Some(engine) = self.engine() else { return Ok(0) };
        let (head, view) = {
            let inner = self.lock();
            (View::new(&inner.conn).totals()?.head, inner.serialized()?)
        };
        engine.save(&Snapshot { head, schema: sqlite::SCHEMA, view })?;
        Ok(head)
    }
}

impl Inner {
    /// A copy of the view as a file's bytes, made beside it, where only this user can look.
    fn serialized(&self) -> Result<Vec<u8>, StoreError> {
        let view =
            self.home.path().map_or_else(|| std::env::temp_dir().join("view"), Path::to_owned);
        let copy = view.with_extension(format!("{}.copy", std::process::id()));
        let made = self
            .conn
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .map_err(StoreError::from)
            .and_then(|_| std::fs::read(&copy).map_err(|e| LogError::Engine(Box::new(e)).into()));
        // Gone already if it could not be made.
        let _ = std::fs::remove_file(&copy);
        made
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(&self.home, Home::Elsewhere(elsewhere) if elsewhere.pace == Pace::Live)
    }

    /// The end of the log. Fails if events that the view has are gone from it, or it does not answer: who
    /// opens the view next is to look at the log anew then.
    fn check_log(&self) -> Result<Seq, StoreError> {
        let Home::Elsewhere(elsewhere) = &self.home else { return Ok(0) };
        if elsewhere.pace == Pace::Live {
            return Ok(0);
        }
        let seen = View::new(&self.conn).totals()?.head;
        let checked = elsewhere.engine.head().and_then(|head| match head < seen {
            true => elsewhere.engine.check_has(seen).map(|()| head),
            false => Ok(head),
        });
        if checked.is_err() && elsewhere.path.is_some() {
            origin::set(&self.conn, NOTE, "")?;
        }
        Ok(checked?)
    }

    /// Brings the view up to the end of the log, and at least up to `at_least`. A view that follows
    /// the log all the time is left alone.
    pub(super) fn catch_up(&mut self, at_least: Seq) -> Result<(), StoreError> {
        let Home::Elsewhere(elsewhere) = &self.home else { return Ok(()) };
        if !self.conn.is_autocommit() {
            say(&self.conn, "ROLLBACK")?;
        }
        let engine = elsewhere.engine.clone();
        let at_least = at_least.max(elsewhere.written);
        let head = View::new(&self.conn).totals()?.head;
        let target = match elsewhere.pace {
            Pace::Live => return Ok(()),
            Pace::Once => at_least,
            Pace::EachTime => engine.head()?.max(at_least),
        };
        if target <= head {
            return Ok(());
        }
        let events = engine.read(head + 1, CATCH_UP)?;
        self.take_in(&events)?;
        self.take_until(&*engine, target, &mut |_| ())
    }

    fn take_until(
        &mut self,
        engine: &dyn Engine,
        target: Seq,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(), StoreError> {
        let mut head = View::new(&self.conn).totals()?.head;
        if head >= target {
            return Ok(());
        }
        let mut follower = engine.follow(head + 1)?;
        let mut end = Instant::now() + PATIENCE;
        while head < target {
            let events = follower.next(STEP)?;
            match events.last() {
                Some(last) => {
                    self.take_in(&events)?;
                    (head, end) = (last.seq, Instant::now() + PATIENCE);
                    progress(head);
                }
                None if Instant::now() > end => return Err(behind(target).into()),
                None => {}
            }
        }
        Ok(())
    }

    /// Takes events into the view that it does not have yet: another process of this machine may
    /// have been first.
    fn take_in(&mut self, events: &[StoredEvent]) -> Result<(), StoreError> {
        let head = View::new(&self.conn).totals()?.head;
        if events.last().is_none_or(|last| last.seq <= head) {
            return Ok(());
        }
        say(&self.conn, "BEGIN IMMEDIATE")?;
        let taken = self.take_in_transaction(events);
        say(&self.conn, if taken.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        taken
    }

    fn take_in_transaction(&self, events: &[StoredEvent]) -> Result<(), StoreError> {
        let mut fold = Fold::new(&self.conn, View::new(&self.conn).totals()?);
        let had = fold.totals.head;
        let mut keeps_books = false;
        for stored in events.iter().filter(|stored| stored.seq > had) {
            let prev = take(&mut fold, stored)?;
            if let Some(after) = stored.after.filter(|after| *after != prev) {
                let subject = &stored.event.subject;
                let reason = format!(
                    "it follows version {after} of `{subject}`, but the view has {prev}: something is missing"
                );
                return Err(LogError::damaged(stored.seq, reason).into());
            }
            if stored.event.due {
                sqlite::insert(&self.conn, stored.seq, prev, &stored.event, &chain::START)?;
            }
            keeps_books |= stored.event.body.is_bookkeeping();
        }
        if keeps_books {
            let done = "DELETE FROM event WHERE seq NOT IN (SELECT seq FROM due)";
            self.conn.prepare_cached(done)?.execute([])?;
        }
        Ok(fold.view()?.write_totals(&fold.totals)?)
    }

    /// Remembers what was written where the view does not show it yet, also for the next process
    /// that uses this view.
    fn note_written(&mut self, seq: Seq) -> Result<(), StoreError> {
        let Home::Elsewhere(elsewhere) = &mut self.home else { return Ok(()) };
        elsewhere.written = elsewhere.written.max(seq);
        match &elsewhere.path {
            Some(_) => origin::set(&self.conn, WRITTEN, &seq.to_string()),
            None => Ok(()),
        }
    }

    /// For a view that is made again: it shows what the log has.
    pub(super) fn forget_written(&mut self) -> Result<(), StoreError> {
        let Home::Elsewhere(elsewhere) = &mut self.home else { return Ok(()) };
        elsewhere.written = 0;
        match &elsewhere.path {
            Some(_) => origin::set(&self.conn, WRITTEN, "0"),
            None => Ok(()),
        }
    }

    /// Takes in the whole log, for a view that was emptied.
    pub(super) fn read_all(&mut self, progress: &mut dyn FnMut(Seq)) -> Result<(), StoreError> {
        let Home::Elsewhere(elsewhere) = &self.home else { return Ok(()) };
        let engine = elsewhere.engine.clone();
        let target = engine.head()?.max(elsewhere.written);
        self.take_until(&*engine, target, progress)
    }
}

/// Whether the log has this very event at `seq`. A network that heals can deliver a batch twice, and
/// then the second is what is answered: it was stored before, by nobody else.
pub(super) fn is_at(engine: &dyn Engine, seq: Seq, event: &Event) -> Result<bool, StoreError> {
    let mut follower = engine.follow(seq)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match follower.next(STEP)?.first() {
            Some(stored) => return Ok(stored.seq == seq && stored.event == *event),
            None if Instant::now() > end => return Err(behind(seq).into()),
            None => {}
        }
    }
}

fn behind(target: Seq) -> LogError {
    let reason = format!("event {target} did not arrive within {} s", PATIENCE.as_secs());
    LogError::Engine(reason.into())
}

/// Follows the log into the view of `store`, for as long as somebody has it.
fn follow(engine: &dyn Engine, store: &Weak<Shared>, mut head: Seq) {
    loop {
        let Ok(mut follower) = engine.follow(head + 1) else {
            std::thread::sleep(FOLLOW_PAUSE);
            if store.strong_count() == 0 {
                return;
            }
            continue;
        };
        let mut stalled = 0;
        loop {
            let Ok(events) = follower.next(STEP) else { break };
            let Some(shared) = store.upgrade() else { return };
            let store = Store(shared);
            let Some(last) = events.last() else {
                stalled = if store.0.progress.is_waited_for() { stalled + 1 } else { 0 };
                if stalled >= STALLED_STEPS {
                    break;
                }
                continue;
            };
            stalled = 0;
            // A view that can't take an event in stays where it is; who waits for it is told.
            if store.lock().take_in(&events).is_err() {
                break;
            }
            head = last.seq;
            store.0.progress.reach(head);
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

/// A random while, longer with every try after the first few.
pub(super) fn pause(tried: usize) {
    if tried <= EAGER_TRIES {
        return;
    }
    use std::hash::{BuildHasher, RandomState};
    let longest = LONGEST_PAUSE.min(Duration::from_millis(tried as u64));
    std::thread::sleep(longest / 64 * (RandomState::new().hash_one(tried) % 64) as u32);
}

/// Reads the whole log and checks that every subject's events follow each other.
pub(super) fn verify(
    engine: &dyn Engine,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<Seq, Broken>, LogError> {
    let head = engine.head()?;
    let (mut seen, mut count) = (std::collections::HashMap::new(), 0);
    if head == 0 {
        return Ok(Ok(0));
    }
    let mut follower = engine.follow(1)?;
    let mut end = Instant::now() + PATIENCE;
    loop {
        let events = match follower.next(STEP) {
            Ok(events) => events,
            Err(LogError::Damaged { seq, reason }) => {
                return Ok(Err(Broken::Unreadable { seq, reason }));
            }
            Err(error) => return Err(error),
        };
        if events.is_empty() && Instant::now() > end {
            return Err(behind(head));
        }
        for StoredEvent { seq, after, event } in events {
            let prev = seen.insert(event.subject, seq).unwrap_or(0);
            if after.is_some_and(|after| after != prev) {
                return Ok(Err(Broken::Missing { seq: after.unwrap_or(prev) }));
            }
            count += 1;
            progress(seq);
            end = Instant::now() + PATIENCE;
            if seq >= head {
                return Ok(Ok(count));
            }
        }
    }
}
