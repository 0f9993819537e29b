//! What is read from the view.

use hookloop_core::decide::KnownFacts;
use hookloop_core::id::{EventId, RunId, Subject, TaskId};
use hookloop_core::task::{Task, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_core::workflow::WorkflowRun;
use hookloop_core::{command::Command, graph};
use rusqlite::{OptionalExtension, Row, params};

use super::{Result, Stored, View};
use crate::log::{LogError, Seq};

/// A task and where the view keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its place in the order of creation, the same in every view of the same log.
    pub num: u64,
    pub version: Seq,
    pub task: Task,
}

/// Which tasks a list holds; newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub state: Option<TaskState>,
    pub label: Option<String>,
    pub kind: Option<String>,
    /// Somewhere in the id, the goal, the description or a label; of what letters are in both cases, those of ASCII.
    pub text: Option<String>,
    /// Only those that were added before the task of this number.
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

    /// What a task's row has to hold so that its text may: which it does is told when it is read.
    fn sql_text(&self) -> Option<[String; 2]> {
        let text = self.text.as_deref()?;
        let as_json = serde_json::to_string(text).unwrap_or_default();
        Some([containing(text), containing(as_json.trim_matches('"'))])
    }

    /// Where the tasks are; each has an index, or is most of them.
    fn sql_conditions(&self) -> &'static [&'static str] {
        match self.state {
            None => &["state < 5"],
            Some(TaskState::Created) => &["state = 0 AND open_deps > 0", TIMED],
            Some(TaskState::Ready) => &[UNTIMED, TIMED],
            Some(TaskState::Active) => &["state = 1"],
            Some(TaskState::Submitted) => &["state = 2"],
            Some(TaskState::Completed) => &["state = 3"],
            Some(TaskState::Blocked) => &["state = 4"],
        }
    }
}

/// Whether a text that is in lower case is in a task.
fn has_text(task: &Task, text: &str) -> bool {
    let TaskSpec { goal, description, labels, .. } = &task.spec;
    let mut places =
        [task.id.as_str(), goal, description].into_iter().chain(labels.iter().map(String::as_str));
    places.any(|place| place.to_ascii_lowercase().contains(text))
}

/// A pattern of `LIKE … ESCAPE '\\'` for what contains a text.
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

/// Tasks that wait for no dependency: those that never waited for a time, and the others.
pub(super) const UNTIMED: &str = "state = 0 AND open_deps = 0 AND not_before IS NULL";
pub(super) const TIMED: &str = "state = 0 AND open_deps = 0 AND not_before IS NOT NULL";

pub(super) const COLUMNS: &str = "num, id, version, state, open_deps, announced, created_at,
    started_at, completed_at, spec, detail, epoch, claim";

const TASK_BY_ID: &str = "SELECT num, id, version, state, open_deps, announced, created_at,
    started_at, completed_at, spec, detail, epoch, claim FROM task WHERE id = ?1";

