//! Tasks as rows of the view.

use hookloop_core::id::TaskId;
use hookloop_core::task::{Priority, Task, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::tables::{RowResult, StoredState};
use super::totals::View;
use crate::log::{LogError, Seq};

/// A task and its position in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its place in the order of creation, equal in every view of the same log.
    pub num: u64,
    pub version: Seq,
    pub task: Task,
}

/// A filter of tasks. Lists are newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub state: Option<TaskState>,
    pub label: Option<String>,
    pub kind: Option<String>,
    /// Text in the id, the goal, the description or a label. ASCII letters match in both cases.
    pub text: Option<String>,
    /// Only tasks that were added before the task with this number.
    pub before: Option<u64>,
    pub limit: Option<usize>,
}

impl TaskFilter {
    fn admits(&self, task: &Task) -> bool {
        self.state.is_none_or(|state| state == task.state)
            && self.label.as_deref().is_none_or(|label| task.spec.has_label(label))
            && self.kind.as_deref().is_none_or(|kind| task.spec.kind.as_deref() == Some(kind))
            && self.text.as_deref().is_none_or(|text| has_text(task, &text.to_ascii_lowercase()))
    }

    /// Returns patterns that a row must match if its task contains the text.
    ///
    /// The task itself is checked after it is read.
    fn sql_text(&self) -> Option<[String; 2]> {
        let text = self.text.as_deref()?;
        // A string always encodes.
        let as_json = serde_json::to_string(text).unwrap_or_default();
        Some([containing(text), containing(as_json.trim_matches('"'))])
    }

    /// Returns the parts of the list. Each has an index in the order of the list, or matches most tasks.
    fn parts(&self) -> Vec<ListPart> {
        let of = |condition| ListPart { condition, priority: None };
        match self.state {
            None => vec![of("state < 5")],
            Some(TaskState::Created) => vec![of("state = 0 AND open_deps > 0"), of(TIMED)],
            Some(TaskState::Ready) => {
                let of_priority =
                    |priority| ListPart { condition: UNTIMED, priority: Some(priority) };
                (0..=Priority::MAX).map(of_priority).chain([of(TIMED)]).collect()
            }
            Some(TaskState::Active) => vec![of("state = 1")],
            Some(TaskState::Submitted) => vec![of("state = 2")],
            Some(TaskState::Completed) => vec![of("state = 3")],
            Some(TaskState::Blocked) => vec![of("state = 4")],
        }
    }

    /// Returns the query of a part, newest first, and its values.
    fn query(&self, part: &ListPart) -> (String, Vec<Value>) {
        let before = self.before.map_or(i64::MAX, |num| i64::try_from(num).unwrap_or(i64::MAX));
        // Without the hint, SQLite would read all tasks in the order of the list, to sort nothing.
        let hint = if part.condition == TIMED { "INDEXED BY task_time" } else { "" };
        let condition = part.condition;
        let mut sql = format!("SELECT {COLUMNS} FROM task {hint} WHERE {condition} AND num < ?");
        let mut values = vec![Value::from(before)];
        if let Some(priority) = part.priority {
            sql.push_str(" AND priority = ?");
            values.push(Value::from(priority));
        }
        if let Some([id, spec]) = self.sql_text() {
            sql.push_str(" AND (id LIKE ? ESCAPE '\\' OR spec LIKE ? ESCAPE '\\')");
            values.extend([Value::from(id), Value::from(spec)]);
        }
        sql.push_str(" ORDER BY num DESC");
        (sql, values)
    }
}

/// Tasks of a list that one query finds.
struct ListPart {
    condition: &'static str,
    /// The index of ready tasks is by priority.
    priority: Option<u8>,
}

/// Whether a task contains a lower-case text.
fn has_text(task: &Task, text: &str) -> bool {
    let TaskSpec { goal, description, labels, .. } = &task.spec;
    let mut places =
        [task.id.as_str(), goal, description].into_iter().chain(labels.iter().map(String::as_str));
    places.any(|place| place.to_ascii_lowercase().contains(text))
}

/// Returns a pattern of `LIKE … ESCAPE '\\'` that matches values with a text.
pub(super) fn containing(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}

