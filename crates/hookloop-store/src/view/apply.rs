//! One event into the tables.

use std::cell::RefCell;

use hookloop_core::claim::ReleaseReason;
use hookloop_core::event::{
    CursorMoved, Event, EventBody, HookRan, HookSwitched, RemovedDependency, TaskDependency,
    WorkflowRequested,
};
use hookloop_core::hook_status::HookStatus;
use hookloop_core::id::{RunId, Subject, TaskId};
use hookloop_core::task::TaskSpec;
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::runs::size_of;
use super::{Result, Stored, Totals, View, to_json};
use crate::log::{LogError, Seq};

const SET_STATE: &str = "UPDATE task SET version = ?2, state = ?3 WHERE num = ?1";

/// The view while events go into it. Figures stay in memory until the unit of work ends, and so do
/// the changes to one task, because a task's edges come one after the other.
#[derive(Debug)]
pub(crate) struct Fold<'c> {
    pub(super) conn: &'c Connection,
    pub(crate) totals: Totals,
    hot: RefCell<Option<Hot>>,
}

/// The columns of a task that a change depends on.
#[derive(Clone, Copy, Debug)]
struct Node {
    num: i64,
    version: Seq,
    state: Stored,
    open_deps: u32,
}

/// The task whose edges came last.
#[derive(Debug)]
struct Hot {
    id: TaskId,
    node: Node,
    /// The table does not have it yet.
    changed: bool,
}

impl<'c> Fold<'c> {
    pub(crate) fn new(conn: &'c Connection, totals: Totals) -> Fold<'c> {
        Fold { conn, totals, hot: RefCell::new(None) }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.conn
    }

    /// The view with everything that was applied.
    pub(crate) fn view(&self) -> Result<View<'c>> {
        self.settle()?;
        Ok(View::new(self.conn))
    }

