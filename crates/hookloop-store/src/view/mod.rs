//! Tables derived from the log, and every question asked of them.
//!
//! - [`apply`]: one event into the tables
//! - [`compare`]: the tables against those that the log leads to
//! - [`query`]: what is read from them
//! - [`figures`]: for who watches from outside
//! - [`front`]: what can be started, and what is held
//! - [`deliveries`]: what became of work that was submitted
//! - [`fleet`]: orders that hold, and what the fleet may spend
//! - [`problems`]: what needs a human, and who was told
//! - [`quarantine`]: messages of a shared log that are no events
//! - [`remarks`]: what is said about tasks beside their state
//! - [`runs`]: how often hooks ran, and what came of it
//! - [`schedules`]: tasks that come again
//! - [`sessions`]: runs of the loop, under way and over
//! - [`usage`]: what turns used, and what is set aside for others
//! - [`hash`]: one value for all of it, equal wherever the same events were applied

mod apply;
mod compare;
mod deliveries;
mod figures;
mod fleet;
mod front;
mod hash;
mod problems;
mod quarantine;
mod query;
mod remarks;
mod runs;
mod schedules;
mod sessions;
mod usage;

use hookloop_core::event::{CursorMoved, CursorPart};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use rusqlite::Connection;

use crate::chain::Hash;
use crate::log::{LogError, Seq};

pub(crate) use apply::Fold;
pub use compare::ViewDifference;
pub(crate) use compare::differences;
pub use deliveries::Waiting;
pub use figures::{HookTimes, SessionCount};
pub use front::{Early, Kinds};
pub use problems::{Notice, NoticeState};
pub use quarantine::QuarantineRow;
pub use query::{TaskFilter, TaskRow};
pub use remarks::Remarked;
pub use runs::HookRuns;
pub use sessions::{REVIEW, SessionFilter, SessionRow};
pub use usage::{Reservation, Spent, UsageBy, UsageOfDay, UsageRow};

pub(crate) const TABLES: &str = include_str!("view.sql");

/// Empties the view, for it to be made again.
pub(crate) const DROP: &str = "DROP TABLE IF EXISTS totals; DROP TABLE IF EXISTS task;
    DROP TABLE IF EXISTS edge; DROP TABLE IF EXISTS subject; DROP TABLE IF EXISTS due;
    DROP TABLE IF EXISTS cascade; DROP TABLE IF EXISTS hook_switch; DROP TABLE IF EXISTS run;
    DROP TABLE IF EXISTS hook_runs; DROP TABLE IF EXISTS hook_time;
    DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS usage; DROP TABLE IF EXISTS spent;
    DROP TABLE IF EXISTS reservation; DROP TABLE IF EXISTS remark;
    DROP TABLE IF EXISTS delivery; DROP TABLE IF EXISTS problem;
    DROP TABLE IF EXISTS notice; DROP TABLE IF EXISTS told; DROP TABLE IF EXISTS schedule;
    DROP TABLE IF EXISTS fleet; DROP TABLE IF EXISTS orphan; DROP TABLE IF EXISTS quarantine;";

pub type Result<T, E = LogError> = std::result::Result<T, E>;

/// A stored state. `Open` is created or ready, told apart by the open dependencies, and by the time for who asks at
/// a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Open = 0,
    Active = 1,
    Submitted = 2,
    Completed = 3,
    Blocked = 4,
    Deleted = 5,
}

impl Stored {
    pub(crate) fn read(code: i64) -> Stored {
        match code {
            0 => Stored::Open,
            1 => Stored::Active,
            2 => Stored::Submitted,
            3 => Stored::Completed,
            4 => Stored::Blocked,
            _ => Stored::Deleted,
        }
    }

    /// The state a reader sees whose time has come; none for a task that is deleted.
    pub(crate) fn shown(self, open_deps: u32) -> Option<TaskState> {
        Some(match self {
            Stored::Open if open_deps == 0 => TaskState::Ready,
            Stored::Open => TaskState::Created,
            Stored::Active => TaskState::Active,
            Stored::Submitted => TaskState::Submitted,
            Stored::Completed => TaskState::Completed,
            Stored::Blocked => TaskState::Blocked,
            Stored::Deleted => return None,
        })
    }
}

/// The one row of figures, held in memory while a unit of work changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The last event in the view.
    pub head: Seq,
    pub(crate) hash: Hash,
    pub cursor: CursorMoved,
    /// Tasks in each state, whatever the time, and deleted ones.
    counts: [i64; 7],
    /// Workflow runs that are over: completed, failed.
    pub runs: Runs,
    /// Messages of a shared log that are no events.
    pub quarantined: u64,
    /// Messages that were removed from the stream of a shared log, as far as a person accepted that.
    pub removed_accepted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    pub completed: u64,
    pub failed: u64,
}

impl Totals {
    pub fn count(&self, state: TaskState) -> u64 {
        self.counts[state as usize].max(0) as u64
    }

    /// Tasks that are not deleted.
    pub fn tasks(&self) -> u64 {
        TaskState::ALL.into_iter().map(|state| self.count(state)).sum()
    }

    fn add(&mut self, state: Option<TaskState>, change: i64) {
        self.counts[state.map_or(6, |state| state as usize)] += change;
    }

    fn moved(&mut self, from: Option<TaskState>, to: Option<TaskState>) {
        self.add(from, -1);
        self.add(to, 1);
    }
}

/// A connection seen as the view it holds.
#[derive(Clone, Copy, Debug)]
pub struct View<'c> {
    conn: &'c Connection,
    /// When it is asked. At no moment in particular, the time of every task has come and none has waited.
    now: Option<Timestamp>,
}

impl<'c> View<'c> {
    pub(crate) fn new(conn: &'c Connection) -> View<'c> {
        View { conn, now: None }
    }

    /// The view as it is at `now`: the store has no clock.
    pub fn at(self, now: Timestamp) -> View<'c> {
        View { now: Some(now), ..self }
    }

    pub fn totals(&self) -> Result<Totals> {
        let mut select = self.conn.prepare_cached("SELECT * FROM totals")?;
        let row = select.query_row([], |row| {
            let mut counts = [0; 7];
            for (i, count) in counts.iter_mut().enumerate() {
                *count = row.get(4 + i)?;
            }
            let part: Option<String> = row.get(3)?;
            let over = |column| row.get::<_, i64>(column).map(|n| n as u64);
            let runs = Runs { completed: over(11)?, failed: over(12)? };
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
        Ok(Totals { head, hash, cursor, counts, runs, quarantined, removed_accepted })
    }

    pub(crate) fn write_totals(&self, totals: &Totals) -> Result<()> {
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

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
