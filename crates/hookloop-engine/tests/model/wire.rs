//! A connection to a log that other processes write to as well, and that fails at times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookloop_core::id::Subject;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
};
use hookloop_store::memory::MemoryLog;
use hookloop_store::snapshot::{SnapshotStore, ViewSnapshot};
use hookloop_store::store::LogEngine;

/// A loss of the connection, after this number of further appends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) after: usize,
    /// Whether the batch was stored and only the response was lost.
    pub(crate) stored: bool,
}

impl Loss {
    /// Returns the number of batches that are stored.
    pub(crate) fn batches(self) -> usize {
        self.after + usize::from(self.stored)
    }
}

/// Result of a batch that another process overtook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overtaken {
    /// The batch is refused if the other process wrote to one of its subjects.
    #[default]
    OnItsSubjects,
    /// The batch is refused if the other process wrote at all.
    Anywhere,
}

type Rival = Box<dyn FnOnce() + Send>;

/// Timeout for a lagging replica of the log.
const BEHIND: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct Wire {
    log: Arc<dyn LogEngine>,
    /// The last sequence that was acknowledged to any process. Replicas of a log may lag behind
    /// each other, but not in the model, so every process reads at least up to this sequence.
    acknowledged: Arc<AtomicU64>,
    loss: Arc<Mutex<Option<Loss>>>,
    rival: Arc<Mutex<Option<Rival>>>,
    overtaken: Overtaken,
}

impl Default for Wire {
    fn default() -> Wire {
        Wire::new(Overtaken::default())
    }
}

impl Wire {
    pub(crate) fn new(overtaken: Overtaken) -> Wire {
        Wire {
            log: Arc::new(MemoryLog::default()),
            acknowledged: Arc::default(),
            loss: Arc::default(),
            rival: Arc::default(),
            overtaken,
        }
    }

    /// Returns a connection to a log of another kind.
    pub(crate) fn to(log: Arc<dyn LogEngine>, overtaken: Overtaken) -> Wire {
        Wire { log, ..Wire::new(overtaken) }
    }

    fn send(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        let appended = self.log.append(batch)?;
        let last = appended.first() + batch.len() as Seq - 1;
        self.acknowledged.fetch_max(last, Ordering::SeqCst);
        Ok(appended)
    }

    pub(crate) fn plan_loss(&self, loss: Option<Loss>) {
        *self.loss.lock().unwrap() = loss;
    }

    /// Returns whether a planned loss has not happened yet.
    pub(crate) fn is_loss_pending(&self) -> bool {
        self.loss.lock().unwrap().is_some()
    }

    /// Lets `rival` run between the decision about the next batch and its append.
    pub(crate) fn plan_rival(&self, rival: Rival) {
        *self.rival.lock().unwrap() = Some(rival);
    }

    pub(crate) fn forget_rival(&self) {
        *self.rival.lock().unwrap() = None;
    }

    /// Lets the rival run, if there is one; returns whether it wrote.
    fn let_rival_act(&self) -> Result<bool, LogError> {
        let Some(rival) = self.rival.lock().unwrap().take() else { return Ok(false) };
        let before = self.acknowledged.load(Ordering::SeqCst);
        rival();
        Ok(self.acknowledged.load(Ordering::SeqCst) > before)
    }

    fn next_loss(&self) -> Option<Loss> {
        let mut planned = self.loss.lock().unwrap();
        match planned.as_mut()? {
            Loss { after: 0, .. } => planned.take(),
            loss => {
                loss.after -= 1;
                None
            }
        }
    }
}

impl EventLog for Wire {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        if self.let_rival_act()? && self.overtaken == Overtaken::Anywhere {
            let subject = Subject::Project;
            return Err(AppendError::Conflict { subject, expected: 0, actual: 1 });
        }
        let Some(loss) = self.next_loss() else { return self.send(batch) };
        if loss.stored {
            self.send(batch)?;
        }
        Err(LogError::Engine("the connection is lost".into()).into())
    }

    fn digests(
        &self,
        batch: &[NewEvent],
    ) -> Result<Vec<hookloop_store::chain::ChainHash>, LogError> {
        self.log.digests(batch)
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        self.log.last(subject)
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        self.log.history(subject, limit)
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let (to, end) = (self.acknowledged.load(Ordering::SeqCst), Instant::now() + BEHIND);
        loop {
            let events = self.log.read(from, limit)?;
            let last = events.last().map_or(from.saturating_sub(1), |last| last.seq);
            if last >= to || events.len() >= limit || Instant::now() > end {
                return Ok(events);
            }
        }
    }

    fn head(&self) -> Result<Seq, LogError> {
        Ok(self.log.head()?.max(self.acknowledged.load(Ordering::SeqCst)))
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        self.log.follow(from)
    }
}

impl HeartbeatStore for Wire {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        self.log.beat(held, holder, epoch)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        self.log.take(held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        self.log.last_beat(held)
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        self.log.workers()
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        self.log.forget(held)
    }
}

impl SnapshotStore for Wire {
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError> {
        self.log.latest(schema)
    }

    fn latest_head(&self, schema: i64) -> Result<Seq, LogError> {
        self.log.latest_head(schema)
    }

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError> {
        self.log.save(snapshot)
    }
}