    /// Applies the event at place `seq`; answers the subject's version before it.
    pub(crate) fn apply(&mut self, seq: Seq, event: &Event) -> Result<Seq> {
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

    /// Keeps the dispatcher's books: an event that is due goes on its list, and the actions of roots
    /// that have something left to do are counted.
    pub(crate) fn owe(&self, seq: Seq, event: &Event) -> Result<()> {
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

    pub(super) fn run(&self, sql: &'static str, values: impl Params) -> Result<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(values)?)
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

    fn insert_task(
        &mut self,
        seq: Seq,
        id: &TaskId,
        spec: &TaskSpec,
        event: &Event,
    ) -> Result<Seq> {
        self.settle()?;
        let parent = match &spec.parent_task_id {
            Some(parent) => self.node(parent)?.map(|node| node.num),
            None => None,
        };
        let insert =
            "INSERT INTO task(id, version, state, open_deps, announced, priority, kind, epoch,
            created_at, parent, spec, not_before)
            VALUES (?1, ?2, 0, 0, 0, ?3, ?4, 0, ?5, ?6, ?7, ?8)";
        let (version, priority, kind) = (seq as i64, spec.priority.get(), &spec.kind);
        let (at, json) = (event.at.0, to_json(spec));
        let time = spec.not_before.map(|time| time.0).filter(|time| *time > at);
        self.run(insert, params![id.as_str(), version, priority, kind, at, parent, json, time])?;
        self.totals.add(Stored::Open.shown(0), 1);
        let num = self.conn.last_insert_rowid();
        let node = Node { num, version: seq, state: Stored::Open, open_deps: 0 };
        self.hot.replace(Some(Hot { id: id.clone(), node, changed: false }));
        // Only a foreign message can be on the subject of a task before the task is created.
        if self.totals.quarantined > 0 {
            return self.version_of(id.as_str());
        }
        Ok(0)
    }

    fn add_edge(&mut self, seq: Seq, id: &TaskId, edge: &TaskDependency) -> Result<Seq> {
        let mut hot = match self.hot.take() {
            Some(hot) if hot.id == *id => hot,
            other => {
                self.hot.replace(other);
                self.settle()?;
                let node = self.node(id)?.ok_or_else(|| never_created(seq, id))?;
                Hot { id: id.clone(), node, changed: false }
            }
        };
        let before = hot.node;
        hot.node.version = seq;
        hot.node.open_deps += u32::from(self.insert_edge(before, edge)?);
        hot.changed = true;
        self.totals
            .moved(before.state.shown(before.open_deps), before.state.shown(hot.node.open_deps));
        self.hot.replace(Some(hot));
        Ok(before.version)
    }

    /// Adds an edge; answers whether it is new and leads to a task that is not completed. An edge to
    /// a task that was deleted meanwhile leads nowhere and is left out.
    fn insert_edge(&self, node: Node, edge: &TaskDependency) -> Result<bool> {
        let needs = self.node(&edge.to_id)?.filter(|needs| needs.state != Stored::Deleted);
        let Some(needs) = needs else { return Ok(false) };
        let added =
            self.run("INSERT OR IGNORE INTO edge VALUES (?1, ?2)", [node.num, needs.num])?;
        Ok(added == 1 && needs.state != Stored::Completed)
    }

    /// Brings the table up to date with the task whose edges came last.
    pub(super) fn settle(&self) -> Result<()> {
        match self.hot.borrow_mut().as_mut() {
            Some(hot) if hot.changed => {
                hot.changed = false;
                self.write_open_deps(hot.node)
            }
            _ => Ok(()),
        }
    }

    /// A task that waits again has its next satisfaction announced again.
    fn write_open_deps(&self, node: Node) -> Result<()> {
        let update = "UPDATE task SET version = ?2, open_deps = ?3,
            announced = announced AND ?3 = 0 WHERE num = ?1";
        self.run(update, params![node.num, node.version as i64, node.open_deps])?;
        Ok(())
    }

    fn change_task(&mut self, seq: Seq, id: &TaskId, event: &Event) -> Result<Seq> {
        self.settle()?;
        self.hot.take();
        let node = self.node(id)?.ok_or_else(|| never_created(seq, id))?;
        let num = node.num;
        match &event.body {
            EventBody::TaskStarted(started) => {
                let open_deps = node.open_deps;
                self.adopt(node)?;
                self.totals.moved(node.state.shown(open_deps), Stored::Active.shown(open_deps));
                let update = "UPDATE task SET version = ?2, state = 1, started_at = ?3, claim = ?4,
                    epoch = coalesce(?5, epoch) WHERE num = ?1";
                let claim = started.claim.as_ref();
                let epoch = claim.map(|claim| claim.epoch as i64);
                let (seq, claim) = (seq as i64, claim.map(to_json));
                self.run(update, params![num, seq, event.at.0, claim, epoch])?;
            }
            EventBody::TaskReleased(released) => {
                self.set_state(seq, node, Stored::Open)?;
                // Work that nobody does has no beginning.
                let update = "UPDATE task SET started_at = NULL, claim = NULL WHERE num = ?1";
                self.run(update, [num])?;
                if released.reason == ReleaseReason::Expired {
                    self.run("INSERT OR IGNORE INTO orphan VALUES (?1)", [num])?;
                }
            }
            EventBody::TaskSubmitted(submitted) => {
                self.set_state(seq, node, Stored::Submitted)?;
                if submitted.submission.is_some() {
                    self.run("UPDATE task SET claim = NULL WHERE num = ?1", [num])?;
                }
            }
            EventBody::TaskReturned(_) => {
                self.set_state(seq, node, Stored::Open)?;
                self.run("UPDATE task SET started_at = NULL WHERE num = ?1", [num])?;
            }
            EventBody::TaskCompleted(outcome) => {
                self.adopt(node)?;
                self.totals.moved(node.state.shown(node.open_deps), Stored::Completed.shown(0));
                let update =
                    "UPDATE task SET version = ?2, state = 3, completed_at = ?3, detail = ?4,
                    claim = NULL WHERE num = ?1";
                self.run(update, params![num, seq as i64, event.at.0, to_json(outcome)])?;
                self.release_dependents(node)?;
            }
            EventBody::TaskBlocked(obstacle) => {
                self.set_state(seq, node, Stored::Blocked)?;
                let update = "UPDATE task SET detail = ?2, claim = NULL WHERE num = ?1";
                self.run(update, params![num, to_json(obstacle)])?;
            }
            EventBody::TaskUnblocked(_) => {
                self.set_state(seq, node, Stored::Open)?;
                self.run("UPDATE task SET detail = NULL WHERE num = ?1", [num])?;
            }
            EventBody::TaskApproved(_) => {
                self.set_state(seq, node, Stored::Submitted)?;
                self.run("UPDATE task SET detail = NULL WHERE num = ?1", [num])?;
            }
            EventBody::TaskDeleted(_) => self.delete(seq, node)?,
            EventBody::StopHookRegistered(_)
            | EventBody::StopHooksCleared(_)
            | EventBody::TaskNoted(_)
            | EventBody::TaskCheckpointed(_) => {
                self.raise(seq, num)?;
                self.remark(seq, num, event)?;
            }
            EventBody::DependencyRemoved(edge) => self.remove_edge(seq, node, edge)?,
            EventBody::DependencySatisfied(_) => {
                let announce = "UPDATE task SET version = ?2, announced = 1 WHERE num = ?1";
                self.run(announce, params![num, seq as i64])?;
            }
            _ => self.raise(seq, num)?,
        }
        self.deliver(seq, num, &event.body)?;
        let is_waiting = matches!(node.state, Stored::Blocked | Stored::Submitted);
        self.trouble_task(seq, event, is_waiting)?;
        Ok(node.version)
    }

    fn raise(&self, seq: Seq, num: i64) -> Result<()> {
        self.run("UPDATE task SET version = ?2 WHERE num = ?1", params![num, seq as i64]).map(drop)
    }

    fn set_state(&mut self, seq: Seq, node: Node, state: Stored) -> Result<()> {
        self.adopt(node)?;
        self.totals.moved(node.state.shown(node.open_deps), state.shown(node.open_deps));
        self.run(SET_STATE, params![node.num, seq as i64, state as i64])?;
        Ok(())
    }

    /// Whatever happens to a task that was left, it is not what it was left as.
    fn adopt(&self, node: Node) -> Result<()> {
        match node.state {
            Stored::Open => self.run("DELETE FROM orphan WHERE task = ?1", [node.num]).map(drop),
            _ => Ok(()),
        }
    }

    /// Every dependent of `node`, which was open until now, waits for one task less.
    fn release_dependents(&mut self, node: Node) -> Result<()> {
        if node.state == Stored::Completed {
            return Ok(());
        }
        let select = "SELECT task.num, state, open_deps FROM edge JOIN task ON task.num = edge.task
            WHERE needs = ?1";
        let mut select = self.conn.prepare_cached(select)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows = select.query_map([node.num], read)?;
        let dependents: Vec<(i64, i64, u32)> = rows.collect::<rusqlite::Result<_>>()?;
        let update = "UPDATE task SET open_deps = open_deps - 1 WHERE num = ?1";
        let mut update = self.conn.prepare_cached(update)?;
        for (num, state, open_deps) in dependents {
            update.execute([num])?;
            let state = Stored::read(state);
            if open_deps == 1 {
                self.totals.moved(state.shown(1), state.shown(0));
            }
        }
        Ok(())
    }

    fn delete(&mut self, seq: Seq, node: Node) -> Result<()> {
        self.release_dependents(node)?;
        self.set_state(seq, node, Stored::Deleted)?;
        self.run("UPDATE task SET claim = NULL WHERE num = ?1 AND claim IS NOT NULL", [node.num])?;
        self.run("DELETE FROM edge WHERE task = ?1", [node.num])?;
        let to = "DELETE FROM edge WHERE needs = ?1
            AND task IN (SELECT task FROM edge WHERE needs = ?1)";
        self.run(to, [node.num])?;
        Ok(())
    }

    fn remove_edge(&mut self, seq: Seq, node: Node, edge: &RemovedDependency) -> Result<()> {
        let mut after = Node { version: seq, ..node };
        if let Some(needs) = self.node(&edge.to_id)? {
            let delete = "DELETE FROM edge WHERE task = ?1 AND needs = ?2";
            let removed = self.run(delete, [node.num, needs.num])?;
            if removed == 1 && needs.state != Stored::Completed {
                after.open_deps = node.open_deps.saturating_sub(1);
            }
        }
        self.totals.moved(node.state.shown(node.open_deps), node.state.shown(after.open_deps));
        self.write_open_deps(after)
    }

    fn apply_elsewhere(&mut self, seq: Seq, event: &Event) -> Result<()> {
        match (&event.subject, &event.body) {
            (Subject::Session(id), _) => self.apply_session(seq, id, event),
            (Subject::Schedule(name), _) => self.apply_schedule(name, event),
            (Subject::Purse, EventBody::TurnReserved(reserved)) => {
                self.end_problem(&event.subject)?;
                self.reserve(reserved, event.at)
            }
            (Subject::Notice(id), body) => self.apply_notice(seq, id, body),
            (Subject::Fleet, _) => self.apply_fleet(event),
            (_, EventBody::CursorMoved(cursor)) => self.move_cursor(cursor),
            (_, EventBody::HookSwitched(switched)) => self.switch_hook(switched),
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

    pub(super) fn count_run(&self, ran: &HookRan) -> Result<()> {
        let is_block = ran.status.known() == Some(HookStatus::Blocked);
        let is_failure = !is_block
            && !matches!(ran.status.known(), Some(HookStatus::Passed | HookStatus::Skipped));
        let count = "INSERT INTO hook_runs VALUES (?1, 1, ?2, ?3) ON CONFLICT DO UPDATE
            SET runs = runs + 1, failures = failures + ?2, blocks = blocks + ?3";
        self.run(count, params![ran.hook_name, is_failure, is_block])?;
        let time =
            "INSERT INTO hook_time VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET runs = runs + 1";
        self.run(time, params![ran.hook_name, size_of(ran.duration_ms)])?;
        Ok(())
    }

    /// The version of a subject in the table of subjects; 0 for one that is not there.
    fn version_of(&self, name: &str) -> Result<Seq> {
        let select = "SELECT version FROM subject WHERE name = ?1";
        let version =
            self.conn.prepare_cached(select)?.query_row([name], |row| row.get::<_, i64>(0));
        Ok(version.optional()?.unwrap_or(0) as Seq)
    }

    /// Forgets the task whose edges came last, once its row has them.
    pub(super) fn cool(&self) -> Result<()> {
        self.settle()?;
        self.hot.take();
        Ok(())
    }

    pub(super) fn raise_version(&self, subject: &Subject, seq: Seq) -> Result<Seq> {
        let name = subject.to_string();
        let prev = self.version_of(&name)?;
        self.run("INSERT OR REPLACE INTO subject VALUES (?1, ?2)", params![name, seq as i64])?;
        Ok(prev)
    }

    fn move_cursor(&mut self, cursor: &CursorMoved) -> Result<()> {
        let done = match cursor.part {
            Some(_) => cursor.seq.saturating_sub(1),
            None => cursor.seq,
        };
        self.run("DELETE FROM due WHERE seq <= ?1", [done as i64])?;
        self.totals.cursor = cursor.clone();
        self.forget_cascades()
    }

    /// Counts are kept for as long as anything is left to do.
    fn forget_cascades(&self) -> Result<()> {
        let forget = "DELETE FROM cascade WHERE NOT EXISTS (SELECT 1 FROM due)
            AND NOT EXISTS (SELECT 1 FROM run)";
        self.run(forget, []).map(drop)
    }

    fn switch_hook(&self, switched: &HookSwitched) -> Result<()> {
        let insert = "INSERT OR REPLACE INTO hook_switch VALUES (?1, ?2)";
        self.run(insert, params![switched.name, switched.enabled])?;
        Ok(())
    }

    fn insert_run(&self, event: &Event, requested: &WorkflowRequested) -> Result<()> {
        let insert = "INSERT INTO run(id, workflow, next_step, steps, cause)
            VALUES (?1, ?2, 0, ?3, ?4)";
        let (steps, cause) = (to_json(&requested.steps), event.cause.as_ref().map(to_json));
        self.run(insert, params![requested.run.0, requested.workflow, steps, cause])?;
        Ok(())
    }

    fn end_run(&self, run: &RunId) -> Result<()> {
        self.run("DELETE FROM run WHERE id = ?1", [&run.0])?;
        self.forget_cascades()
    }
}

fn never_created(seq: Seq, id: &TaskId) -> LogError {
    LogError::damaged(seq, format!("task `{id}` was never created"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partial index with IN in its condition would make the change of a state build two tables.
    #[test]
    fn a_change_of_state_builds_no_table() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let mut explain = conn.prepare(&format!("EXPLAIN {SET_STATE}")).unwrap();
        let steps = explain.query_map([0, 0, 0], |row| row.get::<_, String>(1)).unwrap();
        let steps: Vec<String> = steps.map(rusqlite::Result::unwrap).collect();
        assert!(steps.contains(&"IdxInsert".to_owned()), "{steps:?}");
        assert!(!steps.contains(&"OpenEphemeral".to_owned()), "{steps:?}");
    }
}
