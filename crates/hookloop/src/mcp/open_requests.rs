//! Requests that wait for their answer.

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Requests at once. Calls in line are fewer, so this many means that answers are not read, and no more
/// is taken from input until they are.
const OPEN_MAX: usize = 256;
/// Ids of cancelled requests that are remembered: their answers, which nobody gets, may still come, and must not
/// be taken for those of another request.
const CANCELLED_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    ids: Mutex<Ids>,
    has_room: Condvar,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Ids {
    waiting: HashSet<RequestId>,
    cancelled: VecDeque<RequestId>,
}

impl OpenRequests {
    /// Waits for room. False if the id is taken.
    pub(super) fn begin(&self, id: &RequestId) -> bool {
        let mut ids = self.lock();
        while ids.waiting.len() >= OPEN_MAX {
            ids = self.has_room.wait(ids).unwrap_or_else(PoisonError::into_inner);
        }
        !ids.cancelled.contains(id) && ids.waiting.insert(id.clone())
    }

    /// False if nobody waits for it.
    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let mut ids = self.lock();
        if !ids.waiting.remove(id) {
            return false;
        }
        ids.cancelled.push_back(id.clone());
        if ids.cancelled.len() > CANCELLED_MAX {
            ids.cancelled.pop_front();
        }
        self.tell();
        true
    }

    pub(super) fn close(&self, id: Option<&RequestId>) {
        if id.is_some_and(|id| self.lock().waiting.remove(id)) {
            self.tell();
        }
    }

    fn tell(&self) {
        self.has_room.notify_one();
        self.changed.notify_one();
    }

    /// Returns when nothing waits for an answer.
    pub(super) async fn is_empty(&self) {
        while !self.lock().waiting.is_empty() {
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