/// Conditions for tasks without open dependencies: without and with a start time.
pub(super) const UNTIMED: &str = "state = 0 AND open_deps = 0 AND not_before IS NULL";
pub(super) const TIMED: &str = "state = 0 AND open_deps = 0 AND not_before IS NOT NULL";

pub(super) const COLUMNS: &str = "num, id, version, state, open_deps, announced, created_at,
    started_at, completed_at, spec, detail, epoch, claim";

const TASK_BY_NUM: &str = "SELECT num, id, version, state, open_deps, announced, created_at,
    started_at, completed_at, spec, detail, epoch, claim FROM task WHERE num = ?1";

const TASK_BY_ID: &str = "SELECT num, id, version, state, open_deps, announced, created_at,
    started_at, completed_at, spec, detail, epoch, claim FROM task WHERE id = ?1";

/// Reads a task as it is at `now`. Returns `None` for a deleted one.
fn read_task(row: &Row<'_>, now: Option<Timestamp>) -> RowResult<Option<TaskRow>> {
    let (state, open_dependencies) = (StoredState::read(row.get(3)?), row.get(4)?);
    let Some(state) = state.shown(open_dependencies) else { return Ok(None) };
    let version = row.get::<_, i64>(2)? as Seq;
    let damaged = |error| LogError::damaged(version, format!("in the view: {error}"));
    let json = |text: &str| serde_json::from_str::<TaskSpec>(text).map_err(damaged);
    let spec = json(row.get_ref(9)?.as_str().map_err(rusqlite::Error::from)?)?;
    let is_early = spec.not_before.is_some_and(|time| now.is_some_and(|now| now < time));
    let state = match state {
        TaskState::Ready if is_early => TaskState::Created,
        state => state,
    };
    let detail: Option<String> = row.get(10)?;
    let obstacle = match (&detail, state) {
        (Some(text), TaskState::Blocked) => Some(serde_json::from_str(text).map_err(damaged)?),
        _ => None,
    };
    let outcome = match (&detail, state) {
        (Some(text), TaskState::Completed) => Some(serde_json::from_str(text).map_err(damaged)?),
        _ => None,
    };
    let claim = match row.get_ref(12)?.as_str_or_null().map_err(rusqlite::Error::from)? {
        Some(text) => Some(serde_json::from_str(text).map_err(damaged)?),
        None => None,
    };
    let id: String = row.get(1)?;
    let task = Task {
        id: id.try_into().map_err(|error| LogError::damaged(version, error))?,
        spec,
        state,
        open_dependencies,
        satisfaction_announced: row.get(5)?,
        epoch: row.get::<_, i64>(11)? as u64,
        claim,
        created_at: Timestamp(row.get(6)?),
        started_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        completed_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
        obstacle,
        outcome,
    };
    Ok(Some(TaskRow { num: row.get::<_, i64>(0)? as u64, version, task }))
}

/// The meaning of a task id in the view.
#[derive(Clone, Debug)]
pub enum KnownId {
    Task(Box<TaskRow>),
    Deleted,
    Nothing,
}

