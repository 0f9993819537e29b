//! One subject of a log that is elsewhere, as a log of its own: for processes that need no more of it.

use std::sync::Arc;

use hookloop_core::id::Subject;

use super::{Engine, Store, StoreError};
use crate::chain::Hash;
use crate::log::{AppendError, Appended, EventLog, Follow, LogError, NewEvent, Seq, StoredEvent};
use crate::pulse::{Beat, Held, Pulse};
use crate::snapshot::{Snapshot, Snapshots};

impl Store {
    /// A store of one subject of this log alone, with its view in memory; none where the log is in a file here,
    /// which costs nothing to read.
    pub fn of_subject(&self, subject: &Subject) -> Result<Option<Store>, StoreError> {
        let Some(engine) = &self.0.engine else { return Ok(None) };
        let (engine, subject) = (engine.clone(), subject.clone());
        Store::over(Arc::new(OneSubject { engine, subject })).map(Some)
    }
}

struct OneSubject {
    engine: Arc<dyn Engine>,
    subject: Subject,
}

impl EventLog for OneSubject {
    fn append(&self, batch: &[NewEvent]) -> Result<Appended, AppendError> {
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

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<Hash>, LogError> {
        self.engine.digests(batch)
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        self.engine.follow_subject(&self.subject, from)
    }
}

impl Pulse for OneSubject {
    fn beat(&self, held: &Held, holder: &str, epoch: u64) -> Result<(), LogError> {
        self.engine.beat(held, holder, epoch)
    }

    fn take(
        &self,
        held: &Held,
        holder: &str,
        epoch: u64,
        seen: Option<&Beat>,
    ) -> Result<bool, LogError> {
        self.engine.take(held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &Held) -> Result<Option<Beat>, LogError> {
        self.engine.last_beat(held)
    }

    fn workers(&self) -> Result<Vec<Beat>, LogError> {
        self.engine.workers()
    }

    fn forget(&self, held: &Held) -> Result<(), LogError> {
        self.engine.forget(held)
    }
}

/// Snapshots are of whole logs.
impl Snapshots for OneSubject {
    fn latest(&self, _: i64) -> Result<Option<Snapshot>, LogError> {
        Ok(None)
    }

    fn latest_head(&self, _: i64) -> Result<Seq, LogError> {
        Ok(0)
    }

    fn save(&self, _: &Snapshot) -> Result<(), LogError> {
        Ok(())
    }
}
