//! A store whose log is on servers: follows it, and records this machine's position in it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::engine::LogEngine;
use super::error::StoreError;
use super::handle::{SharedStore, Store};
use super::log_home::{CatchUpPace, LogHome, RemoteLog};
use super::origin::{self, NOTE, REMOVED, REPLACED};
use super::remote_check::{FOLLOW_PAUSE, PATIENCE, STEP, behind};
use crate::log::{LogError, NewEvent, Seq, StoredEvent};
use crate::snapshot::ViewSnapshot;
use crate::sqlite;
use crate::view::View;

/// Interval at which a view without a follower checks for new events.
const NEWS_POLL: Duration = Duration::from_millis(20);
/// Number of waits without an event after which a follower restarts, if a thread waits for more.
///
/// The follower's own heartbeats are far apart.
const STALLED_STEPS: usize = 3;

impl Store {
    /// Starts a thread that follows the log, so that reads need not request events.
    pub fn go_live(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.catch_up(0)?;
        let head = View::new(&inner.conn).totals()?.head;
        let LogHome::Remote(remote) = &mut inner.home else { return Ok(()) };
        if std::mem::replace(&mut remote.pace, CatchUpPace::Live) != CatchUpPace::Live {
            self.0.progress.reach(head);
            let (engine, store) = (remote.engine.clone(), Arc::downgrade(&self.0));
            let follower = std::thread::Builder::new().name("hookloop-view".to_owned());
            follower
                .spawn(move || follow(&*engine, &store, head))
                .map_err(|error| LogError::Engine(Box::new(error)))?;
        }
        Ok(())
    }

    /// Updates the view to the end of the log now, and later only after a conflict.
    ///
    /// Fails if the log is no longer the one from which the view was made.
    pub fn hold_still(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let end = inner.check_log()?;
        match &mut inner.home {
            LogHome::Remote(remote) if remote.pace == CatchUpPace::EachTime => {
                remote.pace = CatchUpPace::Once;
            }
            _ => {}
        }
        inner.catch_up(end)
    }

    /// Reverts [`Store::hold_still`]. Every use sees the end of the log again.
    pub fn keep_up(&self) {
        match &mut self.lock().home {
            LogHome::Remote(remote) if remote.pace == CatchUpPace::Once => {
                remote.pace = CatchUpPace::EachTime;
            }
            _ => {}
        }
    }

    /// Waits until the view has an event after `known`. Returns its last event.
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
            if is_live {
                self.0.progress.wait(known + 1, end);
            } else {
                std::thread::sleep(NEWS_POLL.min(left));
            }
        }
    }

    /// Returns the last event that this machine has seen or written, which the log may have lost.
    pub fn seen(&self) -> Result<Seq, StoreError> {
        self.lock().seen()
    }

    /// Records how many messages had been removed from the stream when a new view began.
    pub(crate) fn note_removed(&self, removed: u64) -> Result<(), StoreError> {
        let inner = self.lock();
        match origin::get(&inner.conn, REMOVED)? {
            Some(_) => Ok(()),
            None => origin::set(&inner.conn, REMOVED, &removed.to_string()),
        }
    }

    /// Returns the last acknowledged event of a recreated stream, until a person accepts the loss.
    pub fn replaced(&self) -> Result<Option<Seq>, StoreError> {
        let inner = self.lock();
        match &inner.home {
            LogHome::Remote(RemoteLog { path: Some(_), .. }) => {
                Ok(Some(origin::number(&inner.conn, REPLACED)?).filter(|seq| *seq > 0))
            }
            _ => Ok(None),
        }
    }

    /// Reads a value that this machine stores beside the view of a log on servers.
    pub fn recall(&self, key: &str) -> Result<Option<String>, StoreError> {
        origin::get(&self.lock().conn, key)
    }

    pub fn remember(&self, key: &str, value: &str) -> Result<(), StoreError> {
        origin::set(&self.lock().conn, key, value)
    }

    /// Deletes the last answer of `identify`, so that the next process identifies the log again.
    pub(crate) fn forget_note(&self) -> Result<(), StoreError> {
        self.remember(NOTE, "")
    }

    /// Waits until a view that follows its log has event `seq`. Other views fetch it on use.
    pub(super) fn wait_if_live(&self, seq: Seq) -> Result<(), StoreError> {
        let is_live = self.lock().is_live();
        if is_live { self.wait_seen(seq) } else { Ok(()) }
    }

    /// Waits until a view that follows its log has event `seq`.
    fn wait_seen(&self, seq: Seq) -> Result<(), StoreError> {
        if self.0.progress.wait(seq, Instant::now() + PATIENCE) {
            Ok(())
        } else {
            Err(behind(seq).into())
        }
    }

    /// Applies the events that this process has just written to its view.
    pub(super) fn see_own(&self, first: Seq, batch: Vec<NewEvent>) -> Result<(), StoreError> {
        let last = first + batch.len() as Seq - 1;
        let mut inner = self.lock();
        // If no other process wrote in between, the batch is all that the view lacks.
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

    /// Returns the last event in the engine's snapshot, or 0 if there is none.
    pub fn snapshot_head(&self) -> Result<Seq, StoreError> {
        match self.engine() {
            Some(engine) => Ok(engine.latest_head(sqlite::SCHEMA)?),
            None => Ok(0),
        }
    }

    /// Makes later reads include event `seq`.
    pub(super) fn note_seen(&self, seq: Seq) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if !inner.is_live() {
            return inner.note_written(seq);
        }
        drop(inner);
        self.wait_seen(seq)
    }

    /// Saves the view for machines that start later. Returns the last event in it.
    pub fn save_snapshot(&self) -> Result<Seq, StoreError> {
        let Some(engine) = self.engine() else { return Ok(0) };
        let (head, view) = {
            let inner = self.lock();
            (View::new(&inner.conn).totals()?.head, inner.serialized()?)
        };
        engine.save(&ViewSnapshot { head, schema: sqlite::SCHEMA, view })?;
        Ok(head)
    }
}

/// Applies new events of the log to the view of `store`, until all of its clones are dropped.
fn follow(engine: &dyn LogEngine, store: &Weak<SharedStore>, mut head: Seq) {
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
            // If the view cannot apply an event, it stays at its position. Threads that wait for
            // the event get an error.
            if store.lock().take_in(&events).is_err() {
                break;
            }
            head = last.seq;
            store.0.progress.reach(head);
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}
