//! A log in memory, shared by its clones.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookloop_core::id::Subject;

use crate::chain::{self, ChainHash};
use crate::crash;
use crate::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use crate::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, MAX_BATCH, NewEvent, Seq,
    StoredEvent,
};
use crate::snapshot::{SnapshotStore, ViewSnapshot};

/// Largest number of events that a follower returns at once.
const FOLLOW_BATCH: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub struct MemoryLog(Arc<SharedMemory>);

#[derive(Debug, Default)]
struct SharedMemory {
    log: Mutex<MemoryState>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct MemoryState {
    beats: HashMap<HeldResource, HeartbeatRecord>,
    snapshot: Option<ViewSnapshot>,
    events: Vec<StoredEvent>,
    /// The places of each subject's events.
    subjects: HashMap<Subject, Vec<Seq>>,
}

impl MemoryState {
    fn version(&self, subject: &Subject) -> Seq {
        self.subjects.get(subject).and_then(|seqs| seqs.last()).copied().unwrap_or(0)
    }

    fn from(&self, from: Seq, limit: usize) -> Vec<StoredEvent> {
        let start = (from.max(1) - 1) as usize;
        self.events.iter().skip(start).take(limit).cloned().collect()
    }

    /// Returns the place of `new` if it was stored before, right after the version that it expects.
    fn stored_before(&self, new: &NewEvent) -> Option<Seq> {
        let seqs = self.subjects.get(&new.event.subject)?;
        let next = seqs.iter().copied().find(|seq| *seq > new.expected)?;
        (self.events[next as usize - 1].event.id == new.event.id).then_some(next)
    }
}

impl MemoryLog {
    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        // Every change to the log is complete before its guard drops.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventLog for MemoryLog {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        let mut log = self.lock();
        let Some(first) = batch.first().filter(|_| batch.len() <= MAX_BATCH) else {
            return Err(AppendError::BatchSize(batch.len()));
        };
        if let Some(seq) = log.stored_before(first) {
            return Ok(AppendOutcome::Before(seq));
        }
        for (i, new) in batch.iter().enumerate() {
            let subject = &new.event.subject;
            let actual = log.version(subject);
            let is_first = batch[..i].iter().all(|earlier| earlier.event.subject != *subject);
            if is_first && actual != new.expected {
                let (subject, expected) = (subject.clone(), new.expected);
                return Err(AppendError::Conflict { subject, expected, actual });
            }
        }
        crash::point("append");
        let at = log.events.len() as Seq + 1;
        for (seq, new) in (at..).zip(batch) {
            log.subjects.entry(new.event.subject.clone()).or_default().push(seq);
            log.events.push(StoredEvent {
                seq,
                after: None,
                digest: chain::START,
                event: new.event.clone(),
            });
        }
        self.0.grew.notify_all();
        Ok(AppendOutcome::At(at))
    }

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<ChainHash>, LogError> {
        Ok(vec![chain::START; batch.len()])
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        let log = self.lock();
        Ok(match log.version(subject) {
            0 => None,
            seq => log.events.get(seq as usize - 1).cloned(),
        })
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let log = self.lock();
        let seqs = log.subjects.get(subject).map_or(&[][..], Vec::as_slice);
        let last = &seqs[seqs.len().saturating_sub(limit)..];
        Ok(last.iter().map(|seq| log.events[*seq as usize - 1].clone()).collect())
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        Ok(self.lock().from(from, limit))
    }

    fn head(&self) -> Result<Seq, LogError> {
        Ok(self.lock().events.len() as Seq)
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        Ok(Box::new(MemoryFollower { log: self.clone(), next: from.max(1) }))
    }
}

impl HeartbeatStore for MemoryLog {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        let mut log = self.lock();
        let count = log.beats.get(held).map_or(1, |beat| beat.count + 1);
        log.beats.insert(held.clone(), HeartbeatRecord { holder: holder.to_owned(), epoch, count });
        Ok(())
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        let mut log = self.lock();
        if log.beats.get(held) != seen {
            return Ok(false);
        }
        let count = seen.map_or(1, |beat| beat.count + 1);
        log.beats.insert(held.clone(), HeartbeatRecord { holder: holder.to_owned(), epoch, count });
        Ok(true)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        Ok(self.lock().beats.get(held).cloned())
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        let log = self.lock();
        let of_workers =
            log.beats.iter().filter(|(held, _)| matches!(held, HeldResource::Worker(_)));
        Ok(of_workers.map(|(_, beat)| beat.clone()).collect())
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        self.lock().beats.remove(held);
        Ok(())
    }
}

impl SnapshotStore for MemoryLog {
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError> {
        Ok(self.lock().snapshot.clone().filter(|snapshot| snapshot.schema == schema))
    }

    fn latest_head(&self, schema: i64) -> Result<Seq, LogError> {
        Ok(self.latest(schema)?.map_or(0, |snapshot| snapshot.head))
    }

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError> {
        self.lock().snapshot = Some(snapshot.clone());
        Ok(())
    }
}

struct MemoryFollower {
    log: MemoryLog,
    next: Seq,
}

impl EventFollower for MemoryFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let none_yet = |log: &mut MemoryState| (log.events.len() as Seq) < self.next;
        let (log, _) = self
            .log
            .0
            .grew
            .wait_timeout_while(self.log.lock(), timeout, none_yet)
            .unwrap_or_else(PoisonError::into_inner);
        let events = log.from(self.next, FOLLOW_BATCH);
        self.next += events.len() as Seq;
        Ok(events)
    }
}
