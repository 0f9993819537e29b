//! Metrics for observers outside the process.
//!
//! No query reads more rows than its table has, and none reads the log.

use hookloop_core::task::Priority;
use hookloop_core::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::runs::ms_of;
use super::tables::RowResult;
use super::totals::View;

/// The number of sessions in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCount {
    /// Has the values of [`super::SessionRow::state`].
    pub state: String,
    pub is_over: bool,
    pub count: u64,
}

/// The durations of a hook's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookTimes {
    pub name: String,
    /// Buckets: the upper bound in milliseconds, exact to a fifth, and the number of runs in the
    /// bucket.
    pub sizes: Vec<(u64, u64)>,
}

impl View<'_> {
    pub fn count_sessions(&self) -> RowResult<Vec<SessionCount>> {
        let count =
            "SELECT state, ended_at IS NOT NULL, count(*) FROM session GROUP BY 1, 2 ORDER BY 1";
        let mut count = self.conn.prepare_cached(count)?;
        let read = |row: &Row<'_>| {
            let count = row.get::<_, i64>(2)?.cast_unsigned();
            Ok(SessionCount { state: row.get(0)?, is_over: row.get(1)?, count })
        };
        Ok(count.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Counts the problems that are not dismissed, by kind.
    pub fn count_problems_by_kind(&self) -> RowResult<Vec<(String, u64)>> {
        let count = "SELECT kind, count(*) FROM problem WHERE dismissed = 0 GROUP BY 1 ORDER BY 1";
        let mut count = self.conn.prepare_cached(count)?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()));
        Ok(count.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the time since which the oldest ready task waits: its creation, or its start time.
    pub fn oldest_ready(&self) -> RowResult<Option<Timestamp>> {
        const UNTIMED: &str = "SELECT created_at FROM task WHERE state = 0 AND open_deps = 0
            AND not_before IS NULL AND priority = ?1 ORDER BY num LIMIT 1";
        const TIMED: &str = "SELECT not_before FROM task WHERE state = 0 AND open_deps = 0
            AND not_before IS NOT NULL AND priority = ?1 AND not_before <= ?2 ORDER BY not_before LIMIT 1";
        let now = self.now.map_or(i64::MAX, |now| now.0);
        let mut oldest: Option<i64> = None;
        for priority in 0..=Priority::MAX {
            let first = |row: &Row<'_>| row.get::<_, i64>(0);
            let untimed = self.conn.prepare_cached(UNTIMED)?.query_row([priority], first);
            let timed = self.conn.prepare_cached(TIMED)?.query_row(params![priority, now], first);
            for since in [untimed.optional()?, timed.optional()?].into_iter().flatten() {
                oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
            }
        }
        Ok(oldest.map(Timestamp))
    }

    /// Returns the durations of each hook's runs.
    pub fn hook_times(&self) -> RowResult<Vec<HookTimes>> {
        let select = "SELECT name, size, runs FROM hook_time ORDER BY name, size";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query([])?;
        let mut found: Vec<HookTimes> = Vec::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            if found.last().is_none_or(|last| last.name != name) {
                found.push(HookTimes { name, sizes: Vec::new() });
            }
            if let Some(last) = found.last_mut() {
                last.sizes.push((ms_of(row.get(1)?), row.get::<_, i64>(2)?.cast_unsigned()));
            }
        }
        Ok(found)
    }
}
