//! The view of one connection, and the row of totals that every write updates.

use hookloop_core::event::{CursorMoved, CursorPart};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use rusqlite::Connection;

use super::tables::{RowResult, to_json};
use crate::chain::ChainHash;
use crate::log::{LogError, Seq};

/// The row of totals, in memory while a unit of work changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewTotals {
    /// The last event in the view.
    pub head: Seq,
    pub(crate) hash: ChainHash,
    pub cursor: CursorMoved,
    /// Number of tasks in each state, regardless of start times, and of deleted ones.
    pub(super) counts: [i64; 7],
    /// Numbers of completed and failed workflow runs.
    pub runs: RunTotals,
    /// Number of foreign messages of a shared log.
    pub quarantined: u64,
    /// Number of messages removed from a shared stream whose loss a person accepted.
    pub removed_accepted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    pub completed: u64,
    pub failed: u64,
}

impl ViewTotals {
    pub fn count(&self, state: TaskState) -> u64 {
        self.counts[state as usize].max(0) as u64
    }

    /// Returns the number of tasks that are not deleted.
    pub fn tasks(&self) -> u64 {
        TaskState::ALL.into_iter().map(|state| self.count(state)).sum()
    }

    pub(super) fn add(&mut self, state: Option<TaskState>, change: i64) {
        self.counts[state.map_or(6, |state| state as usize)] += change;
    }

    pub(super) fn moved(&mut self, from: Option<TaskState>, to: Option<TaskState>) {
        self.add(from, -1);
        self.add(to, 1);
    }
}

/// A view of the tables of a connection.
#[derive(Clone, Copy, Debug)]
pub struct View<'c> {
    pub(super) conn: &'c Connection,
    /// The time of the query. Without one, start times and waiting times are ignored.
    pub(super) now: Option<Timestamp>,
}

impl<'c> View<'c> {
    pub(crate) fn new(conn: &'c Connection) -> View<'c> {
        View { conn, now: None }
    }

    /// Returns the view at the time `now`. The store has no clock.
    pub fn at(self, now: Timestamp) -> View<'c> {
        View { now: Some(now), ..self }
    }

    pub fn totals(&self) -> RowResult<ViewTotals> {
        let mut select = self.conn.prepare_cached("SELECT * FROM totals")?;
        let row = select.query_row([], |row| {
            let mut counts = [0; 7];
            for (i, count) in counts.iter_mut().enumerate() {
                *count = row.get(4 + i)?;
            }
            let part: Option<String> = row.get(3)?;
            let over = |column| row.get::<_, i64>(column).map(|n| n as u64);
            let runs = RunTotals { completed: over(11)?, failed: over(12)? };
            let (head, hash, cursor) = (row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            Ok((head, hash, cursor, part, counts, runs, [over(13)?, over(14)?]))
        })?;
        let (head, hash, cursor, part, counts, runs, [quarantined, removed_accepted]) = row;
        let part: Option<CursorPart> = part
            .map(|json| serde_json::from_str(&json))
            .transpose()
            .map_err(|error| LogError::damaged(cursor as Seq, error))?;
        let cursor = CursorMoved { seq: cursor as Seq, part };
        let head = head as Seq;
        Ok(ViewTotals { head, hash, cursor, counts, runs, quarantined, removed_accepted })
    }

    pub(crate) fn write_totals(&self, totals: &ViewTotals) -> RowResult<()> {
        let part = totals.cursor.part.as_ref().map(to_json);
        let c = &totals.counts;
        self.conn
            .prepare_cached(
                "UPDATE totals SET head = ?1, hash = ?2, cursor = ?3, cursor_part = ?4, created = ?5,
                 ready = ?6, active = ?7, submitted = ?8, completed = ?9, blocked = ?10, deleted = ?11,
                 runs_completed = ?12, runs_failed = ?13, quarantined = ?14, removed_accepted = ?15",
            )?
            .execute(rusqlite::params![
                totals.head as i64,
                totals.hash,
                totals.cursor.seq as i64,
                part,
                c[0],
                c[1],
                c[2],
                c[3],
                c[4],
                c[5],
                c[6],
                totals.runs.completed as i64,
                totals.runs.failed as i64,
                totals.quarantined as i64,
                totals.removed_accepted as i64
            ])?;
        Ok(())
    }
}
