//! What can be started, and what is held.

use std::collections::HashSet;

use rusqlite::{Params, params};

use hookloop_core::task::Task;

use super::query::COLUMNS;
use super::{Result, TaskRow, View, to_json};

const READY: &str = "state = 0 AND open_deps = 0";
const FRONT: &str = "SELECT priority, num FROM task WHERE state = 0 AND open_deps = 0
    ORDER BY priority, num LIMIT ?1";
const FRONT_OF_KIND: &str = "SELECT priority, num FROM task
    WHERE kind = ?1 AND state = 0 AND open_deps = 0 ORDER BY priority, num LIMIT ?2";
const FRONT_EXCEPT: &str = "SELECT priority, num FROM task WHERE state = 0 AND open_deps = 0
    AND (kind IS NULL OR kind NOT IN (SELECT value FROM json_each(?2)))
    ORDER BY priority, num LIMIT ?1";
const CLAIMED: &str = "SELECT count(*) FROM task WHERE claim IS NOT NULL";

/// Which types of tasks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds<'k> {
    /// A task without a type has none of them.
    Only(&'k [String]),
    /// A task without a type is not among them.
    Except(&'k [String]),
}

impl View<'_> {
    /// The first task that `agent` holds.
    pub fn held_by(&self, agent: &str) -> Result<Option<TaskRow>> {
        let sql = format!("SELECT {COLUMNS} FROM task WHERE claim IS NOT NULL ORDER BY num");
        let is_held = |task: &Task| task.claim.as_ref().is_some_and(|claim| claim.agent == agent);
        Ok(self.tasks(&sql, [], is_held, 1)?.into_iter().next())
    }

    /// Tasks that somebody can still do something about.
    pub fn open_tasks(&self) -> Result<u64> {
        use hookloop_core::task::TaskState::{Active, Created, Ready};
        let totals = self.totals()?;
        Ok([Created, Ready, Active].into_iter().map(|state| totals.count(state)).sum())
    }

    /// Tasks that may be started, most urgent first, then oldest.
    pub fn ready(&self, limit: usize) -> Result<Vec<TaskRow>> {
        let sql =
            format!("SELECT {COLUMNS} FROM task WHERE {READY} ORDER BY priority, num LIMIT ?1");
        self.tasks(&sql, [sql_limit(limit)], |_| true, usize::MAX)
    }

    /// As [`View::ready`], but only tasks of these types.
    pub fn ready_of(&self, kinds: &[String], limit: usize) -> Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM task WHERE kind = ?1 AND {READY} ORDER BY priority, num LIMIT ?2"
        );
        let mut rows = Vec::new();
        for kind in distinct(kinds) {
            rows.extend(self.tasks(&sql, params![kind, sql_limit(limit)], |_| true, usize::MAX)?);
        }
        rows.sort_by_key(|row| (row.task.spec.priority, row.num));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Ready tasks of the highest priority that any ready task has, by number, oldest first: the
    /// first `limit`. Those in `without` do not count.
    pub fn front(
        &self,
        kinds: &Kinds<'_>,
        limit: usize,
        without: &HashSet<u64>,
    ) -> Result<Vec<u64>> {
        let most = sql_limit(limit.saturating_add(without.len()));
        let mut found = Vec::new();
        match kinds {
            Kinds::Except([]) => self.places(FRONT, [most], &mut found)?,
            Kinds::Except(kinds) => {
                self.places(FRONT_EXCEPT, params![most, to_json(kinds)], &mut found)?;
            }
            Kinds::Only(kinds) => {
                for kind in distinct(kinds) {
                    self.places(FRONT_OF_KIND, params![kind, most], &mut found)?;
                }
            }
        }
        found.retain(|(_, num)| !without.contains(&(*num as u64)));
        found.sort_unstable();
        let top = found.first().map(|(priority, _)| *priority);
        let of_top = found.into_iter().take_while(|(priority, _)| Some(*priority) == top);
        Ok(of_top.map(|(_, num)| num as u64).take(limit).collect())
    }

    fn places(&self, sql: &str, values: impl Params, found: &mut Vec<(i64, i64)>) -> Result<()> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query(values)?;
        while let Some(row) = rows.next()? {
            found.push((row.get(0)?, row.get(1)?));
        }
        Ok(())
    }

    /// Tasks that someone has claimed, oldest first.
    pub fn claimed(&self) -> Result<Vec<TaskRow>> {
        let sql = format!("SELECT {COLUMNS} FROM task WHERE claim IS NOT NULL ORDER BY num");
        self.tasks(&sql, [], |_| true, usize::MAX)
    }

    pub fn count_claimed(&self) -> Result<u64> {
        Ok(self.conn.prepare_cached(CLAIMED)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }
}

/// Each type once: a task must not be found twice.
fn distinct(kinds: &[String]) -> impl Iterator<Item = &String> {
    kinds.iter().enumerate().filter(|(i, kind)| !kinds[..*i].contains(kind)).map(|(_, kind)| kind)
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many tasks there are, these questions look at those they answer with.
    #[test]
    fn each_question_has_its_index() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let check = |sql: &str, values: &[&dyn rusqlite::ToSql], index: &str| {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = explain.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = steps.map(Result::unwrap).collect();
            assert!(plan.len() == 1 && plan[0].contains(index), "{sql}: {plan:?}");
        };
        check(FRONT, &[&1], "COVERING INDEX task_ready");
        check(FRONT_OF_KIND, &[&"x", &1], "INDEX task_ready_kind (kind=?)");
        check(CLAIMED, &[], "INDEX task_claimed");
        for state in [1, 2, 4] {
            let busy = format!("SELECT num FROM task WHERE state = {state} AND num > 7");
            check(&busy, &[], "COVERING INDEX task_busy (state=? AND num>?)");
        }
    }
}
