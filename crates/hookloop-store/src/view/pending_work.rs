//! Versions of subjects, reactions that are due, and workflow runs that are not over.

use hookloop_core::id::{EventId, RunId, Subject};
use hookloop_core::workflow::WorkflowRun;
use rusqlite::OptionalExtension;

use super::tables::RowResult;
use super::totals::View;
use crate::log::{LogError, Seq};

impl View<'_> {
    /// Returns a subject's version: the last event on it that this view has.
    pub fn version(&self, subject: &Subject) -> RowResult<Seq> {
        let (sql, name) = match subject {
            Subject::Task(id) => ("SELECT version FROM task WHERE id = ?1", id.to_string()),
            other => ("SELECT version FROM subject WHERE name = ?1", other.to_string()),
        };
        let mut select = self.conn.prepare_cached(sql)?;
        let version = select.query_row([&name], |row| row.get::<_, i64>(0)).optional()?;
        match (version, subject) {
            // A foreign message can be on the subject of a task that was never created.
            (None, Subject::Task(_)) => {
                let select = "SELECT version FROM subject WHERE name = ?1";
                let mut select = self.conn.prepare_cached(select)?;
                let foreign = select.query_row([&name], |row| row.get::<_, i64>(0)).optional()?;
                Ok(foreign.unwrap_or(0) as Seq)
            }
            (version, _) => Ok(version.unwrap_or(0) as Seq),
        }
    }

    /// Returns the oldest event whose reactions are due.
    pub fn next_due(&self) -> RowResult<Option<Seq>> {
        self.next_due_after(0)
    }

    /// Returns the next event after place `seq` whose reactions are due.
    pub fn next_due_after(&self, seq: Seq) -> RowResult<Option<Seq>> {
        let mut select = self.conn.prepare_cached("SELECT min(seq) FROM due WHERE seq > ?1")?;
        let next = select.query_row([seq as i64], |row| row.get::<_, Option<i64>>(0))?;
        Ok(next.map(|seq| seq as Seq))
    }

    /// Whether reactions or workflow runs are pending.
    pub fn has_pending(&self) -> RowResult<bool> {
        let select = "SELECT EXISTS (SELECT 1 FROM due) OR EXISTS (SELECT 1 FROM run)";
        Ok(self.conn.prepare_cached(select)?.query_row([], |row| row.get(0))?)
    }

    /// Returns the number of actions that a root with due events has caused.
    pub fn cascade_count(&self, root: EventId) -> RowResult<u32> {
        let mut select = self.conn.prepare_cached("SELECT count FROM cascade WHERE root = ?1")?;
        Ok(select.query_row([root.0], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    pub fn count_due(&self) -> RowResult<u64> {
        let mut select = self.conn.prepare_cached("SELECT count(*) FROM due")?;
        Ok(select.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Returns the hooks that a command enabled or disabled.
    pub fn hook_switches(&self) -> RowResult<Vec<(String, bool)>> {
        let mut select =
            self.conn.prepare_cached("SELECT name, enabled FROM hook_switch ORDER BY name")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Returns the oldest workflow run that is not over.
    pub fn next_run(&self) -> RowResult<Option<WorkflowRun>> {
        let select = "SELECT id, workflow, next_step, steps, cause FROM run ORDER BY num LIMIT 1";
        let mut select = self.conn.prepare_cached(select)?;
        let row = select
            .query_row([], |row| {
                let texts: (String, Option<String>) = (row.get(3)?, row.get(4)?);
                Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, i64>(2)?, texts))
            })
            .optional()?;
        let Some((id, workflow, next_step, (steps, cause))) = row else { return Ok(None) };
        let damaged = |error| LogError::damaged(0, format!("run `{id}` in the view: {error}"));
        let steps = serde_json::from_str(&steps).map_err(damaged)?;
        let cause = cause.map(|json| serde_json::from_str(&json)).transpose().map_err(damaged)?;
        Ok(Some(WorkflowRun {
            id: RunId(id),
            workflow,
            steps,
            next_step: next_step as usize,
            cause,
        }))
    }

    /// Counts the workflow runs that are in progress.
    pub fn count_runs(&self) -> RowResult<u64> {
        let mut select = self.conn.prepare_cached("SELECT count(*) FROM run")?;
        Ok(select.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }
}
