//! Makes a log read its own writes.
//!
//! Any replica answers a direct read, and it may lack an event that the leader has acknowledged. An
//! answer without an event that this log has appended comes from such a replica.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::error::JetStreamError;
use super::retry::RetryWindow;
use crate::log::Seq;

/// Number of last events of this log whose subjects are remembered.
const REMEMBERED: Seq = 1_000;
/// Time that a replica may take to catch up. An event that is still missing then was removed.
///
/// [`check_has`](crate::log::EventLog::check_has) reports that.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Places of the events that this log has appended.
#[derive(Default)]
pub(super) struct WrittenEvents(Mutex<WrittenPlaces>);

#[derive(Default)]
struct WrittenPlaces {
    last: Seq,
    of_subject: HashMap<String, Seq>,
}

impl WrittenEvents {
    /// Records that the events of `subjects` were stored from place `first` on.
    pub(super) fn note<'a>(&self, first: Seq, subjects: impl Iterator<Item = &'a str>) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (seq, subject) in (first..).zip(subjects) {
            places.last = places.last.max(seq);
            let place = places.of_subject.entry(subject.to_owned()).or_default();
            *place = seq.max(*place);
        }
        if places.of_subject.len() as Seq > 2 * REMEMBERED {
            let oldest = places.last.saturating_sub(REMEMBERED);
            places.of_subject.retain(|_, seq| *seq > oldest);
        }
    }

    /// Returns the last place that this log has written.
    pub(super) fn last(&self) -> Seq {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Returns the last place of a subject that this log has written.
    pub(super) fn last_of(&self, subject: &str) -> Seq {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.of_subject.get(subject).copied().unwrap_or(0)
    }
}

/// Waits for a replica to have the events up to `written`.
pub(super) struct ReplicaCatchUp {
    written: Seq,
    patience: RetryWindow,
}

impl ReplicaCatchUp {
    pub(super) fn to(written: Seq) -> ReplicaCatchUp {
        ReplicaCatchUp { written, patience: RetryWindow::of(CATCH_UP) }
    }

    /// Whether an answer that ends at `found` is current enough. If not, pauses.
    pub(super) async fn is_over(&mut self, subject: &str, found: Seq) -> bool {
        if found >= self.written {
            return true;
        }
        let paused = self.patience.pause(subject, "a replica is behind".to_owned()).await;
        matches!(paused, Err(JetStreamError::NoAnswer { .. }))
    }
}
