//! A unit of work: reads of the view, and the events of one batch.

use hookloop_core::event::Event;
use rusqlite::Connection;

use super::error::StoreError;
use crate::log::{AppendError, AppendOutcome, LogError, MAX_BATCH, NewEvent, Seq, StoredEvent};
use crate::sqlite;
use crate::view::{View, ViewFold, ViewTotals};

pub(super) struct StagedEvent {
    pub(super) seq: Seq,
    pub(super) prev: Seq,
    pub(super) event: Event,
}

/// A unit of work in progress: reads of the view, and the events of one batch.
pub struct WorkUnit<'a> {
    conn: &'a Connection,
    is_alone: bool,
    pub(super) fold: ViewFold<'a>,
    pub(super) staged: Vec<StagedEvent>,
}

impl std::fmt::Debug for WorkUnit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkUnit of {} events", self.staged.len())
    }
}

impl<'a> WorkUnit<'a> {
    pub(super) fn new(conn: &'a Connection, is_alone: bool, totals: ViewTotals) -> WorkUnit<'a> {
        WorkUnit { conn, is_alone, fold: ViewFold::new(conn, totals), staged: Vec::new() }
    }

    /// Returns the view, with the events that this unit has staged.
    pub fn view(&self) -> Result<View<'a>, LogError> {
        self.fold.view()
    }

    pub fn totals(&self) -> &ViewTotals {
        &self.fold.totals
    }

    /// Whether no other process can write between the reads of this unit and its commit.
    ///
    /// With a log on servers, only the subjects of the batch are guarded.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Returns the number of further events that the batch can take.
    pub fn room(&self) -> usize {
        MAX_BATCH - self.staged.len()
    }

    /// Adds an event to the batch and to the view. Returns its index in the batch.
    pub fn stage(&mut self, event: Event) -> Result<usize, StoreError> {
        if self.room() == 0 {
            return Err(AppendError::BatchSize(MAX_BATCH + 1).into());
        }
        let seq = self.fold.totals.head + 1;
        let prev = self.fold.apply(seq, &event)?;
        self.staged.push(StagedEvent { seq, prev, event });
        Ok(self.staged.len() - 1)
    }

    /// Stages a batch of the caller, if its subjects have the versions it expects.
    pub(super) fn append(&mut self, batch: &[NewEvent]) -> Result<AppendOutcome, StoreError> {
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
                return Ok(AppendOutcome::Before(seq));
            }
            let (subject, expected) = (subject.clone(), new.expected);
            return Err(AppendError::Conflict { subject, expected, actual }.into());
        }
        for new in batch {
            self.stage(new.event.clone())?;
        }
        Ok(AppendOutcome::At(at))
    }

    /// Returns the place of `new` if it was stored before, right after the version that it expects.
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

    /// Returns the staged event at `index` of the batch.
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

    /// Returns an event in the log whose reactions are due.
    pub fn due_event(&self, seq: Seq) -> Result<Option<StoredEvent>, StoreError> {
        // A view over a log on servers has copies of the due events.
        Ok(sqlite::read_at(self.conn, seq)?.map(|(_, event)| event))
    }

    /// Returns the batch. Each subject's first event expects the version that the view had.
    pub(super) fn batch(self) -> Vec<NewEvent> {
        let expected =
            |staged: StagedEvent| NewEvent { expected: staged.prev, event: staged.event };
        self.staged.into_iter().map(expected).collect()
    }
}
