//! Annotations of tasks beside their state: stop hooks, notes, checkpoints.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::TaskId;
use hookloop_core::remark::{CHECKPOINTS_KEPT, NOTES_KEPT, StopHook, TaskCheckpointed, TaskNoted};
use hookloop_core::time::Timestamp;
use rusqlite::params;
use serde::de::DeserializeOwned;

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use super::totals::View;
use crate::log::{LogError, Seq};

const STOP_HOOK: i64 = 0;
const NOTE: i64 = 1;
const CHECKPOINT: i64 = 2;

/// An annotation, with its actor and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAnnotation<T> {
    /// The number among annotations of its kind, from 1 on.
    pub number: u64,
    pub at: Timestamp,
    pub by: String,
    pub what: T,
}

impl ViewFold<'_> {
    pub(super) fn remark(&self, seq: Seq, num: i64, event: &Event) -> RowResult<()> {
        let (kind, data, kept) = match &event.body {
            EventBody::StopHookRegistered(hook) => (STOP_HOOK, to_json(hook), usize::MAX),
            EventBody::TaskNoted(noted) => (NOTE, to_json(noted), NOTES_KEPT),
            EventBody::TaskCheckpointed(made) => (CHECKPOINT, to_json(made), CHECKPOINTS_KEPT),
            _ => {
                let clear = "DELETE FROM remark WHERE task = ?1 AND kind = ?2";
                return self.run(clear, params![num, STOP_HOOK]).map(drop);
            }
        };
        let insert =
            "INSERT INTO remark SELECT ?1, ?2, ?3, 1 + coalesce(max(number), 0), ?4, ?5, ?6
            FROM remark WHERE task = ?1 AND kind = ?2";
        let values = params![num, kind, seq as i64, event.at.0, event.actor, data];
        self.run(insert, values)?;
        let forget = "DELETE FROM remark WHERE task = ?1 AND kind = ?2 AND number <=
            (SELECT max(number) FROM remark WHERE task = ?1 AND kind = ?2) - ?3";
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        self.run(forget, params![num, kind, kept]).map(drop)
    }
}

impl View<'_> {
    /// Returns the stop hooks of a task, in the order of registration.
    pub fn stop_hooks(&self, task: &TaskId) -> RowResult<Vec<TaskAnnotation<StopHook>>> {
        self.remarks(task, STOP_HOOK)
    }

    /// Returns the last notes on a task, oldest first.
    pub fn notes(&self, task: &TaskId) -> RowResult<Vec<TaskAnnotation<TaskNoted>>> {
        self.remarks(task, NOTE)
    }

    /// Returns the last checkpoints of a task, oldest first.
    pub fn checkpoints(&self, task: &TaskId) -> RowResult<Vec<TaskAnnotation<TaskCheckpointed>>> {
        self.remarks(task, CHECKPOINT)
    }

    pub(super) fn count_stop_hooks(&self, num: u64) -> RowResult<usize> {
        let count = "SELECT count(*) FROM remark WHERE task = ?1 AND kind = ?2";
        let mut count = self.conn.prepare_cached(count)?;
        let found: i64 = count.query_row(params![num as i64, STOP_HOOK], |row| row.get(0))?;
        Ok(found as usize)
    }

    fn remarks<T: DeserializeOwned>(
        &self,
        task: &TaskId,
        kind: i64,
    ) -> RowResult<Vec<TaskAnnotation<T>>> {
        let select = "SELECT number, at, actor, data FROM remark
            WHERE task = (SELECT num FROM task WHERE id = ?1) AND kind = ?2 ORDER BY seq";
        let mut select = self.conn.prepare_cached(select)?;
        let mut rows = select.query(params![task.as_str(), kind])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let data: String = row.get(3)?;
            let what = serde_json::from_str(&data).map_err(|error| LogError::damaged(0, error))?;
            let (number, at, by) =
                (row.get::<_, i64>(0)? as u64, Timestamp(row.get(1)?), row.get(2)?);
            found.push(TaskAnnotation { number, at, by, what });
        }
        Ok(found)
    }
}
