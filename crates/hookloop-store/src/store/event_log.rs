//! A store as a log and as a store of heartbeats.

use std::path::Path;

use hookloop_core::id::Subject;

use super::error::StoreError;
use super::handle::Store;
use crate::chain::{self, ChainHash};
use crate::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use crate::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
    SubjectFollower,
};
use crate::sqlite::{self, FileFollower};
use crate::view::View;

/// A store is also a log: its own, or the one that it follows.
impl EventLog for Store {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
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

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<ChainHash>, LogError> {
        match self.engine() {
            Some(engine) => engine.digests(batch),
            None => Ok(vec![chain::START; batch.len()]),
        }
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        Ok(self.history(subject, 1)?.pop())
    }

    // A log on servers may take long to answer, so no lock is held meanwhile.
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

    fn follow_subject(
        &self,
        subject: &Subject,
        from: Seq,
    ) -> Result<Box<dyn EventFollower>, LogError> {
        match self.engine() {
            Some(engine) => engine.follow_subject(subject, from),
            None => {
                let (follow, subject) = (self.follow(from)?, subject.clone());
                Ok(Box::new(SubjectFollower { follow, subject }))
            }
        }
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        if let Some(engine) = self.engine() {
            return engine.follow(from);
        }
        // A log without an engine is in a file, which has a path.
        let path = self.lock().home.path().map(Path::to_owned).unwrap_or_default();
        let conn = sqlite::open(&path).map_err(|error| LogError::Engine(Box::new(error)))?;
        Ok(Box::new(FileFollower { conn, next: from.max(1) }))
    }
}

impl HeartbeatStore for Store {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        if let Some(engine) = self.engine() {
            return engine.beat(held, holder, epoch);
        }
        let mut inner = self.lock();
        // A heartbeat has its own transaction. The rollback of a unit must not undo it.
        inner.commit();
        self.0.settled.notify_all();
        sqlite::beat(&inner.conn, held, holder, epoch)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        if let Some(engine) = self.engine() {
            return engine.take(held, holder, epoch, seen);
        }
        let mut inner = self.lock();
        inner.commit();
        self.0.settled.notify_all();
        sqlite::take(&inner.conn, held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        match self.engine() {
            Some(engine) => engine.last_beat(held),
            None => sqlite::last_beat(&self.lock().conn, held),
        }
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        match self.engine() {
            Some(engine) => engine.workers(),
            None => sqlite::workers(&self.lock().conn),
        }
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        if let Some(engine) = self.engine() {
            return engine.forget(held);
        }
        let mut inner = self.lock();
        inner.commit();
        self.0.settled.notify_all();
        sqlite::forget(&inner.conn, held)
    }
}
