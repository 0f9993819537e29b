//! The results of submitted work, by task.

use hookloop_core::delivery::Delivery;
use hookloop_core::event::EventBody;
use hookloop_core::id::TaskId;
use rusqlite::{OptionalExtension, params};

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use super::task_rows::TaskRow;
use super::totals::View;
use crate::log::{LogError, Seq};

/// A task that waits for its merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSubmission {
    pub row: TaskRow,
    pub delivery: Delivery,
}

impl ViewFold<'_> {
    pub(super) fn deliver(&self, seq: Seq, num: i64, body: &EventBody) -> RowResult<()> {
        if !Delivery::concerns(body) {
            return Ok(());
        }
        let known = View::new(self.conn).delivery_of(num)?;
        let (mut delivery, submitted) = known.unwrap_or_default();
        if !delivery.apply(body) {
            return Ok(());
        }
        let is_submission = matches!(body, EventBody::TaskSubmitted(_));
        let at = if is_submission { seq } else { submitted };
        let put = "INSERT INTO delivery VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET seq = ?2, data = ?3";
        self.run(put, params![num, at as i64, to_json(&delivery)]).map(drop)
    }
}

impl View<'_> {
    /// Returns the delivery of a task's work so far.
    pub fn delivery(&self, task: &TaskId) -> RowResult<Delivery> {
        match self.num(task)? {
            Some(num) => Ok(self.delivery_of(num as i64)?.unwrap_or_default().0),
            None => Ok(Delivery::default()),
        }
    }

    /// Returns the tasks that wait for their merge, by priority and then by age.
    pub fn waiting(&self, limit: usize) -> RowResult<Vec<WaitingSubmission>> {
        let select = "SELECT task.id FROM task JOIN delivery ON delivery.task = task.num
            WHERE task.state = 2 AND task.claim IS NULL ORDER BY task.priority, delivery.seq LIMIT ?1";
        let mut select = self.conn.prepare_cached(select)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let ids = select.query_map([limit], |row| row.get::<_, String>(0))?;
        let mut found = Vec::new();
        for id in ids {
            let id: TaskId = id?.try_into().map_err(|error| LogError::damaged(0, error))?;
            let Some(row) = self.task(&id)? else { continue };
            let delivery = self.delivery(&id)?;
            if delivery.submission.is_some() {
                found.push(WaitingSubmission { row, delivery });
            }
        }
        Ok(found)
    }

    pub(super) fn delivery_of(&self, num: i64) -> RowResult<Option<(Delivery, Seq)>> {
        let select = "SELECT data, seq FROM delivery WHERE task = ?1";
        let mut select = self.conn.prepare_cached(select)?;
        let found = select
            .query_row([num], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        let read = |(data, seq): (String, i64)| {
            let delivery = serde_json::from_str(&data)
                .map_err(|error| LogError::damaged(seq as Seq, format!("in the view: {error}")))?;
            Ok((delivery, seq as Seq))
        };
        found.map(read).transpose()
    }
}
