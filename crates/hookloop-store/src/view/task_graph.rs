//! Dependencies between tasks.

use hookloop_core::graph;
use hookloop_core::id::TaskId;
use rusqlite::params;

use super::tables::RowResult;
use super::task_rows::{COLUMNS, TaskRow};
use super::totals::View;

impl View<'_> {
    /// Returns the tasks that `id` waits or waited for, oldest first.
    pub fn dependencies(&self, id: &TaskId) -> RowResult<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM task WHERE num IN
             (SELECT needs FROM edge WHERE task = (SELECT num FROM task WHERE id = ?1)) ORDER BY num"
        );
        self.tasks(&sql, [id.as_str()], |_| true, usize::MAX)
    }

    /// Returns dependents of `id` after number `after`, in the order of creation, at most `limit`.
    pub fn dependents(&self, id: &TaskId, after: u64, limit: usize) -> RowResult<Vec<TaskRow>> {
        const DEPENDENTS: &str = "SELECT t.num, t.id, t.version, t.state, t.open_deps, t.announced,
            t.created_at, t.started_at, t.completed_at, t.spec, t.detail, t.epoch,
            t.claim FROM edge JOIN task t ON t.num = edge.task
            WHERE needs = (SELECT num FROM task WHERE id = ?1) AND edge.task > ?2
            ORDER BY edge.task LIMIT ?3";
        let values = params![id.as_str(), after as i64, limit as i64];
        self.tasks(DEPENDENTS, values, |_| true, usize::MAX)
    }

    /// Returns the number of tasks that depend on `id`, at most `limit`.
    pub fn count_dependents(&self, id: &TaskId, limit: usize) -> RowResult<usize> {
        let count = "SELECT count(*) FROM (SELECT 1 FROM edge
            WHERE needs = (SELECT num FROM task WHERE id = ?1) LIMIT ?2)";
        let mut count = self.conn.prepare_cached(count)?;
        Ok(count.query_row(params![id.as_str(), limit as i64], |row| row.get::<_, i64>(0))?
            as usize)
    }

    /// Returns the tasks whose `spawned_by` edge leads to `id`.
    pub fn spawned(&self, id: &TaskId) -> RowResult<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM task WHERE parent = (SELECT num FROM task WHERE id = ?1) ORDER BY num"
        );
        self.tasks(&sql, [id.as_str()], |_| true, usize::MAX)
    }

    /// Whether a blocked task is among the dependencies of task `num`.
    pub fn waits_for_blocked(&self, num: u64) -> RowResult<bool> {
        let select = "SELECT 1 FROM edge JOIN task ON task.num = edge.needs
            WHERE edge.task = ?1 AND task.state = 4";
        Ok(self.conn.prepare_cached(select)?.exists([num as i64])?)
    }

    /// Returns the number of waiting tasks with a blocked dependency.
    pub fn count_stuck(&self) -> RowResult<u64> {
        let count = "SELECT count(DISTINCT waiting.num) FROM task blocked
            JOIN edge ON edge.needs = blocked.num JOIN task waiting ON waiting.num = edge.task
            WHERE blocked.state = 4 AND waiting.state = 0";
        Ok(self.conn.prepare_cached(count)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Calls `each` for every edge as (task, dependency) numbers, in order.
    pub fn each_edge(&self, mut each: impl FnMut(u64, u64)) -> RowResult<()> {
        let mut select =
            self.conn.prepare_cached("SELECT task, needs FROM edge ORDER BY task, needs")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        }
        Ok(())
    }

    /// Returns the dependencies of task `num`, by number.
    pub fn needs_of(&self, num: u64) -> RowResult<Vec<u64>> {
        let mut out = Vec::new();
        self.numbers("SELECT needs FROM edge WHERE task = ?1 ORDER BY needs", num, &mut out)?;
        Ok(out)
    }

    fn numbers(&self, sql: &'static str, num: u64, out: &mut Vec<u64>) -> RowResult<()> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([num as i64])?;
        while let Some(row) = rows.next()? {
            out.push(row.get::<_, i64>(0)? as u64);
        }
        Ok(())
    }

    pub(super) fn has_edge(&self, task: u64, needs: u64) -> RowResult<bool> {
        let mut select =
            self.conn.prepare_cached("SELECT 1 FROM edge WHERE task = ?1 AND needs = ?2")?;
        Ok(select.exists([task as i64, needs as i64])?)
    }

    pub(super) fn path(&self, from: u64, to: u64) -> RowResult<Option<Vec<TaskId>>> {
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
}
