//! Units that become one transaction of the file that holds log and view.

use std::path::{Path, PathBuf};

use hookloop_core::event::Event;
use rusqlite::Connection;

use super::elsewhere::Elsewhere;
use super::trip::Traffic;
use super::unit::{Staged, Unit};
use super::{StoreError, UNREADABLE_VIEW};
use crate::log::Seq;
use crate::recorded_head::{HeadRecorder, RecordedHead};
use crate::sqlite::LogLoss;
use crate::view::{self, Totals, View};
use crate::{crash, sqlite};

pub(super) struct Inner {
    pub(super) conn: Connection,
    pub(super) home: Home,
    pub(super) group: Option<Group>,
    /// Units that a commit waits for, in bulk work.
    pub(super) linger: usize,
    /// The number of the last group that was settled, and what went wrong with it.
    pub(super) settled: u64,
    pub(super) failure: Option<(u64, String)>,
    /// Units on their way to a log that is elsewhere.
    pub(super) traffic: Traffic,
}

pub(super) enum Home {
    /// The log is a table beside the view.
    File(LogFile),
    Elsewhere(Elsewhere),
}

impl Home {
    /// The file that the view is in.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Home::File(file) => Some(&file.path),
            Home::Elsewhere(elsewhere) => elsewhere.path.as_deref(),
        }
    }
}

/// The file that holds log and view.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) head: HeadRecorder,
    /// The loss that the file was opened in spite of.
    pub(super) loss: Option<LogLoss>,
}

impl LogFile {
    pub(super) fn new(path: &Path) -> LogFile {
        LogFile { path: path.to_owned(), head: HeadRecorder::new(path), loss: None }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(path) = self.home.path() {
            sqlite::before_close(&self.conn, path);
        }
    }
}

/// Units that will be one transaction.
pub(super) struct Group {
    pub(super) number: u64,
    pub(super) units: usize,
    pub(super) totals: Totals,
    /// Something was staged: there is a reason to commit.
    pub(super) changed: bool,
}

impl Inner {
    pub(super) fn new(conn: Connection, home: Home) -> Inner {
        Inner {
            conn,
            home,
            group: None,
            linger: 0,
            settled: 0,
            failure: None,
            traffic: Traffic::default(),
        }
    }

    /// Runs `work` inside the open group, which it opens if there is none.
    pub(super) fn add_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let alone = self.group.is_none();
        if alone {
            self.begin()?;
        } else {
            say(&self.conn, "SAVEPOINT unit")?;
        }
        let staged = self.stage_unit(work);
        match staged {
            Ok(done) => {
                if !alone {
                    say(&self.conn, "RELEASE unit")?;
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
        say(&self.conn, "BEGIN IMMEDIATE")?;
        match View::new(&self.conn).totals() {
            Ok(totals) => {
                let number = self.settled + 1;
                self.group = Some(Group { number, units: 0, totals, changed: false });
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(error.into())
            }
        }
    }

    /// Ends the open transaction without a trace. SQLite may have done so itself, on a full disk for
    /// example; what is reported is the error that led here.
    fn roll_back(&mut self) -> Option<Group> {
        if !self.conn.is_autocommit() {
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        self.group.take()
    }

    /// Runs `work` and writes what it staged behind the log's last event.
    fn stage_unit<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(group) = &mut self.group else { return Err(StoreError::Contended.into()) };
        let mut unit = Unit::new(&self.conn, &self.home, group.totals.clone());
        let done = work(&mut unit)?;
        let Unit { staged, fold, .. } = unit;
        fold.view().map_err(StoreError::from)?;
        let mut hash = fold.totals.hash;
        for Staged { seq, prev, event } in &staged {
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

    /// Sets the pages that may stay in the WAL, and the cache.
    pub(super) fn tune(&self, wal_pages: u32, cache_kib: u32) -> Result<(), StoreError> {
        let pages = format!("PRAGMA wal_autocheckpoint = {wal_pages}");
        let cache = format!("PRAGMA cache_size = -{cache_kib}");
        Ok(self.conn.execute_batch(&format!("{pages}; {cache}"))?)
    }

    /// Undoes a group in which a unit panicked half-way.
    pub(super) fn give_up(&mut self) {
        if let Some(group) = self.roll_back() {
            self.failure = Some((group.number, "another write of the same commit panicked".into()));
            self.settled = group.number;
        }
    }

    /// Ends the open group: all of its units are on disk, or none.
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
    pub(super) fn record_head(&mut self, totals: &Totals) {
        if let Home::File(file) = &mut self.home {
            file.head.record(RecordedHead { seq: totals.head, hash: totals.hash });
        }
    }

    fn write(&self, group: &Group) -> Result<(), StoreError> {
        if !group.changed {
            return say(&self.conn, "ROLLBACK");
        }
        View::new(&self.conn).write_totals(&group.totals)?;
        crash::point("commit");
        say(&self.conn, "COMMIT")?;
        crash::point("committed");
        Ok(())
    }

    pub(super) fn settle_for_reader(&mut self) -> Result<(), StoreError> {
        self.commit();
        match &self.home {
            Home::Elsewhere(_) => self.catch_up(0),
            Home::File(_) => Ok(()),
        }
    }

    /// Both hashes are taken inside the transaction: what other processes write around it is no
    /// fault of the view.
    pub(super) fn replay_between_hashes(
        &self,
        record: Option<Event>,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(String, String), StoreError> {
        // Tables that can't be read are a reason to make them again.
        let before =
            View::new(&self.conn).state_hash().unwrap_or_else(|_| UNREADABLE_VIEW.to_owned());
        self.replay(progress)?;
        if let (Home::File(_), Some(event)) = (&self.home, record) {
            sqlite::append_one(&self.conn, &event)?;
        }
        Ok((before, View::new(&self.conn).state_hash()?))
    }

    pub(super) fn replay(&self, progress: &mut dyn FnMut(Seq)) -> Result<(), StoreError> {
        if let Home::File(_) = &self.home {
            return Ok(sqlite::remake_view(&self.conn, progress)?);
        }
        self.conn.execute_batch(view::DROP)?;
        self.conn.execute_batch(view::TABLES)?;
        // Copies of what was due, which come again with the rest of the log.
        Ok(self.conn.execute_batch("DELETE FROM event")?)
    }
}

/// Begins, ends or undoes a transaction.
pub(super) fn say(conn: &Connection, word: &'static str) -> Result<(), StoreError> {
    conn.prepare_cached(word)?.execute([])?;
    Ok(())
}
