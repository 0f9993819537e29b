//! One event into the tables.

use hookloop_core::event::{
    CursorMoved, Dependency, Event, EventBody, HookSwitched, RemovedDependency, WorkflowRequested,
};
use hookloop_core::id::{RunId, Subject, TaskId};
use hookloop_core::task::TaskSpec;
use rusqlite::{OptionalExtension, params};

use super::{Result, Stored, Totals, View, to_json};
use crate::log::{LogError, Seq};

/// What is known of an event once it is in the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The subject's version before the event.
    pub prev: Seq,
}

/// The columns of a task that a change depends on.
#[derive(Clone, Copy)]
struct Node {
    num: i64,
    version: Seq,
    state: Stored,
    open_deps: u32,
}

const COMPLETED: i64 = Stored::Completed as i64;

impl View<'_> {
    /// Applies the event at place `seq`. Everything but the figures, which the caller writes once
    /// per unit of work, goes into the tables at once.
    pub(crate) fn apply(&self, seq: Seq, event: &Event, totals: &mut Totals) -> Result<Applied> {
        totals.head = seq;
        let prev = match &event.subject {
            Subject::Task(id) => self.apply_to_task(seq, id, event, totals)?,
            subject => {
                self.apply_elsewhere(event, totals)?;
                self.raise_version(subject, seq)?
            }
        };
        Ok(Applied { prev })
    }

    /// Keeps the dispatcher's books: an event that is due goes on its list, and the actions of roots
    /// that are on it are counted.
    pub(crate) fn owe(&self, seq: Seq, event: &Event) -> Result<()> {
        let (root, count) = match &event.cause {
            Some(cause) => (cause.root, cause.count),
            None if event.due => (event.id, 0),
            None => return Ok(()),
        };
        if event.due {
            self.conn.prepare_cached("INSERT INTO due VALUES (?1)")?.execute([seq as i64])?;
            let insert = "INSERT OR IGNORE INTO cascade VALUES (?1, ?2)";
            self.conn.prepare_cached(insert)?.execute(params![root.0, count])?;
        }
        let raise = "UPDATE cascade SET count = max(count, ?2) WHERE root = ?1";
        self.conn.prepare_cached(raise)?.execute(params![root.0, count])?;
        Ok(())
    }

    fn apply_to_task(
        &self,
        seq: Seq,
        id: &TaskId,
        event: &Event,
        totals: &mut Totals,
    ) -> Result<Seq> {
        if let EventBody::TaskCreated(spec) = &event.body {
            self.insert_task(seq, id, spec, event, totals)?;
            return Ok(0);
        }
        let Some(node) = self.node(id)? else {
            return Err(LogError::damaged(seq, format!("task `{id}` was never created")));
        };
        let at = event.at.0;
        match &event.body {
            EventBody::TaskStarted(_) => {
                self.set_state(seq, node, Stored::Active, totals)?;
                self.set(node, "UPDATE task SET started_at = ?2 WHERE num = ?1", at)?;
            }
            EventBody::TaskSubmitted(_) => self.set_state(seq, node, Stored::Submitted, totals)?,
            EventBody::TaskCompleted(outcome) => {
                self.complete(seq, node, at, &to_json(outcome), totals)?;
            }
            EventBody::TaskBlocked(obstacle) => {
                self.set_state(seq, node, Stored::Blocked, totals)?;
                self.set(node, "UPDATE task SET detail = ?2 WHERE num = ?1", to_json(obstacle))?;
            }
            EventBody::TaskUnblocked(_) => {
                self.set_state(seq, node, Stored::Open, totals)?;
                self.set(node, "UPDATE task SET detail = ?2 WHERE num = ?1", None::<String>)?;
            }
            EventBody::TaskDeleted(_) => self.delete(seq, node, totals)?,
            EventBody::DependencyAdded(edge) => self.add_edge(seq, node, edge, totals)?,
            EventBody::DependencyRemoved(edge) => self.remove_edge(seq, node, edge, totals)?,
            EventBody::DependencySatisfied(_) => {
                let announce = "UPDATE task SET version = ?2, announced = 1 WHERE num = ?1";
                self.set(node, announce, seq as i64)?;
            }
            _ => self.set(node, "UPDATE task SET version = ?2 WHERE num = ?1", seq as i64)?,
        }
        Ok(node.version)
    }

    fn apply_elsewhere(&self, event: &Event, totals: &mut Totals) -> Result<()> {
        match (&event.subject, &event.body) {
            (_, EventBody::CursorMoved(cursor)) => self.move_cursor(cursor, totals),
            (_, EventBody::HookSwitched(switched)) => self.switch_hook(switched),
            (_, EventBody::WorkflowRequested(requested)) => self.insert_run(event, requested),
            (Subject::Workflow(run), EventBody::WorkflowStepCompleted(step)) => {
                self.set_run(run, 0, Some(step.step + 1))
            }
            (Subject::Workflow(run), EventBody::WorkflowCompleted(_)) => self.set_run(run, 1, None),
            (Subject::Workflow(run), EventBody::WorkflowFailed(_)) => self.set_run(run, 2, None),
            _ => Ok(()),
        }
    }

    fn node(&self, id: &TaskId) -> Result<Option<Node>> {
        let select = "SELECT num, version, state, open_deps FROM task WHERE id = ?1";
        let node = self.conn.prepare_cached(select)?.query_row([id.as_str()], |row| {
            Ok(Node {
                num: row.get(0)?,
                version: row.get::<_, i64>(1)? as Seq,
                state: Stored::read(row.get(2)?),
                open_deps: row.get(3)?,
            })
        });
        Ok(node.optional()?)
    }

    fn set(&self, node: Node, update: &'static str, value: impl rusqlite::ToSql) -> Result<()> {
        self.conn.prepare_cached(update)?.execute(params![node.num, value])?;
        Ok(())
    }

    fn set_state(&self, seq: Seq, node: Node, state: Stored, totals: &mut Totals) -> Result<()> {
        totals.moved(node.state.shown(node.open_deps), state.shown(node.open_deps));
        self.conn
            .prepare_cached("UPDATE task SET version = ?2, state = ?3 WHERE num = ?1")?
            .execute(params![node.num, seq as i64, state as i64])?;
        Ok(())
    }

    fn insert_task(
        &self,
        seq: Seq,
        id: &TaskId,
        spec: &TaskSpec,
        event: &Event,
        totals: &mut Totals,
    ) -> Result<()> {
        let parent = match &spec.parent_task_id {
            Some(parent) => self.node(parent)?.map(|node| node.num),
            None => None,
        };
        let insert =
            "INSERT INTO task(id, version, state, open_deps, announced, priority, created_at,
            parent, spec) VALUES (?1, ?2, 0, 0, 0, ?3, ?4, ?5, ?6)";
        self.conn.prepare_cached(insert)?.execute(params![
            id.as_str(),
            seq as i64,
            spec.priority.get(),
            event.at.0,
            parent,
            to_json(spec)
        ])?;
        totals.add(Stored::Open.shown(0), 1);
        Ok(())
    }

    fn complete(
        &self,
        seq: Seq,
        node: Node,
        at: i64,
        outcome: &str,
        totals: &mut Totals,
    ) -> Result<()> {
        totals.moved(node.state.shown(node.open_deps), Stored::Completed.shown(0));
        let update = "UPDATE task SET version = ?2, state = 3, completed_at = ?3, detail = ?4 WHERE num = ?1";
        self.conn.prepare_cached(update)?.execute(params![node.num, seq as i64, at, outcome])?;
        if node.state == Stored::Completed {
            return Ok(());
        }
        self.release_dependents(node, totals)
    }

    /// Every dependent of `node` waits for one task less.
    fn release_dependents(&self, node: Node, totals: &mut Totals) -> Result<()> {
        let update = "UPDATE task SET open_deps = open_deps - 1
            WHERE num IN (SELECT task FROM edge WHERE needs = ?1) RETURNING state, open_deps";
        let mut update = self.conn.prepare_cached(update)?;
        let mut rows = update.query([node.num])?;
        while let Some(row) = rows.next()? {
            let (state, open_deps) = (Stored::read(row.get(0)?), row.get::<_, u32>(1)?);
            if state == Stored::Open && open_deps == 0 {
                totals.moved(state.shown(1), state.shown(0));
            }
        }
        Ok(())
    }

    fn delete(&self, seq: Seq, node: Node, totals: &mut Totals) -> Result<()> {
        if node.state != Stored::Completed {
            self.release_dependents(node, totals)?;
        }
        self.set_state(seq, node, Stored::Deleted, totals)?;
        self.conn.prepare_cached("DELETE FROM edge WHERE task = ?1")?.execute([node.num])?;
        let from = "DELETE FROM edge WHERE needs = ?1 AND task IN (SELECT task FROM edge WHERE needs = ?1)";
        self.conn.prepare_cached(from)?.execute([node.num])?;
        Ok(())
    }

    fn add_edge(&self, seq: Seq, node: Node, edge: &Dependency, totals: &mut Totals) -> Result<()> {
        let needs = self.node(&edge.to_id)?.filter(|needs| needs.state != Stored::Deleted);
        let mut open = 0;
        if let Some(needs) = needs {
            let insert = "INSERT OR IGNORE INTO edge VALUES (?1, ?2)";
            let added = self.conn.prepare_cached(insert)?.execute([node.num, needs.num])?;
            open = i64::from(added == 1 && needs.state as i64 != COMPLETED);
        }
        self.change_open_deps(seq, node, open, totals)
    }

    fn remove_edge(
        &self,
        seq: Seq,
        node: Node,
        edge: &RemovedDependency,
        totals: &mut Totals,
    ) -> Result<()> {
        let mut open = 0;
        if let Some(needs) = self.node(&edge.to_id)? {
            let delete = "DELETE FROM edge WHERE task = ?1 AND needs = ?2";
            let removed = self.conn.prepare_cached(delete)?.execute([node.num, needs.num])?;
            open = i64::from(removed == 1 && needs.state as i64 != COMPLETED);
        }
        self.change_open_deps(seq, node, -open, totals)
    }

    /// A task that waits again has its next satisfaction announced again.
    fn change_open_deps(
        &self,
        seq: Seq,
        node: Node,
        change: i64,
        totals: &mut Totals,
    ) -> Result<()> {
        let open_deps = node.open_deps.saturating_add_signed(change as i32);
        totals.moved(node.state.shown(node.open_deps), node.state.shown(open_deps));
        let update = "UPDATE task SET version = ?2, open_deps = ?3, announced = announced AND ?3 = 0 WHERE num = ?1";
        self.conn.prepare_cached(update)?.execute(params![node.num, seq as i64, open_deps])?;
        Ok(())
    }

    fn raise_version(&self, subject: &Subject, seq: Seq) -> Result<Seq> {
        let name = subject.to_string();
        let prev = self
            .conn
            .prepare_cached("SELECT version FROM subject WHERE name = ?1")?
            .query_row([&name], |row| row.get::<_, i64>(0))
            .optional()?;
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO subject VALUES (?1, ?2)")?
            .execute(params![name, seq as i64])?;
        Ok(prev.unwrap_or(0) as Seq)
    }

    fn move_cursor(&self, cursor: &CursorMoved, totals: &mut Totals) -> Result<()> {
        let done = match cursor.part {
            Some(_) => cursor.seq - 1,
            None => cursor.seq,
        };
        self.conn.prepare_cached("DELETE FROM due WHERE seq <= ?1")?.execute([done as i64])?;
        let settle = "DELETE FROM cascade WHERE NOT EXISTS (SELECT 1 FROM due)";
        self.conn.prepare_cached(settle)?.execute([])?;
        totals.cursor = cursor.clone();
        Ok(())
    }

    fn switch_hook(&self, switched: &HookSwitched) -> Result<()> {
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO hook_switch VALUES (?1, ?2)")?
            .execute(params![switched.name, switched.enabled])?;
        Ok(())
    }

    fn insert_run(&self, event: &Event, requested: &WorkflowRequested) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO run(id, workflow, state, next_step, steps, cause, at)
            VALUES (?1, ?2, 0, 0, ?3, ?4, ?5)";
        self.conn.prepare_cached(insert)?.execute(params![
            requested.run.0,
            requested.workflow,
            to_json(&requested.steps),
            event.cause.as_ref().map(to_json),
            event.at.0
        ])?;
        Ok(())
    }

    fn set_run(&self, run: &RunId, state: i64, next_step: Option<usize>) -> Result<()> {
        let update = "UPDATE run SET state = ?2, next_step = coalesce(?3, next_step) WHERE id = ?1";
        let next_step = next_step.map(|step| step as i64);
        self.conn.prepare_cached(update)?.execute(params![run.0, state, next_step])?;
        Ok(())
    }
}
