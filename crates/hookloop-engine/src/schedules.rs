//! Recurring tasks: any process creates them when they are due.
//!
//! The batch of an occurrence moves the schedule's subject, so an occurrence creates one task.
//! `schedule_fired` records the next time, so that a view needs no time zones. If no schedule is
//! due, nothing is read from the log.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::schedule::{ScheduleCommand, ScheduleName};
use hookloop_core::time::Timestamp;
use hookloop_store::store::WorkUnit;

use crate::batch::{Batch, EventOrigin};
use crate::error::EngineError;
use crate::project::Project;

/// Maximum schedules that one call fires. The others stay due.
const DUE_AT_ONCE: usize = 100;

impl Project {
    /// Returns the current time of this machine's clock.
    pub fn now(&self) -> Timestamp {
        now()
    }

    /// Whether a schedule is due.
    pub fn has_schedule_due(&self, now: Timestamp) -> Result<bool, EngineError> {
        Ok(!self.store.glance(|view| view.schedules_due(now, 1))?.is_empty())
    }

    /// Creates the tasks of schedules that are due at `now`, and returns them.
    ///
    /// Only the last of several missed occurrences counts. Any machine may call this at any time:
    /// each occurrence creates one task.
    pub fn fire_schedules(&self, now: Timestamp) -> Result<Vec<TaskId>, EngineError> {
        let due = self.store.glance(|view| view.schedules_due(now, DUE_AT_ONCE))?;
        let mut made = Vec::new();
        for name in due {
            match self.fire(&name, now) {
                Ok(task) => made.extend(task),
                // The schedule was removed, or a newer version set it. The other schedules are
                // still fired.
                Err(EngineError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    fn fire(&self, name: &ScheduleName, now: Timestamp) -> Result<Option<TaskId>, EngineError> {
        let origin = EventOrigin::command(fresh_id(), &format!("schedule:{name}"));
        let mut tries = 0;
        self.store.transact(|unit| -> Result<_, EngineError> {
            let origin = origin.part(tries);
            tries += 1;
            let Some((slot, task)) = due_slot(unit, name, now)? else { return Ok(None) };
            let ask = ScheduleCommand::Fire { slot, task: task.clone() };
            let command = Command::Schedule { name: name.clone(), ask };
            let mut work = Batch::new(unit, &self.rules, now)?;
            let is_new = work.unit.view()?.task(&task)?.is_none();
            work.perform(&command, &origin)??;
            work.react()?;
            let is_there = work.unit.view()?.task(&task)?.is_some();
            Ok((is_new && is_there).then_some(task))
        })
    }
}

/// Returns the last due occurrence of a schedule, and the id of its task.
fn due_slot(
    unit: &WorkUnit<'_>,
    name: &ScheduleName,
    now: Timestamp,
) -> Result<Option<(Timestamp, TaskId)>, EngineError> {
    let Some(standing) = unit.view()?.schedule(name)? else { return Ok(None) };
    let Some(due) = standing.next.filter(|due| *due <= now) else { return Ok(None) };
    let last = standing.schedule.timetable.last_until(now).map_err(Refusal::from)?;
    // The recorded occurrence counts, even if this machine has other time-zone data.
    let slot = last.map_or(due, |last| last.max(due));
    Ok(name.task_at(slot).map(|task| (slot, task)))
}