/// Steps from the tables to a task as it is at `now`; `None` for one that is deleted.
fn read_task(row: &Row<'_>, now: Option<Timestamp>) -> Result<Option<TaskRow>> {
    let (state, open_dependencies) = (Stored::read(row.get(3)?), row.get(4)?);
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

/// What an id in the view belongs to.
#[derive(Clone, Debug)]
pub enum Known {
    Task(Box<TaskRow>),
    Deleted,
    Nothing,
}

impl View<'_> {
    pub fn task(&self, id: &TaskId) -> Result<Option<TaskRow>> {
        Ok(match self.known(id)? {
            Known::Task(row) => Some(*row),
            Known::Deleted | Known::Nothing => None,
        })
    }

    pub fn known(&self, id: &TaskId) -> Result<Known> {
        let mut select = self.conn.prepare_cached(TASK_BY_ID)?;
        let mut rows = select.query([id.as_str()])?;
        match rows.next()? {
            None => Ok(Known::Nothing),
            Some(row) => Ok(match read_task(row, self.now)? {
                Some(row) => Known::Task(Box::new(row)),
                None => Known::Deleted,
            }),
        }
    }

    /// Ids that start with `prefix`, two at most: enough to see whether it is unique.
    pub fn ids_starting_with(&self, prefix: &str, limit: usize) -> Result<Vec<TaskId>> {
        let select =
            "SELECT id FROM task WHERE id >= ?1 AND id < ?2 AND state < 5 ORDER BY id LIMIT ?3";
        let end = format!("{prefix}\u{7f}");
        let mut select = self.conn.prepare_cached(select)?;
        let ids =
            select.query_map(params![prefix, end, limit as i64], |row| row.get::<_, String>(0))?;
        ids.map(|id| parse_id(id?)).collect()
    }

    /// The ids right before and after `id`: what a short form must be told apart from.
    pub fn neighbours(&self, id: &TaskId) -> Result<[Option<String>; 2]> {
        let before = "SELECT id FROM task WHERE id < ?1 ORDER BY id DESC LIMIT 1";
        let after = "SELECT id FROM task WHERE id > ?1 ORDER BY id LIMIT 1";
        let one = |sql: &str| -> Result<Option<String>> {
            let mut select = self.conn.prepare_cached(sql)?;
            Ok(select.query_row([id.as_str()], |row| row.get(0)).optional()?)
        };
        Ok([one(before)?, one(after)?])
    }

    /// Tasks that pass the filter, newest first.
    pub fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRow>> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let before = filter.before.map_or(i64::MAX, |num| i64::try_from(num).unwrap_or(i64::MAX));
        let mut rows = Vec::new();
        for condition in filter.sql_conditions() {
            let sql = format!("SELECT {COLUMNS} FROM task WHERE {condition} AND num < ?1");
            let admits = |task: &Task| filter.admits(task);
            rows.extend(match filter.sql_text() {
                None => self.tasks(&format!("{sql} ORDER BY num DESC"), [before], admits, limit)?,
                Some([id, spec]) => {
                    let like = "(id LIKE ?2 ESCAPE '\\' OR spec LIKE ?3 ESCAPE '\\')";
                    let sql = format!("{sql} AND {like} ORDER BY num DESC");
                    self.tasks(&sql, params![before, id, spec], admits, limit)?
                }
            });
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.num));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Calls `each` for every task, in the order of creation, until it answers `false`.
    pub fn each_task(&self, mut each: impl FnMut(TaskRow) -> bool) -> Result<()> {
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

    pub(super) fn tasks(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        admits: impl Fn(&Task) -> bool,
        limit: usize,
    ) -> Result<Vec<TaskRow>> {
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

    /// What `id` waits or waited for, oldest first.
    pub fn dependencies(&self, id: &TaskId) -> Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM task WHERE num IN
             (SELECT needs FROM edge WHERE task = (SELECT num FROM task WHERE id = ?1)) ORDER BY num"
        );
        self.tasks(&sql, [id.as_str()], |_| true, usize::MAX)
    }

    /// Dependents of `id` after number `after`, in the order of creation: the first `limit`.
    pub fn dependents(&self, id: &TaskId, after: u64, limit: usize) -> Result<Vec<TaskRow>> {
        const DEPENDENTS: &str = "SELECT t.num, t.id, t.version, t.state, t.open_deps, t.announced,
            t.created_at, t.started_at, t.completed_at, t.spec, t.detail, t.epoch,
            t.claim FROM edge JOIN task t ON t.num = edge.task
            WHERE needs = (SELECT num FROM task WHERE id = ?1) AND edge.task > ?2
            ORDER BY edge.task LIMIT ?3";
        let values = params![id.as_str(), after as i64, limit as i64];
        self.tasks(DEPENDENTS, values, |_| true, usize::MAX)
    }

    /// How many tasks depend on `id`, counted up to `limit`.
    pub fn count_dependents(&self, id: &TaskId, limit: usize) -> Result<usize> {
        let count = "SELECT count(*) FROM (SELECT 1 FROM edge
            WHERE needs = (SELECT num FROM task WHERE id = ?1) LIMIT ?2)";
        let mut count = self.conn.prepare_cached(count)?;
        Ok(count.query_row(params![id.as_str(), limit as i64], |row| row.get::<_, i64>(0))?
            as usize)
    }

    /// Tasks whose `spawned_by` edge leads to `id`.
    pub fn spawned(&self, id: &TaskId) -> Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM task WHERE parent = (SELECT num FROM task WHERE id = ?1) ORDER BY num"
        );
        self.tasks(&sql, [id.as_str()], |_| true, usize::MAX)
    }

    /// Whether a blocked task is among the dependencies of task `num`.
    pub fn waits_for_blocked(&self, num: u64) -> Result<bool> {
        let select = "SELECT 1 FROM edge JOIN task ON task.num = edge.needs
            WHERE edge.task = ?1 AND task.state = 4";
        Ok(self.conn.prepare_cached(select)?.exists([num as i64])?)
    }

    /// Waiting tasks that have a blocked task among their dependencies.
    pub fn count_stuck(&self) -> Result<u64> {
        let count = "SELECT count(DISTINCT waiting.num) FROM task blocked
            JOIN edge ON edge.needs = blocked.num JOIN task waiting ON waiting.num = edge.task
            WHERE blocked.state = 4 AND waiting.state = 0";
        Ok(self.conn.prepare_cached(count)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Every edge as (task, dependency) numbers, in order.
    pub fn each_edge(&self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        let mut select =
            self.conn.prepare_cached("SELECT task, needs FROM edge ORDER BY task, needs")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        }
        Ok(())
    }

    /// The dependencies of task `num`, by number.
    pub fn needs_of(&self, num: u64) -> Result<Vec<u64>> {
        let mut out = Vec::new();
        self.numbers("SELECT needs FROM edge WHERE task = ?1 ORDER BY needs", num, &mut out)?;
        Ok(out)
    }

    fn numbers(&self, sql: &'static str, num: u64, out: &mut Vec<u64>) -> Result<()> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([num as i64])?;
        while let Some(row) = rows.next()? {
            out.push(row.get::<_, i64>(0)? as u64);
        }
        Ok(())
    }

    /// What decides `command`. `batch` bounds the dependents that a deletion deals with at once.
    pub fn facts(&self, command: &Command, batch: usize) -> Result<KnownFacts> {
        let (id, named): (_, &[TaskId]) = match command {
            Command::AddTask { id, depends_on, .. } => (id, depends_on),
            Command::StartTask { id, .. }
            | Command::ClaimTask { id, .. }
            | Command::TakeOverTask { id, .. }
            | Command::ReleaseTask { id, .. }
            | Command::SubmitTask { id, .. }
            | Command::PlanPush { id, .. }
            | Command::RecordDelivery { id, .. }
            | Command::ApproveTask { id, .. }
            | Command::ReturnTask { id, .. }
            | Command::CompleteTask { id, .. }
            | Command::BlockTask { id, .. }
            | Command::UnblockTask { id }
            | Command::DeleteTask { id, .. }
            | Command::RemarkTask { id, .. }
            | Command::ConfirmReady { id } => (id, &[]),
            Command::AddDependency { task, on } | Command::RemoveDependency { task, on } => {
                (task, std::slice::from_ref(on))
            }
            Command::Schedule { name, ask } => return self.schedule_facts(name, ask),
            Command::SwitchHook { .. } => return Ok(KnownFacts::default()),
        };
        let mut facts = KnownFacts::default();
        let mut row = None;
        match self.known(id)? {
            Known::Task(known) => row = Some(known),
            Known::Deleted => facts.deleted = true,
            Known::Nothing => {}
        }
        let mut nums = Vec::new();
        let parent = match command {
            Command::AddTask { spec, .. } => spec.parent_task_id.as_ref(),
            _ => None,
        };
        for other in named.iter().chain(parent) {
            match self.num(other)? {
                Some(num) => nums.push(num),
                None => facts.missing.push(other.clone()),
            }
        }
        if let Some(row) = row {
            match (command, nums.first()) {
                (Command::AddDependency { .. }, Some(&on)) => {
                    facts.edge = self.has_edge(row.num, on)?;
                    facts.path_back = self.path(on, row.num)?;
                }
                (Command::RemoveDependency { .. }, Some(&on)) => {
                    facts.edge = self.has_edge(row.num, on)?;
                }
                (Command::RemarkTask { .. }, _) => {
                    facts.stop_hooks = self.count_stop_hooks(row.num)?
                }
                (
                    Command::RecordDelivery { .. }
                    | Command::ReturnTask { .. }
                    | Command::ApproveTask { .. },
                    _,
                ) => {
                    let delivery = self.delivery_of(row.num as i64)?.unwrap_or_default().0;
                    facts.submission_stands = delivery.stands;
                    facts.submitted_head = delivery.submission.map(|submission| submission.head);
                }
                (Command::DeleteTask { .. }, _) => self.deletion_facts(&row, batch, &mut facts)?,
                _ => {}
            }
            facts.task = Some(row.task);
        }
        Ok(facts)
    }

    fn deletion_facts(&self, row: &TaskRow, batch: usize, facts: &mut KnownFacts) -> Result<()> {
        let count = "SELECT (SELECT count(*) FROM edge WHERE task = ?1) +
            (SELECT count(*) FROM edge WHERE needs = ?1)";
        facts.edges =
            self.conn.prepare_cached(count)?.query_row([row.num as i64], |row| row.get(0))?;
        if row.task.state == TaskState::Completed {
            return Ok(());
        }
        let waiting = "SELECT id FROM task WHERE state = 0 AND num IN
            (SELECT task FROM edge WHERE needs = ?1) ORDER BY num LIMIT ?2";
        let mut select = self.conn.prepare_cached(waiting)?;
        let ids = select
            .query_map(params![row.num as i64, batch as i64 + 1], |row| row.get::<_, String>(0))?;
        facts.waiting = ids.map(|id| parse_id(id?)).collect::<Result<_>>()?;
        facts.more_waiting = facts.waiting.len() > batch;
        facts.waiting.truncate(batch);
        Ok(())
    }

    /// The number of a task that is not deleted.
    pub(super) fn num(&self, id: &TaskId) -> Result<Option<u64>> {
        let select = "SELECT num FROM task WHERE id = ?1 AND state < 5";
        let mut select = self.conn.prepare_cached(select)?;
        let num = select.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?;
        Ok(num.map(|num| num as u64))
    }

    pub fn id_of(&self, num: u64) -> Result<TaskId> {
        let mut select = self.conn.prepare_cached("SELECT id FROM task WHERE num = ?1")?;
        parse_id(select.query_row([num as i64], |row| row.get(0))?)
    }

    fn has_edge(&self, task: u64, needs: u64) -> Result<bool> {
        let mut select =
            self.conn.prepare_cached("SELECT 1 FROM edge WHERE task = ?1 AND needs = ?2")?;
        Ok(select.exists([task as i64, needs as i64])?)
    }

    fn path(&self, from: u64, to: u64) -> Result<Option<Vec<TaskId>>> {
        let needs = "SELECT needs FROM edge WHERE task = ?1";
        let needed_by = "SELECT task FROM edge WHERE needs = ?1";
        let path = graph::path(
            from,
            to,
            |num, out| self.numbers(needs, num, out),
            |num, out| self.numbers(needed_by, num, out),
        )?;
        path.map(|nums| nums.into_iter().map(|num| self.id_of(num)).collect()).transpose()
    }

    /// A subject's version: the last event on it that this view has seen.
    pub fn version(&self, subject: &Subject) -> Result<Seq> {
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

    /// The oldest event whose reactions are owed.
    pub fn next_due(&self) -> Result<Option<Seq>> {
        self.next_due_after(0)
    }

    /// The next such event after place `seq`.
    pub fn next_due_after(&self, seq: Seq) -> Result<Option<Seq>> {
        let mut select = self.conn.prepare_cached("SELECT min(seq) FROM due WHERE seq > ?1")?;
        let next = select.query_row([seq as i64], |row| row.get::<_, Option<i64>>(0))?;
        Ok(next.map(|seq| seq as Seq))
    }

    /// Whether reactions or workflow runs are waiting to be done.
    pub fn has_pending(&self) -> Result<bool> {
        let select = "SELECT EXISTS (SELECT 1 FROM due) OR EXISTS (SELECT 1 FROM run)";
        Ok(self.conn.prepare_cached(select)?.query_row([], |row| row.get(0))?)
    }

    /// Actions that a root with due events has led to.
    pub fn cascade_count(&self, root: EventId) -> Result<u32> {
        let mut select = self.conn.prepare_cached("SELECT count FROM cascade WHERE root = ?1")?;
        Ok(select.query_row([root.0], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    pub fn count_due(&self) -> Result<u64> {
        let mut select = self.conn.prepare_cached("SELECT count(*) FROM due")?;
        Ok(select.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Hooks that were switched on or off by command.
    pub fn hook_switches(&self) -> Result<Vec<(String, bool)>> {
        let mut select =
            self.conn.prepare_cached("SELECT name, enabled FROM hook_switch ORDER BY name")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// The oldest workflow run that is not over.
    pub fn next_run(&self) -> Result<Option<WorkflowRun>> {
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

    /// Workflow runs that are under way.
    pub fn count_runs(&self) -> Result<u64> {
        let mut select = self.conn.prepare_cached("SELECT count(*) FROM run")?;
        Ok(select.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }
}

fn parse_id(text: String) -> Result<TaskId> {
    text.try_into().map_err(|error| LogError::damaged(0, format!("in the view: {error}")))
}
