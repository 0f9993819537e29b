//! The state that a store guards, and group commit to a file.

use rusqlite::Connection;

use super::append_queue::AppendQueue;
use super::error::StoreError;
use super::log_home::LogHome;
use super::transaction::run_statement;
use super::unit::{StagedEvent, WorkUnit};
use crate::log::Seq;
use crate::recorded_head::RecordedHead;
use crate::view::{self, View, ViewTotals};
use crate::{crash, sqlite};

pub(super) struct StoreState {
    pub(super) conn: Connection,
    pub(super) home: LogHome,
    pub(super) group: Option<CommitGroup>,
    /// Number of units that a commit waits for, in bulk work.
    pub(super) linger: usize,
    /// The number of the last group that was settled, and its error.
    pub(super) settled: u64,
    pub(super) failure: Option<(u64, String)>,
    /// Units that are sent to a log on servers.
    pub(super) queue: AppendQueue,
}

impl Drop for StoreState {
    fn drop(&mut self) {
        if let Some(path) = self.home.path() {
            sqlite::before_close(&self.conn, path);
        }
    }
}

/// Units that become one transaction.
pub(super) struct CommitGroup {
    pub(super) number: u64,
    pub(super) units: usize,
    pub(super) totals: ViewTotals,
    /// Whether a unit has staged an event, so that a commit is needed.
    pub(super) changed: bool,
}

impl StoreState {
    pub(super) fn new(conn: Connection, home: LogHome) -> StoreState {
        StoreState {
            conn,
            home,
            group: None,
            linger: 0,
            settled: 0,
            failure: None,
            queue: AppendQueue::default(),
        }
    }

    /// Runs `work` inside the open group. Opens a group if there is none.
    pub(super) fn add_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let alone = self.group.is_none();
        if alone {
            self.begin()?;
        } else {
            run_statement(&self.conn, "SAVEPOINT unit")?;
        }
        let staged = self.stage_unit(work);
        match staged {
            Ok(done) => {
                if !alone {
                    run_statement(&self.conn, "RELEASE unit")?;
                }
                Ok(done)
            }
            Err(error) => {
                if alone {
                    self.roll_back();
                } else {
                    let undo = "ROLLBACK TO unit; RELEASE unit";
                    self.conn.execute_batch(undo).map_err(StoreError::from)?;
                }
                Err(error)
            }
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        run_statement(&self.conn, "BEGIN IMMEDIATE")?;
        match View::new(&self.conn).totals() {
            Ok(totals) => {
                let number = self.settled + 1;
                self.group = Some(CommitGroup { number, units: 0, totals, changed: false });
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(error.into())
            }
        }
    }

    /// Rolls back the open transaction.
    ///
    /// SQLite may have done so itself, for example on a full disk. The caller reports the first
    /// error.
    fn roll_back(&mut self) -> Option<CommitGroup> {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction is not rolled back");
        }
        self.group.take()
    }

    /// Runs `work` and stores its staged events after the log's last event.
    fn stage_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(group) = &mut self.group else { return Err(StoreError::Contended.into()) };
        let mut unit = WorkUnit::new(&self.conn, true, group.totals.clone());
        let done = work(&mut unit)?;
        let WorkUnit { staged, fold, .. } = unit;
        fold.view().map_err(StoreError::from)?;
        let mut hash = fold.totals.hash;
        for StagedEvent { seq, prev, event } in &staged {
            hash =
                sqlite::insert(&self.conn, *seq, *prev, event, &hash).map_err(StoreError::from)?;
            fold.owe(*seq, event).map_err(StoreError::from)?;
        }
        group.units += 1;
        group.changed |= !staged.is_empty();
        group.totals = fold.totals;
        group.totals.hash = hash;
        Ok(done)
    }

    /// Sets the number of pages that may stay in the WAL, and the cache size.
    pub(super) fn tune(&self, wal_pages: u32, cache_kib: u32) -> Result<(), StoreError> {
        let pages = format!("PRAGMA wal_autocheckpoint = {wal_pages}");
        let cache = format!("PRAGMA cache_size = -{cache_kib}");
        Ok(self.conn.execute_batch(&format!("{pages}; {cache}"))?)
    }

    /// Rolls back a group in which a unit panicked.
    pub(super) fn give_up(&mut self) {
        if let Some(group) = self.roll_back() {
            self.failure = Some((group.number, "another write of the same commit panicked".into()));
            self.settled = group.number;
        }
    }

    /// Commits the open group. Either all of its units are on disk, or none.
    pub(super) fn commit(&mut self) {
        let Some(group) = self.group.take() else { return };
        match self.write(&group) {
            Ok(()) if group.changed => self.record_head(&group.totals),
            Ok(()) => {}
            Err(error) => {
                self.roll_back();
                self.failure = Some((group.number, error.to_string()));
            }
        }
        self.settled = group.number;
    }

    /// Records the last event, which is on disk, beside the log's file.
    pub(super) fn record_head(&mut self, totals: &ViewTotals) {
        if let LogHome::File(file) = &mut self.home {
            file.head.record(RecordedHead { seq: totals.head, hash: totals.hash });
        }
    }

    fn write(&self, group: &CommitGroup) -> Result<(), StoreError> {
        if !group.changed {
            return run_statement(&self.conn, "ROLLBACK");
        }
        View::new(&self.conn).write_totals(&group.totals)?;
        crash::point("commit");
        run_statement(&self.conn, "COMMIT")?;
        crash::point("committed");
        Ok(())
    }

    pub(super) fn replay(&self, progress: &mut dyn FnMut(Seq)) -> Result<(), StoreError> {
        if let LogHome::File(_) = &self.home {
            return Ok(sqlite::remake_view(&self.conn, progress)?);
        }
        self.conn.execute_batch(view::DROP)?;
        self.conn.execute_batch(view::TABLES)?;
        // Deletes copies of due events, which are read again with the rest of the log.
        Ok(self.conn.execute_batch("DELETE FROM event")?)
    }
}
