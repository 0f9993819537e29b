//! One subject of a log on servers as a log of its own, for processes that need only that.

use std::sync::Arc;

use hookloop_core::id::Subject;

use super::engine::LogEngine;
use super::error::StoreError;
use super::handle::Store;
use crate::chain::ChainHash;
use crate::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use crate::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
};
use crate::snapshot::{SnapshotStore, ViewSnapshot};

impl Store {
    /// Returns a store of one subject of this log, with its view in memory.
    ///
    /// Returns `None` if the log is in a file, which is cheap to read.
    pub fn of_subject(&self, subject: &Subject) -> Result<Option<Store>, StoreError> {
        let Some(engine) = &self.0.engine else { return Ok(None) };
        let (engine, subject) = (engine.clone(), subject.clone());
        Store::over(Arc::new(SubjectLog { engine, subject })).map(Some)
    }
}

struct SubjectLog {
    engine: Arc<dyn LogEngine>,
    subject: Subject,
}

impl EventLog for SubjectLog {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        self.engine.append(batch)
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        self.engine.last(subject)
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        self.engine.history(subject, limit)
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = self.engine.history(&self.subject, usize::MAX)?;
        events.retain(|stored| stored.seq >= from);
        events.truncate(limit);
        Ok(events)
    }

    fn head(&self) -> Result<Seq, LogError> {
        Ok(self.engine.last(&self.subject)?.map_or(0, |last| last.seq))
    }

    fn check_has(&self, seen: Seq) -> Result<(), LogError> {
        self.engine.check_has(seen)
    }

    fn end_before(&self, seen: Seq) -> Result<Option<Seq>, LogError> {
        self.engine.end_before(seen)
    }

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<ChainHash>, LogError> {
        self.engine.digests(batch)
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        self.engine.follow_subject(&self.subject, from)
    }
}

impl HeartbeatStore for SubjectLog {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        self.engine.beat(held, holder, epoch)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        self.engine.take(held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        self.engine.last_beat(held)
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        self.engine.workers()
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        self.engine.forget(held)
    }
}

/// A snapshot covers a whole log, so one subject has none.
impl SnapshotStore for SubjectLog {
    fn latest(&self, _: i64) -> Result<Option<ViewSnapshot>, LogError> {
        Ok(None)
    }

    fn latest_head(&self, _: i64) -> Result<Seq, LogError> {
        Ok(0)
    }

    fn save(&self, _: &ViewSnapshot) -> Result<(), LogError> {
        Ok(())
    }
}
