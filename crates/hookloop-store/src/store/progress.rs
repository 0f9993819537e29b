//! The progress of a view that follows its log, and the threads that wait for more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Instant;

use crate::log::Seq;

/// Wakes each waiting thread once, when its event is in the view.
///
/// Many threads wait for their own writes concurrently and need not wake each other.
#[derive(Debug, Default)]
pub(super) struct ViewProgress {
    seen: AtomicU64,
    waiting: Mutex<Vec<(Seq, Thread)>>,
}

impl ViewProgress {
    fn waiting(&self) -> MutexGuard<'_, Vec<(Seq, Thread)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that everything up to `seq` is in the view.
    pub(super) fn reach(&self, seq: Seq) {
        self.seen.fetch_max(seq, Ordering::SeqCst);
        self.waiting().retain(|(wanted, thread)| {
            let waits_on = *wanted > seq;
            if !waits_on {
                thread.unpark();
            }
            waits_on
        });
    }

    /// Whether a thread waits for further events.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// Waits until everything up to `seq` is in the view. Returns whether it is by `end`.
    pub(super) fn wait(&self, seq: Seq, end: Instant) -> bool {
        let seen = || self.seen.load(Ordering::SeqCst) >= seq;
        if seen() {
            return true;
        }
        let me = std::thread::current();
        self.waiting().push((seq, me.clone()));
        while !seen() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.waiting().retain(|(_, thread)| thread.id() != me.id());
                return seen();
            }
            std::thread::park_timeout(left);
        }
        true
    }
}
