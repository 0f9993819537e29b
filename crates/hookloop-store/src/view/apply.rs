//! Applies one event to the tables.

use hookloop_core::event::{CursorMoved, Event, EventBody, WorkflowRequested};
use hookloop_core::id::{RunId, Subject};
use rusqlite::params;

use super::fold::ViewFold;
use super::tables::{RowResult, to_json};
use crate::log::Seq;

impl ViewFold<'_> {
    /// Applies the event at place `seq`. Returns the subject's version before it.
    pub(crate) fn apply(&mut self, seq: Seq, event: &Event) -> RowResult<Seq> {
        self.totals.head = seq;
        match (&event.subject, &event.body) {
            (subject, EventBody::MessageQuarantined(message)) => {
                self.quarantine(seq, subject, &message.subject, &message.reason)
            }
            (Subject::Task(id), EventBody::TaskCreated(spec)) => {
                self.insert_task(seq, id, spec, event)
            }
            (Subject::Task(id), EventBody::DependencyAdded(edge)) => self.add_edge(seq, id, edge),
            (Subject::Task(id), _) => self.change_task(seq, id, event),
            (subject, _) => {
                self.apply_elsewhere(seq, event)?;
                self.raise_version(subject, seq)
            }
        }
    }

    /// Updates the dispatcher's tables: due events, and the number of actions of each root with
    /// pending reactions.
    pub(crate) fn owe(&self, seq: Seq, event: &Event) -> RowResult<()> {
        let (root, count) = match &event.cause {
            Some(cause) => (cause.root, cause.count),
            None if event.due => (event.id, 0),
            None => return Ok(()),
        };
        if event.due {
            self.run("INSERT INTO due VALUES (?1)", [seq as i64])?;
        }
        if event.due || matches!(event.body, EventBody::WorkflowRequested(_)) {
            self.run("INSERT OR IGNORE INTO cascade VALUES (?1, ?2)", params![root.0, count])?;
        }
        let raise = "UPDATE cascade SET count = max(count, ?2) WHERE root = ?1";
        self.run(raise, params![root.0, count])?;
        Ok(())
    }

    fn apply_elsewhere(&mut self, seq: Seq, event: &Event) -> RowResult<()> {
        match (&event.subject, &event.body) {
            (Subject::Session(id), _) => self.apply_session(seq, id, event),
            (Subject::Schedule(name), _) => self.apply_schedule(name, event),
            (Subject::Budget, EventBody::BudgetReserved(reserved)) => {
                self.end_problem(&event.subject)?;
                self.reserve(reserved, event.at)
            }
            (Subject::Notice(id), body) => self.apply_notice(seq, id, body),
            (Subject::Fleet, _) => self.apply_fleet(event),
            (_, EventBody::CursorMoved(cursor)) => self.move_cursor(cursor),
            (_, EventBody::HookEnabled(hook)) => self.switch_hook(&hook.name, true),
            (_, EventBody::HookDisabled(hook)) => self.switch_hook(&hook.name, false),
            (_, EventBody::LossAccepted(loss)) => {
                self.totals.removed_accepted = self.totals.removed_accepted.max(loss.removed);
                Ok(())
            }
            (_, EventBody::ForeignAccepted(accepted)) => self.accept_foreign(accepted.through),
            (_, EventBody::HookRan(ran)) => self.count_run(ran),
            (_, EventBody::WorkflowRequested(requested)) => self.insert_run(event, requested),
            (Subject::Workflow(run), EventBody::WorkflowStepCompleted(step)) => {
                let update = "UPDATE run SET next_step = ?2 WHERE id = ?1";
                self.run(update, params![run.0, step.step as i64 + 1]).map(drop)
            }
            (Subject::Workflow(run), EventBody::WorkflowCompleted(_)) => {
                self.totals.runs.completed += 1;
                self.end_run(run)
            }
            (Subject::Workflow(run), EventBody::WorkflowFailed(_)) => {
                self.totals.runs.failed += 1;
                self.end_run(run)
            }
            _ => Ok(()),
        }
    }

    fn move_cursor(&mut self, cursor: &CursorMoved) -> RowResult<()> {
        let done = match cursor.part {
            Some(_) => cursor.seq.saturating_sub(1),
            None => cursor.seq,
        };
        self.run("DELETE FROM due WHERE seq <= ?1", [done as i64])?;
        self.totals.cursor = cursor.clone();
        self.forget_cascades()
    }

    /// Deletes the counts when neither due events nor workflow runs are left.
    fn forget_cascades(&self) -> RowResult<()> {
        let forget = "DELETE FROM cascade WHERE NOT EXISTS (SELECT 1 FROM due)
            AND NOT EXISTS (SELECT 1 FROM run)";
        self.run(forget, []).map(drop)
    }

    fn switch_hook(&self, name: &str, enabled: bool) -> RowResult<()> {
        let insert = "INSERT OR REPLACE INTO hook_switch VALUES (?1, ?2)";
        self.run(insert, params![name, enabled])?;
        Ok(())
    }

    fn insert_run(&self, event: &Event, requested: &WorkflowRequested) -> RowResult<()> {
        let insert = "INSERT INTO run(id, workflow, next_step, steps, cause)
            VALUES (?1, ?2, 0, ?3, ?4)";
        let (steps, cause) = (to_json(&requested.steps), event.cause.as_ref().map(to_json));
        self.run(insert, params![requested.run.0, requested.workflow, steps, cause])?;
        Ok(())
    }

    fn end_run(&self, run: &RunId) -> RowResult<()> {
        self.run("DELETE FROM run WHERE id = ?1", [&run.0])?;
        self.forget_cascades()
    }
}
