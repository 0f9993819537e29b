//! Units of work and reads, and group commit to a file.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::error::StoreError;
use super::handle::Store;
use super::state::StoreState;
use super::transaction::run_statement;
use super::unit::WorkUnit;
use crate::log::LogError;
use crate::sqlite;
use crate::view::View;

/// Largest number of units in one commit.
const MAX_GROUP: usize = 64;
/// Number of units in one commit of bulk work.
const BULK_GROUP: usize = 24;
/// Pages that bulk work leaves in the WAL, and its cache size.
const BULK_WAL_PAGES: u32 = 16_000;
const BULK_CACHE_KIB: u32 = 96 * 1024;
/// SQLite's defaults, which apply after bulk work.
const USUAL_WAL_PAGES: u32 = 1_000;
const USUAL_CACHE_KIB: u32 = 2_000;

impl Store {
    /// Runs a unit of work. When this returns, its events are on disk.
    ///
    /// Concurrent threads share the commit. `work` runs again if other processes wrote first.
    pub fn transact<T, E: From<StoreError>>(
        &self,
        mut work: impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(engine) = &self.0.engine {
            return self.transact_remote(&**engine, &mut work);
        }
        self.0.arriving.fetch_add(1, Ordering::SeqCst);
        let mut inner = self.lock();
        self.0.arriving.fetch_sub(1, Ordering::SeqCst);
        match catch_unwind(AssertUnwindSafe(|| inner.add_unit(&mut work))) {
            Ok(outcome) => {
                self.settle(inner)?;
                outcome
            }
            Err(panic) => {
                inner.give_up();
                drop(inner);
                self.0.settled.notify_all();
                resume_unwind(panic)
            }
        }
    }

    /// Commits the open group, or waits for the commit. The last thread to arrive commits.
    fn settle(&self, mut inner: MutexGuard<'_, StoreState>) -> Result<(), StoreError> {
        let Some(group) = &inner.group else { return Ok(()) };
        if group.units < inner.linger {
            return Ok(());
        }
        let (number, full) = (group.number, group.units >= MAX_GROUP);
        if full || self.0.arriving.load(Ordering::SeqCst) == 0 {
            inner.commit();
            self.0.settled.notify_all();
        }
        let waiting = |inner: &mut StoreState| inner.settled < number;
        let inner =
            self.0.settled.wait_while(inner, waiting).unwrap_or_else(PoisonError::into_inner);
        match &inner.failure {
            Some((failed, reason)) if *failed == number => Err(StoreError::Commit(reason.clone())),
            _ => Ok(()),
        }
    }

    /// Reads the view in one snapshot of the committed state.
    pub fn read<T, E: From<StoreError>>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = self.lock();
        inner.settle_for_reader()?;
        self.0.settled.notify_all();
        run_statement(&inner.conn, "BEGIN")?;
        let answer = question(View::new(&inner.conn));
        run_statement(&inner.conn, "ROLLBACK")?;
        answer
    }

    /// Runs a single query on the view, which is its own snapshot.
    pub fn glance<T>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, LogError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        inner.settle_for_reader()?;
        self.0.settled.notify_all();
        Ok(question(View::new(&inner.conn))?)
    }

    /// Ends the use of a store shortly before the process ends.
    ///
    /// Moves a large WAL into the file, and leaves the rest to the system, which is faster.
    pub fn leave(self) {
        let worth_it = self.lock().home.path().is_some_and(sqlite::is_wal_large);
        if worth_it { drop(self) } else { std::mem::forget(self) }
    }

    /// Starts bulk work: commits are rare, and units are durable only after [`Store::finish_bulk`].
    pub fn begin_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = BULK_GROUP;
        inner.tune(BULK_WAL_PAGES, BULK_CACHE_KIB)
    }

    /// Makes everything since [`Store::begin_bulk`] durable.
    pub fn finish_bulk(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.linger = 0;
        self.settle(inner)?;
        let inner = self.lock();
        inner.tune(USUAL_WAL_PAGES, USUAL_CACHE_KIB)?;
        // A WAL that is moved and reused needs no new blocks for each commit.
        Ok(inner.conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?)
    }
}
