//! A view over a log that is elsewhere: a local copy that follows it.
//!
//! How units get from here into the log is in `trip`; this is how the view gets what the log has.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::Subject;
use rusqlite::Connection;

use super::group::{Home, Inner, say};
use super::intake::{Intake, IntakeError};
use super::origin::{self, ACKNOWLEDGED, LOSS_ACCEPTED, NOTE, REMOVED, REPLACED, WRITTEN};
use super::{Engine, Shared, Store, StoreError};
use crate::log::{LogError, NewEvent, Seq, StoredEvent};
use crate::snapshot::Snapshot;
use crate::sqlite::{self, AcknowledgedHeads, Broken};
use crate::view::{self, Totals, View};

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
    /// What this machine acknowledged before its view was emptied.
    acknowledged: Seq,
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
        Elsewhere { engine, path: None, written: 0, acknowledged: 0, pace: Pace::EachTime }
    }

    /// With the view in a file, `conn`.
    pub(super) fn at(
        engine: Arc<dyn Engine>,
        path: &Path,
        conn: &Connection,
    ) -> Result<Elsewhere, StoreError> {
        let written = origin::get(conn, WRITTEN)?.and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let acknowledged = origin::number(conn, ACKNOWLEDGED)?;
        let (path, pace) = (Some(path.to_owned()), Pace::EachTime);
        Ok(Elsewhere { engine, path, written, acknowledged, pace })
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
        self.lock().seen()
    }

    /// Notes how many messages had been removed from the stream when a new view was begun.
    pub(crate) fn note_removed(&self, removed: u64) -> Result<(), StoreError> {
        let inner = self.lock();
        match origin::get(&inner.conn, REMOVED)? {
            Some(_) => Ok(()),
            None => origin::set(&inner.conn, REMOVED, &removed.to_string()),
        }
    }

    /// The last event that was acknowledged in a stream that was made anew since, until a person accepts that.
    pub fn replaced(&self) -> Result<Option<Seq>, StoreError> {
        let inner = self.lock();
        match &inner.home {
            Home::Elsewhere(Elsewhere { path: Some(_), .. }) => {
                Ok(Some(origin::number(&inner.conn, REPLACED)?).filter(|seq| *seq > 0))
            }
            _ => Ok(None),
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
        let digests = match self.engine() {
            Some(engine) => engine.digests(&batch)?,
            None => Vec::new(),
        };
        let stored = |((seq, NewEvent { event, .. }), digest)| StoredEvent {
            seq,
            after: None,
            digest,
            event,
        };
        let events: Vec<StoredEvent> = (first..).zip(batch).zip(digests).map(stored).collect();
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
        let seen = View::new(&self.conn).totals()?.head.max(elsewhere.acknowledged);
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
        if self.begins_anew(events, head)? {
            return self.read_again();
        }
        match self.take_in_once(events) {
            // A person may have accepted the loss of what is missing, further on in the log.
            Err(IntakeError::Gap { seq, .. }) if self.accepted_after(seq)? => {
                Ok(self.take_in_once(events)?)
            }
            taken => Ok(taken?),
        }
    }

    fn take_in_once(&mut self, events: &[StoredEvent]) -> Result<(), IntakeError> {
        let tolerated = self.tolerated()?;
        say(&self.conn, "BEGIN IMMEDIATE")?;
        let taken = Intake { tolerated, keeps_due: true }.take(&self.conn, events);
        say(&self.conn, if taken.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        taken
    }

    /// Gaps before this place are those of a loss that a person accepted.
    fn tolerated(&self) -> Result<Seq, StoreError> {
        match self.home.path() {
            Some(_) => origin::number(&self.conn, LOSS_ACCEPTED),
            None => Ok(0),
        }
    }

    /// Whether a person accepted, after event `seq`, that events are gone; remembers the place.
    fn accepted_after(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let Home::Elsewhere(elsewhere) = &self.home else { return Ok(false) };
        let accepted = last_acceptance(&*elsewhere.engine)?;
        if elsewhere.path.is_some() && accepted > self.tolerated()? {
            origin::set(&self.conn, LOSS_ACCEPTED, &accepted.to_string())?;
        }
        Ok(elsewhere.path.is_some() && accepted > seq)
    }

    /// Whether the events tell of a loss that a person accepted: a view that has some of what is gone has to be
    /// made again. Remembers the place.
    fn begins_anew(&self, events: &[StoredEvent], head: Seq) -> Result<bool, StoreError> {
        let is_acceptance = |stored: &&StoredEvent| {
            stored.seq > head && matches!(stored.event.body, EventBody::LossAccepted(_))
        };
        let Some(accepted) = events.iter().rev().find(is_acceptance) else { return Ok(false) };
        if self.home.path().is_none() || accepted.seq <= self.tolerated()? {
            return Ok(false);
        }
        origin::set(&self.conn, LOSS_ACCEPTED, &accepted.seq.to_string())?;
        Ok(head > 0)
    }

    /// Empties the view and takes in the whole log.
    fn read_again(&mut self) -> Result<(), StoreError> {
        say(&self.conn, "BEGIN IMMEDIATE")?;
        let emptied = self.replay(&mut |_| ());
        say(&self.conn, if emptied.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        emptied?;
        self.forget_written()?;
        self.read_all(&mut |_| ())
    }

    /// The last event that this machine has seen or written, whatever the log has now.
    pub(super) fn seen(&self) -> Result<Seq, StoreError> {
        let elsewhere = match &self.home {
            Home::Elsewhere(elsewhere) => elsewhere,
            Home::File(file) => {
                return Ok(AcknowledgedHeads::read(&self.conn, &file.path).last().unwrap_or(0));
            }
        };
        let head = View::new(&self.conn).totals()?.head;
        Ok(head.max(elsewhere.written).max(elsewhere.acknowledged))
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
        elsewhere.acknowledged = 0;
        match &elsewhere.path {
            Some(_) => {
                origin::set(&self.conn, WRITTEN, "0")?;
                origin::set(&self.conn, ACKNOWLEDGED, "0")
            }
            None => Ok(()),
        }
    }

    /// The loss that was found is accepted, at place `accepted`: what this machine knows of it is over.
    pub(super) fn forget_loss(&mut self, accepted: Seq) -> Result<(), StoreError> {
        if self.home.path().is_some() {
            origin::set(&self.conn, LOSS_ACCEPTED, &accepted.to_string())?;
            origin::set(&self.conn, REPLACED, "0")?;
            // Whether the server still has it is looked at anew.
            origin::set(&self.conn, NOTE, "")?;
        }
        Ok(())
    }

    /// What this machine knows that the log must have.
    pub(super) fn acknowledged(&self) -> Result<AcknowledgedHead, StoreError> {
        let totals = View::new(&self.conn).totals()?;
        let has_file = self.home.path().is_some();
        let number = |key| if has_file { origin::number(&self.conn, key) } else { Ok(0) };
        Ok(AcknowledgedHead {
            seen: self.seen()?,
            replaced: number(REPLACED)?,
            removed: number(REMOVED)?,
            tolerated: number(LOSS_ACCEPTED)?,
            totals,
        })
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

/// What a machine knows that the log must have.
#[derive(Debug)]
pub(super) struct AcknowledgedHead {
    /// The last event that was seen or written here.
    seen: Seq,
    /// The last event of a stream that was made anew since.
    replaced: Seq,
    /// Messages that were gone when the view was begun.
    removed: u64,
    /// The place of the last loss that a person accepted.
    tolerated: Seq,
    /// The head and the chain value of the view.
    totals: Totals,
}

/// The place of the last loss that a person accepted; 0 if there is none.
fn last_acceptance(engine: &dyn Engine) -> Result<Seq, LogError> {
    let events = engine.history(&Subject::Project, usize::MAX)?;
    let is_acceptance =
        |stored: &&StoredEvent| matches!(stored.event.body, EventBody::LossAccepted(_));
    Ok(events.iter().rev().find(is_acceptance).map_or(0, |stored| stored.seq))
}

/// Whether the log has event `seen`. Copies may be behind for a while.
fn wait_for_seen(engine: &dyn Engine, seen: Seq) -> Result<Result<Seq, Broken>, LogError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = engine.head()?;
        if found >= seen {
            return Ok(Ok(found));
        }
        if engine.check_has(seen).is_err() {
            return Ok(Err(Broken::Short { found, expected: seen }));
        }
        if Instant::now() > end {
            return Err(behind(seen));
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

/// A log that was read, and the view that it leads to.
pub(super) struct CheckedLog {
    /// Events in the log.
    pub(super) events: Seq,
    /// The view that the log leads to up to the head of the stored one.
    pub(super) derived: Connection,
}

/// Reads the whole log, and compares it with what this machine has acknowledged of it.
pub(super) fn verify(
    engine: &dyn Engine,
    acknowledged: &AcknowledgedHead,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<CheckedLog, Broken>, StoreError> {
    if acknowledged.replaced > 0 {
        return Ok(Err(Broken::Replaced { expected: acknowledged.replaced }));
    }
    let head = match wait_for_seen(engine, acknowledged.seen)? {
        Ok(head) => head,
        Err(broken) => return Ok(Err(broken)),
    };
    let mut reading = LogReading::new(acknowledged)?;
    let mut follower = if head > 0 { Some(engine.follow(1)?) } else { None };
    let mut end = Instant::now() + PATIENCE;
    while let Some(follower) = follower.as_mut().filter(|_| reading.read < head) {
        let events = match follower.next(STEP) {
            Ok(events) => events,
            Err(LogError::Damaged { seq, reason }) => {
                return Ok(Err(Broken::Unreadable { seq, reason }));
            }
            Err(error) => return Err(error.into()),
        };
        if events.is_empty() && Instant::now() > end {
            return Err(behind(head).into());
        }
        if let Err(broken) = reading.take(engine, &events)? {
            return Ok(Err(broken));
        }
        if let Some(last) = events.last() {
            progress(last.seq);
            end = Instant::now() + PATIENCE;
        }
    }
    reading.finish(acknowledged)
}

/// The log as far as it was read, and the view that it leads to.
struct LogReading {
    derived: Connection,
    /// The derived view stops here: the stored one has no more.
    until: Seq,
    tolerated: Seq,
    events: Seq,
    read: Seq,
    last: std::collections::HashMap<Subject, Seq>,
}

impl LogReading {
    fn new(acknowledged: &AcknowledgedHead) -> Result<LogReading, LogError> {
        Ok(LogReading {
            derived: sqlite::scratch_view()?,
            until: acknowledged.totals.head,
            tolerated: acknowledged.tolerated,
            events: 0,
            read: 0,
            last: std::collections::HashMap::new(),
        })
    }

    fn take(
        &mut self,
        engine: &dyn Engine,
        events: &[StoredEvent],
    ) -> Result<Result<(), Broken>, StoreError> {
        let known = events.partition_point(|stored| stored.seq <= self.until);
        let (shown, news) = events.split_at(known);
        if !shown.is_empty()
            && let Err(broken) = self.take_shown(engine, shown)?
        {
            return Ok(Err(broken));
        }
        for stored in news {
            let prev = match self.last.insert(stored.event.subject.clone(), stored.seq) {
                Some(prev) => prev,
                None => View::new(&self.derived).version(&stored.event.subject)?,
            };
            if let Some(after) = stored.after.filter(|after| *after != prev)
                && stored.seq >= self.tolerated
            {
                return Ok(Err(Broken::Missing { seq: after }));
            }
        }
        self.events += events.len() as Seq;
        self.read = events.last().map_or(self.read, |last| last.seq);
        Ok(Ok(()))
    }

    /// Takes events into the derived view.
    fn take_shown(
        &mut self,
        engine: &dyn Engine,
        events: &[StoredEvent],
    ) -> Result<Result<(), Broken>, StoreError> {
        for _ in 0..2 {
            let intake = Intake { tolerated: self.tolerated, keeps_due: false };
            match intake.take(&self.derived, events) {
                Ok(()) => return Ok(Ok(())),
                Err(IntakeError::Gap { seq, after, .. }) => {
                    let accepted = last_acceptance(engine)?;
                    if accepted <= seq || accepted <= self.tolerated {
                        return Ok(Err(Broken::Missing { seq: after }));
                    }
                    self.tolerated = accepted;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(LogError::damaged(self.read, "its gaps are not those of the accepted loss").into())
    }

    /// Compares what was read with what was acknowledged.
    fn finish(
        self,
        acknowledged: &AcknowledgedHead,
    ) -> Result<Result<CheckedLog, Broken>, StoreError> {
        let found = View::new(&self.derived).totals()?;
        let stored = &acknowledged.totals;
        if found.head != stored.head {
            return Ok(Err(Broken::Short { found: found.head, expected: stored.head }));
        }
        if found.hash != stored.hash {
            return Ok(Err(Broken::Rewritten { seq: stored.head }));
        }
        // What was gone before this machine came may have been of this project.
        if acknowledged.removed > found.removed_accepted {
            return Ok(Err(Broken::Removed { messages: acknowledged.removed }));
        }
        let events = self.events.saturating_sub(found.quarantined);
        Ok(Ok(CheckedLog { events, derived: self.derived }))
    }
}

/// Compares the view in `stored` with the one that its log leads to.
pub(super) fn compare_view(
    stored: &Connection,
    checked: &CheckedLog,
) -> Result<Option<Broken>, LogError> {
    Ok(Broken::of_view(view::differences(stored, &checked.derived)?))
}
