//! The handle of a store, which threads share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::engine::LogEngine;
use super::log_home::LogHome;
use super::progress::ViewProgress;
use super::state::StoreState;

/// A project's log and view. Clones share them, and concurrent writers share commits.
#[derive(Clone)]
pub struct Store(pub(super) Arc<SharedStore>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// The parts of a store that its clones share.
pub(super) struct SharedStore {
    pub(super) inner: Mutex<StoreState>,
    /// The engine, if the log is on servers.
    pub(super) engine: Option<Arc<dyn LogEngine>>,
    /// A group of units was committed or failed.
    pub(super) settled: Condvar,
    /// Threads that are about to add a unit to the open group.
    pub(super) arriving: AtomicUsize,
    /// The units that were staged for a log on servers were undone on the view.
    pub(super) staging_ended: Condvar,
    /// A batch was stored or refused.
    pub(super) batch_ended: Condvar,
    /// The progress of a view that follows its log, and the threads that wait for more.
    pub(super) progress: ViewProgress,
}

impl Store {
    pub(super) fn new(conn: Connection, home: LogHome) -> Store {
        let engine = match &home {
            LogHome::Remote(remote) => Some(remote.engine.clone()),
            LogHome::File(_) => None,
        };
        Store(Arc::new(SharedStore {
            inner: Mutex::new(StoreState::new(conn, home)),
            engine,
            settled: Condvar::new(),
            arriving: AtomicUsize::new(0),
            staging_ended: Condvar::new(),
            batch_ended: Condvar::new(),
            progress: ViewProgress::default(),
        }))
    }

    /// Locks the view without units that are staged for a log on servers.
    pub(super) fn lock(&self) -> MutexGuard<'_, StoreState> {
        let inner = self.lock_with_staged();
        let inner = self.0.staging_ended.wait_while(inner, |inner| inner.queue.has_open_batch());
        inner.unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the view. A unit that panics is undone before the lock is released.
    pub(super) fn lock_with_staged(&self) -> MutexGuard<'_, StoreState> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether both are the same store, not two stores of the same log.
    pub fn is(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the engine, if the log is on servers.
    pub(super) fn engine(&self) -> Option<&dyn LogEngine> {
        self.0.engine.as_deref()
    }
}
