//! Batches that are sent to a log on servers.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::error::StoreError;
use crate::log::{NewEvent, Seq};
use crate::view::ViewTotals;

/// Largest number of units in one batch.
pub(super) const GROUP_SIZE_MAX: usize = 32;
/// Approximate limit of units in flight. Further units are staged while others are sent.
const IN_FLIGHT_UNITS_MAX: usize = 2 * GROUP_SIZE_MAX;

/// The batches of this process: one that is open for units, and those that were sent.
#[derive(Debug)]
pub(super) struct AppendQueue {
    pub(super) open: Option<OpenBatch>,
    /// Batches that were sent and have no result yet.
    pub(super) in_flight: usize,
    /// The present number of units for each batch.
    pub(super) group_size: usize,
}

impl Default for AppendQueue {
    fn default() -> AppendQueue {
        AppendQueue { open: None, in_flight: 0, group_size: GROUP_SIZE_MAX }
    }
}

impl AppendQueue {
    pub(super) fn has_open_batch(&self) -> bool {
        self.open.is_some()
    }

    /// Whether a unit can be staged before one of the batches in flight ends.
    pub(super) fn has_capacity(&self) -> bool {
        self.open.is_some() || self.in_flight < IN_FLIGHT_UNITS_MAX / self.group_size
    }

    /// Halves the group size after a conflict, and raises it by one after each success.
    pub(super) fn adapt(&mut self, units: usize, end: &BatchEnd) {
        match end {
            BatchEnd::Overtaken(_) if units > 1 => self.group_size = units.div_ceil(2),
            BatchEnd::Stored => self.group_size = GROUP_SIZE_MAX.min(self.group_size + 1),
            _ => {}
        }
    }
}

/// Units that are staged on the view, each on top of the one before.
#[derive(Debug)]
pub(super) struct OpenBatch {
    pub(super) pending: Arc<PendingBatch>,
    pub(super) totals: ViewTotals,
    pub(super) batch: Vec<NewEvent>,
    pub(super) units: usize,
    pub(super) is_full: bool,
}

impl OpenBatch {
    pub(super) fn new(totals: ViewTotals) -> OpenBatch {
        OpenBatch { pending: Arc::default(), totals, batch: Vec::new(), units: 0, is_full: false }
    }
}

/// A batch whose result the threads of its units wait for.
#[derive(Debug, Default)]
pub(super) struct PendingBatch {
    end: Mutex<Option<BatchEnd>>,
    ended: Condvar,
}

/// The result of sending a batch.
#[derive(Clone, Debug)]
pub(super) enum BatchEnd {
    /// Its events are in the log and in the view.
    Stored,
    /// None of its events is stored. Other processes wrote first, at this place at the latest.
    Overtaken(Seq),
    Failed(Arc<StoreError>),
}

impl BatchEnd {
    pub(super) fn failed(error: impl Into<StoreError>) -> BatchEnd {
        BatchEnd::Failed(Arc::new(error.into()))
    }
}

impl PendingBatch {
    pub(super) fn finish(&self, end: BatchEnd) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.ended.notify_all();
    }

    pub(super) fn wait(&self) -> BatchEnd {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.ended.wait_while(end, |end| end.is_none());
        end.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(BatchEnd::Overtaken(0))
    }
}