impl View<'_> {
    pub fn task(&self, id: &TaskId) -> RowResult<Option<TaskRow>> {
        Ok(match self.known(id)? {
            KnownId::Task(row) => Some(*row),
            KnownId::Deleted | KnownId::Nothing => None,
        })
    }

    pub fn known(&self, id: &TaskId) -> RowResult<KnownId> {
        let mut select = self.conn.prepare_cached(TASK_BY_ID)?;
        let mut rows = select.query([id.as_str()])?;
        match rows.next()? {
            None => Ok(KnownId::Nothing),
            Some(row) => Ok(match read_task(row, self.now)? {
                Some(row) => KnownId::Task(Box::new(row)),
                None => KnownId::Deleted,
            }),
        }
    }

    /// Returns ids that start with `prefix`, at most `limit`. Two show that it is not unique.
    pub fn ids_starting_with(&self, prefix: &str, limit: usize) -> RowResult<Vec<TaskId>> {
        let select =
            "SELECT id FROM task WHERE id >= ?1 AND id < ?2 AND state < 5 ORDER BY id LIMIT ?3";
        let end = format!("{prefix}\u{7f}");
        let mut select = self.conn.prepare_cached(select)?;
        let ids =
            select.query_map(params![prefix, end, limit as i64], |row| row.get::<_, String>(0))?;
        ids.map(|id| parse_id(id?)).collect()
    }

    /// Returns the ids right before and after `id`, which a short form must differ from.
    pub fn neighbours(&self, id: &TaskId) -> RowResult<[Option<String>; 2]> {
        let before = "SELECT id FROM task WHERE id < ?1 ORDER BY id DESC LIMIT 1";
        let after = "SELECT id FROM task WHERE id > ?1 ORDER BY id LIMIT 1";
        let one = |sql: &str| -> RowResult<Option<String>> {
            let mut select = self.conn.prepare_cached(sql)?;
            Ok(select.query_row([id.as_str()], |row| row.get(0)).optional()?)
        };
        Ok([one(before)?, one(after)?])
    }

    /// Returns the tasks that match the filter, newest first.
    pub fn list(&self, filter: &TaskFilter) -> RowResult<Vec<TaskRow>> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        for part in filter.parts() {
            let (sql, values) = filter.query(&part);
            let admits = |task: &Task| filter.admits(task);
            rows.extend(self.tasks(&sql, params_from_iter(values), admits, limit)?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.num));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Calls `each` for every task, in the order of creation, until it returns `false`.
    pub fn each_task(&self, mut each: impl FnMut(TaskRow) -> bool) -> RowResult<()> {
        let mut select = self
            .conn
            .prepare(&format!("SELECT {COLUMNS} FROM task WHERE state < 5 ORDER BY num"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(row) = read_task(row, self.now)?
                && !each(row)
            {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn task_by_num(&self, num: u64) -> RowResult<Option<TaskRow>> {
        Ok(self.tasks(TASK_BY_NUM, [num as i64], |_| true, 1)?.pop())
    }

    pub(super) fn tasks(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        admits: impl Fn(&Task) -> bool,
        limit: usize,
    ) -> RowResult<Vec<TaskRow>> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query(values)?;
        let mut tasks = Vec::new();
        while tasks.len() < limit
            && let Some(row) = rows.next()?
        {
            tasks.extend(read_task(row, self.now)?.filter(|row| admits(&row.task)));
        }
        Ok(tasks)
    }

    /// Returns the number of a task that is not deleted.
    pub(super) fn num(&self, id: &TaskId) -> RowResult<Option<u64>> {
        let select = "SELECT num FROM task WHERE id = ?1 AND state < 5";
        let mut select = self.conn.prepare_cached(select)?;
        let num = select.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?;
        Ok(num.map(|num| num as u64))
    }

    pub fn id_of(&self, num: u64) -> RowResult<TaskId> {
        let mut select = self.conn.prepare_cached("SELECT id FROM task WHERE num = ?1")?;
        parse_id(select.query_row([num as i64], |row| row.get(0))?)
    }
}

pub(super) fn parse_id(text: String) -> RowResult<TaskId> {
    text.try_into().map_err(|error| LogError::damaged(0, format!("in the view: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queries of a list read only the tasks that they return, however many there are.
    #[test]
    fn list_queries_need_no_sort() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let plan = |filter: &TaskFilter, part: &ListPart| -> Vec<String> {
            let (sql, values) = filter.query(part);
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = explain.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
            steps.map(rusqlite::Result::unwrap).collect()
        };
        let ready = TaskFilter { state: Some(TaskState::Ready), ..TaskFilter::default() };
        let untimed = ready.parts().into_iter().filter(|part| part.condition == UNTIMED);
        let plans: Vec<_> = untimed.map(|part| plan(&ready, &part)).collect();
        assert_eq!(plans.len(), usize::from(Priority::MAX) + 1);
        for plan in plans {
            assert_eq!(plan, ["SEARCH task USING INDEX task_ready (priority=? AND num<?)"]);
        }
        for part in ready.parts().iter().filter(|part| part.condition == TIMED) {
            let plan = plan(&ready, part);
            assert!(plan[0].contains("USING INDEX task_time"), "{plan:?}");
        }
        for state in [None, Some(TaskState::Active), Some(TaskState::Completed)] {
            let filter = TaskFilter { state, ..TaskFilter::default() };
            for part in filter.parts() {
                let plan = plan(&filter, &part);
                assert!(plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{plan:?}");
            }
        }
    }
}
