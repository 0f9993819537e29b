//! Recurring tasks.

use hookloop_core::decide::KnownFacts;
use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::TaskId;
use hookloop_core::schedule::{
    OccurrenceResult, ScheduleCommand, ScheduleFired, ScheduleName, ScheduleStanding,
};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use rusqlite::{Row, params};

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use super::task_rows::KnownId;
use super::totals::View;
use crate::log::LogError;

const DUE: &str =
    "SELECT name FROM schedule WHERE next IS NOT NULL AND next <= ?1 ORDER BY next LIMIT ?2";
const COLUMNS: &str = "SELECT name, data, paused, next, last FROM schedule";

impl ViewFold<'_> {
    pub(super) fn apply_schedule(&self, name: &ScheduleName, event: &Event) -> RowResult<()> {
        let name = name.as_str();
        match &event.body {
            EventBody::ScheduleSet(set) => {
                let insert = "INSERT OR REPLACE INTO schedule VALUES (?1, ?2, 0, ?3, NULL)";
                self.run(insert, params![name, to_json(&set.schedule), set.next.0])?;
            }
            EventBody::SchedulePaused(_) => {
                let update = "UPDATE schedule SET paused = 1, next = NULL WHERE name = ?1";
                self.run(update, [name])?;
            }
            EventBody::ScheduleResumed(resumed) => {
                let update = "UPDATE schedule SET paused = 0, next = ?2 WHERE name = ?1";
                self.run(update, params![name, resumed.next.map(|next| next.0)])?;
            }
            EventBody::ScheduleRemoved(_) => {
                self.run("DELETE FROM schedule WHERE name = ?1", [name])?;
            }
            EventBody::ScheduleFired(fired) => self.fire(name, fired)?,
            _ => {}
        }
        Ok(())
    }

    fn fire(&self, name: &str, fired: &ScheduleFired) -> RowResult<()> {
        let update = "UPDATE schedule SET next = ?2, last = ?3 WHERE name = ?1";
        self.run(update, params![name, fired.next.map(|next| next.0), to_json(fired)]).map(drop)
    }
}

fn read(row: &Row<'_>) -> RowResult<ScheduleStanding> {
    let (name, data): (String, String) = (row.get(0)?, row.get(1)?);
    let (next, last): (Option<i64>, Option<String>) = (row.get(3)?, row.get(4)?);
    let damaged = |error: &dyn std::fmt::Display| {
        LogError::damaged(0, format!("schedule `{name}` in the view: {error}"))
    };
    let last = last.map(|json| serde_json::from_str(&json)).transpose();
    Ok(ScheduleStanding {
        schedule: serde_json::from_str(&data).map_err(|error| damaged(&error))?,
        is_paused: row.get(2)?,
        next: next.map(Timestamp),
        last: last.map_err(|error| damaged(&error))?,
        name: name.parse().map_err(|error| damaged(&error))?,
    })
}

impl View<'_> {
    pub fn schedule(&self, name: &ScheduleName) -> RowResult<Option<ScheduleStanding>> {
        let mut select = self.conn.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
        let mut rows = select.query([name.as_str()])?;
        rows.next()?.map(read).transpose()
    }

    /// Returns every schedule, by name.
    pub fn schedules(&self) -> RowResult<Vec<ScheduleStanding>> {
        let mut select = self.conn.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
        let mut rows = select.query([])?;
        let mut schedules = Vec::new();
        while let Some(row) = rows.next()? {
            schedules.push(read(row)?);
        }
        Ok(schedules)
    }

    /// Returns the schedules that are due at `now`, oldest first, at most `limit`.
    pub fn schedules_due(&self, now: Timestamp, limit: usize) -> RowResult<Vec<ScheduleName>> {
        let mut select = self.conn.prepare_cached(DUE)?;
        let names =
            select.query_map(params![now.0, limit as i64], |row| row.get::<_, String>(0))?;
        let damaged = |error| LogError::damaged(0, format!("in the view: {error}"));
        names.map(|name| name?.parse().map_err(damaged)).collect()
    }

    /// Returns the task of a schedule occurrence, if it is neither completed nor deleted.
    fn open_task_of(&self, fired: &ScheduleFired) -> RowResult<Option<TaskId>> {
        let (OccurrenceResult::TaskId(id) | OccurrenceResult::SkippedFor(id)) = &fired.came;
        let row = self.task(id)?.filter(|row| row.task.state != TaskState::Completed);
        Ok(row.map(|row| row.task.id))
    }

    pub(super) fn schedule_facts(
        &self,
        name: &ScheduleName,
        ask: &ScheduleCommand,
    ) -> RowResult<KnownFacts> {
        let mut facts = KnownFacts { schedule: self.schedule(name)?, ..KnownFacts::default() };
        if let Some(task) = ask.task() {
            match self.known(task)? {
                KnownId::Task(row) => facts.task = Some(row.task),
                KnownId::Deleted => facts.deleted = true,
                KnownId::Nothing => {}
            }
        }
        let last = facts.schedule.as_ref().and_then(|standing| standing.last.as_ref());
        facts.last_open = last.map(|fired| self.open_task_of(fired)).transpose()?.flatten();
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If no schedule is due, the query reads no row, however many schedules there are.
    #[test]
    fn the_query_for_due_schedules_uses_its_index() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {DUE}")).unwrap();
        let steps = explain.query_map([0, 1], |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = steps.map(|step| step.unwrap()).collect();
        assert!(plan.len() == 1 && plan[0].contains("INDEX schedule_next"), "{plan:?}");
    }
}
