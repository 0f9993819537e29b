//! Applies events of a task to the tables.

use hookloop_core::claim::ReleaseReason;
use hookloop_core::event::{Event, EventBody, RemovedDependency, TaskDependency};
use hookloop_core::id::TaskId;
use hookloop_core::task::TaskSpec;
use rusqlite::params;

use super::fold::{HotTask, TaskNode, ViewFold};
use super::tables::{RowResult, StoredState, to_json};
use crate::log::{LogError, Seq};

const SET_STATE: &str = "UPDATE task SET version = ?2, state = ?3 WHERE num = ?1";

impl ViewFold<'_> {
    pub(super) fn insert_task(
        &mut self,
        seq: Seq,
        id: &TaskId,
        spec: &TaskSpec,
        event: &Event,
    ) -> RowResult<Seq> {
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
        self.totals.add(StoredState::Open.shown(0), 1);
        let num = self.conn.last_insert_rowid();
        let node = TaskNode { num, version: seq, state: StoredState::Open, open_deps: 0 };
        self.hot.replace(Some(HotTask { id: id.clone(), node, changed: false }));
        // Only a foreign message can be on the subject of a task before the task is created.
        if self.totals.quarantined > 0 {
            return self.version_of(id.as_str());
        }
        Ok(0)
    }

    pub(super) fn add_edge(
        &mut self,
        seq: Seq,
        id: &TaskId,
        edge: &TaskDependency,
    ) -> RowResult<Seq> {
        let mut hot = match self.hot.take() {
            Some(hot) if hot.id == *id => hot,
            other => {
                self.hot.replace(other);
                self.settle()?;
                let node = self.node(id)?.ok_or_else(|| never_created(seq, id))?;
                HotTask { id: id.clone(), node, changed: false }
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

    /// Adds an edge. Returns whether it is new and leads to a task that is not completed.
    ///
    /// An edge to a deleted task is left out.
    fn insert_edge(&self, node: TaskNode, edge: &TaskDependency) -> RowResult<bool> {
        let needs = self.node(&edge.to_id)?.filter(|needs| needs.state != StoredState::Deleted);
        let Some(needs) = needs else { return Ok(false) };
        let added =
            self.run("INSERT OR IGNORE INTO edge VALUES (?1, ?2)", [node.num, needs.num])?;
        Ok(added == 1 && needs.state != StoredState::Completed)
    }

    pub(super) fn change_task(&mut self, seq: Seq, id: &TaskId, event: &Event) -> RowResult<Seq> {
        self.settle()?;
        self.hot.take();
        let node = self.node(id)?.ok_or_else(|| never_created(seq, id))?;
        let num = node.num;
        match &event.body {
            EventBody::TaskStarted(started) => {
                let open_deps = node.open_deps;
                self.adopt(node)?;
                self.totals
                    .moved(node.state.shown(open_deps), StoredState::Active.shown(open_deps));
                let update = "UPDATE task SET version = ?2, state = 1, started_at = ?3, claim = ?4,
                    epoch = coalesce(?5, epoch) WHERE num = ?1";
                let claim = started.claim.as_ref();
                let epoch = claim.map(|claim| claim.epoch as i64);
                let (seq, claim) = (seq as i64, claim.map(to_json));
                self.run(update, params![num, seq, event.at.0, claim, epoch])?;
            }
            EventBody::TaskReleased(released) => {
                self.set_state(seq, node, StoredState::Open)?;
                // A task without a claim has no start time.
                let update = "UPDATE task SET started_at = NULL, claim = NULL WHERE num = ?1";
                self.run(update, [num])?;
                if released.reason == ReleaseReason::Expired {
                    self.run("INSERT OR IGNORE INTO orphan VALUES (?1)", [num])?;
                }
            }
            EventBody::TaskSubmitted(submitted) => {
                self.set_state(seq, node, StoredState::Submitted)?;
                if submitted.submission.is_some() {
                    self.run("UPDATE task SET claim = NULL WHERE num = ?1", [num])?;
                }
            }
            EventBody::TaskReturned(_) => {
                self.set_state(seq, node, StoredState::Open)?;
                self.run("UPDATE task SET started_at = NULL WHERE num = ?1", [num])?;
            }
            EventBody::TaskCompleted(outcome) => {
                self.adopt(node)?;
                self.totals
                    .moved(node.state.shown(node.open_deps), StoredState::Completed.shown(0));
                let update =
                    "UPDATE task SET version = ?2, state = 3, completed_at = ?3, detail = ?4,
                    claim = NULL WHERE num = ?1";
                self.run(update, params![num, seq as i64, event.at.0, to_json(outcome)])?;
                self.release_dependents(node)?;
            }
            EventBody::TaskBlocked(obstacle) => {
                self.set_state(seq, node, StoredState::Blocked)?;
                let update = "UPDATE task SET detail = ?2, claim = NULL WHERE num = ?1";
                self.run(update, params![num, to_json(obstacle)])?;
            }
            EventBody::TaskUnblocked(_) => {
                self.set_state(seq, node, StoredState::Open)?;
                self.run("UPDATE task SET detail = NULL WHERE num = ?1", [num])?;
            }
            EventBody::TaskApproved(_) => {
                self.set_state(seq, node, StoredState::Submitted)?;
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
        let is_waiting = matches!(node.state, StoredState::Blocked | StoredState::Submitted);
        self.trouble_task(seq, event, is_waiting)?;
        Ok(node.version)
    }

    fn raise(&self, seq: Seq, num: i64) -> RowResult<()> {
        self.run("UPDATE task SET version = ?2 WHERE num = ?1", params![num, seq as i64]).map(drop)
    }

    fn set_state(&mut self, seq: Seq, node: TaskNode, state: StoredState) -> RowResult<()> {
        self.adopt(node)?;
        self.totals.moved(node.state.shown(node.open_deps), state.shown(node.open_deps));
        self.run(SET_STATE, params![node.num, seq as i64, state as i64])?;
        Ok(())
    }

    /// Removes the precedence of a task whose claim expired, when its state changes.
    fn adopt(&self, node: TaskNode) -> RowResult<()> {
        match node.state {
            StoredState::Open => {
                self.run("DELETE FROM orphan WHERE task = ?1", [node.num]).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Decrements the open dependencies of every dependent of `node`, which was open until now.
    fn release_dependents(&mut self, node: TaskNode) -> RowResult<()> {
        if node.state == StoredState::Completed {
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
            let state = StoredState::read(state);
            if open_deps == 1 {
                self.totals.moved(state.shown(1), state.shown(0));
            }
        }
        Ok(())
    }

    fn delete(&mut self, seq: Seq, node: TaskNode) -> RowResult<()> {
        self.release_dependents(node)?;
        self.set_state(seq, node, StoredState::Deleted)?;
        self.run("UPDATE task SET claim = NULL WHERE num = ?1 AND claim IS NOT NULL", [node.num])?;
        self.run("DELETE FROM edge WHERE task = ?1", [node.num])?;
        let to = "DELETE FROM edge WHERE needs = ?1
            AND task IN (SELECT task FROM edge WHERE needs = ?1)";
        self.run(to, [node.num])?;
        Ok(())
    }

    fn remove_edge(&mut self, seq: Seq, node: TaskNode, edge: &RemovedDependency) -> RowResult<()> {
        let mut after = TaskNode { version: seq, ..node };
        if let Some(needs) = self.node(&edge.to_id)? {
            let delete = "DELETE FROM edge WHERE task = ?1 AND needs = ?2";
            let removed = self.run(delete, [node.num, needs.num])?;
            if removed == 1 && needs.state != StoredState::Completed {
                after.open_deps = node.open_deps.saturating_sub(1);
            }
        }
        self.totals.moved(node.state.shown(node.open_deps), node.state.shown(after.open_deps));
        self.write_open_deps(after)
    }
}

fn never_created(seq: Seq, id: &TaskId) -> LogError {
    LogError::damaged(seq, format!("task `{id}` was never created"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partial index with IN in its condition would make each state change build two tables.
    #[test]
    fn a_task_state_change_builds_no_temporary_table() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let mut explain = conn.prepare(&format!("EXPLAIN {SET_STATE}")).unwrap();
        let steps = explain.query_map([0, 0, 0], |row| row.get::<_, String>(1)).unwrap();
        let steps: Vec<String> = steps.map(rusqlite::Result::unwrap).collect();
        assert!(steps.contains(&"IdxInsert".to_owned()), "{steps:?}");
        assert!(!steps.contains(&"OpenEphemeral".to_owned()), "{steps:?}");
    }
}
