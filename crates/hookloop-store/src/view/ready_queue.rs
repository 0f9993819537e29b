//! Tasks that can be started, and tasks that are claimed.

use std::collections::HashSet;

use hookloop_core::id::TaskId;
use hookloop_core::slots::TasksInProgress;
use hookloop_core::task::{Priority, Task, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_core::urgency::PriorityAging;
use rusqlite::{Params, params};

use super::tables::{RowResult, to_json};
use super::task_rows::{COLUMNS, TaskRow};
use super::totals::View;

/// Selects ready tasks of one priority, oldest first, with (`timed`) or without a start time.
macro_rules! class {
    (untimed $kinds:literal) => {
        concat!(
            "SELECT num, created_at FROM task WHERE state = 0 AND open_deps = 0
            AND not_before IS NULL AND priority = ?1 ",
            $kinds,
            " ORDER BY num LIMIT ?2"
        )
    };
    (timed $kinds:literal) => {
        class!(timed in "task", $kinds)
    };
    (timed in $table:literal, $kinds:literal) => {
        concat!(
            "SELECT num, not_before FROM ",
            $table,
            " WHERE state = 0 AND open_deps = 0
            AND not_before IS NOT NULL AND priority = ?1 AND not_before <= ?3 ",
            $kinds,
            " ORDER BY not_before, num LIMIT ?2"
        )
    };
}

const FRONT: &str = class!(untimed "");
const FRONT_TIMED: &str = class!(timed "");
const FRONT_OF_KIND: &str = class!(untimed "AND kind = ?3");
// Without the hint, SQLite would use the index by time and read tasks of all types.
const FRONT_OF_KIND_TIMED: &str =
    class!(timed in "task INDEXED BY task_timed_kind", "AND kind = ?4");
const FRONT_EXCEPT: &str =
    class!(untimed "AND (kind IS NULL OR kind NOT IN (SELECT value FROM json_each(?3)))");
const FRONT_EXCEPT_TIMED: &str =
    class!(timed "AND (kind IS NULL OR kind NOT IN (SELECT value FROM json_each(?4)))");
const CLAIMED: &str = "SELECT count(*) FROM task WHERE claim IS NOT NULL";
const EARLY: &str = "SELECT count(*), min(not_before) FROM task
    WHERE state = 0 AND open_deps = 0 AND not_before IS NOT NULL AND not_before > ?1";
const ANY_TIMED: &str = "SELECT 1 FROM task
    WHERE state = 0 AND open_deps = 0 AND not_before IS NOT NULL AND not_before <= ?1 LIMIT 1";
/// Ready tasks whose claim expired, oldest first.
const ORPHANS: &str = "SELECT num, kind FROM orphan CROSS JOIN task ON num = task
    WHERE state = 0 AND open_deps = 0 ORDER BY task";
/// The next priority of a ready task without a start time.
const NEXT_CLASS: &str = "SELECT min(priority) FROM task
    WHERE state = 0 AND open_deps = 0 AND not_before IS NULL AND priority > ?1";
/// Counts tasks in progress: they are claimed, or were started without a claim.
const IN_HANDS: &str = "SELECT kind, count(*) FROM task WHERE state = 1 GROUP BY kind
    UNION ALL SELECT kind, count(*) FROM task WHERE claim IS NOT NULL AND state <> 1 GROUP BY kind";

/// A filter of tasks by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeFilter<'k> {
    /// Tasks of these types. A task without a type does not match.
    Only(&'k [String]),
    /// Tasks of all other types. A task without a type matches.
    Except(&'k [String]),
}

impl TypeFilter<'_> {
    pub fn include(&self, kind: Option<&String>) -> bool {
        match self {
            TypeFilter::Only(kinds) => kind.is_some_and(|kind| kinds.contains(kind)),
            TypeFilter::Except(kinds) => kind.is_none_or(|kind| !kinds.contains(kind)),
        }
    }
}

/// Tasks that wait only for their start time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayedTasks {
    pub count: u64,
    /// The time at which the first of them is ready.
    pub next: Option<Timestamp>,
}

/// The criteria of a search for ready tasks.
struct ReadySearch<'s> {
    kinds: &'s TypeFilter<'s>,
    aging: PriorityAging,
    without: &'s HashSet<u64>,
    /// Whether there are tasks whose start time has passed.
    has_timed: bool,
}

/// A ready task, with its urgency and the time since which it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadyPlace {
    urgency: i64,
    since: Timestamp,
    num: u64,
}

impl View<'_> {
    /// Returns the first task that `agent` has claimed.
    pub fn held_by(&self, agent: &str) -> RowResult<Option<TaskRow>> {
        let sql = format!("SELECT {COLUMNS} FROM task WHERE claim IS NOT NULL ORDER BY num");
        let is_held = |task: &Task| task.claim.as_ref().is_some_and(|claim| claim.agent == agent);
        Ok(self.tasks(&sql, [], is_held, 1)?.into_iter().next())
    }

    /// Returns the number of tasks in each state.
    pub fn counts(&self) -> RowResult<[(TaskState, u64); 6]> {
        let (totals, early) = (self.totals()?, self.early()?.count);
        Ok(TaskState::ALL.map(|state| {
            let count = totals.count(state);
            match state {
                TaskState::Created => (state, count + early),
                TaskState::Ready => (state, count.saturating_sub(early)),
                _ => (state, count),
            }
        }))
    }

    /// Returns the tasks that wait only for their start time.
    pub fn early(&self) -> RowResult<DelayedTasks> {
        let Some(now) = self.now else { return Ok(DelayedTasks::default()) };
        let mut select = self.conn.prepare_cached(EARLY)?;
        Ok(select.query_row([now.0], |row| {
            let next = row.get::<_, Option<i64>>(1)?.map(Timestamp);
            Ok(DelayedTasks { count: row.get::<_, i64>(0)? as u64, next })
        })?)
    }

    /// Whether a task's start time is in the future.
    pub fn is_early(&self, id: &TaskId) -> RowResult<bool> {
        let select = "SELECT 1 FROM task WHERE id = ?1 AND not_before > ?2";
        Ok(self.conn.prepare_cached(select)?.exists(params![id.as_str(), self.time()])?)
    }

    /// Counts the tasks that can be worked on, now or after their dependencies.
    pub fn open_tasks(&self) -> RowResult<u64> {
        use TaskState::{Active, Created, Ready};
        let (totals, early) = (self.totals()?, self.early()?.count);
        let open: u64 = [Created, Ready, Active].into_iter().map(|state| totals.count(state)).sum();
        Ok(open.saturating_sub(early))
    }

    /// Returns the ready tasks, most urgent first, then oldest.
    pub fn ready(&self, aging: PriorityAging, limit: usize) -> RowResult<Vec<TaskRow>> {
        self.most_urgent(&TypeFilter::Except(&[]), aging, limit)
    }

    /// Returns the ready tasks of these types, in the order of [`View::ready`].
    pub fn ready_of(
        &self,
        kinds: &[String],
        aging: PriorityAging,
        limit: usize,
    ) -> RowResult<Vec<TaskRow>> {
        self.most_urgent(&TypeFilter::Only(kinds), aging, limit)
    }

    /// Returns the tasks whose claim expired, then the other ready ones, in the order in which they are claimed.
    ///
    /// Only the tasks that are returned are read whole.
    fn most_urgent(
        &self,
        kinds: &TypeFilter<'_>,
        aging: PriorityAging,
        limit: usize,
    ) -> RowResult<Vec<TaskRow>> {
        let left = self.left(kinds, limit, &HashSet::new())?;
        let mut rows = Vec::new();
        for num in &left {
            rows.extend(self.task_by_num(*num)?);
        }
        rows.sort_by_cached_key(|TaskRow { task, num, .. }| {
            let since = task.due_since();
            (self.urgency(aging, task.spec.priority, since), since, *num)
        });
        let without = left.into_iter().collect();
        let has_timed = self.has_timed()?;
        let search = ReadySearch { kinds, aging, without: &without, has_timed };
        let mut places = Vec::new();
        for priority in priorities() {
            places.extend(self.class(&search, priority, limit)?);
        }
        places.sort_unstable();
        for place in places.iter().take(limit.saturating_sub(rows.len())) {
            rows.extend(self.task_by_num(place.num)?);
        }
        Ok(rows)
    }

    /// Whether there are tasks whose start time has passed.
    fn has_timed(&self) -> RowResult<bool> {
        Ok(self.conn.prepare_cached(ANY_TIMED)?.exists([self.time()])?)
    }

    fn urgency(&self, aging: PriorityAging, priority: Priority, since: Timestamp) -> i64 {
        aging.urgency(priority, since, self.now.unwrap_or(since))
    }

    /// Returns the latest start time that counts as passed.
    fn time(&self) -> i64 {
        self.now.map_or(i64::MAX, |now| now.0)
    }

    /// Returns the numbers of the most urgent ready tasks, at most `limit`, without those in
    /// `without`.
    ///
    /// A task whose claim expired comes before all others, because it was started before them.
    /// Within a priority no task is more urgent than the oldest, so the first ones of each priority
    /// suffice.
    pub fn front(
        &self,
        kinds: &TypeFilter<'_>,
        aging: PriorityAging,
        limit: usize,
        without: &HashSet<u64>,
    ) -> RowResult<Vec<u64>> {
        let left = self.left(kinds, limit, without)?;
        if !left.is_empty() {
            return Ok(left);
        }
        let has_timed = self.has_timed()?;
        let search = ReadySearch { kinds, aging, without, has_timed };
        let mut heads: Vec<(Priority, ReadyPlace)> = Vec::new();
        for priority in self.classes(has_timed)? {
            let first = self.class(&search, priority, 1)?.into_iter().next();
            heads.extend(first.map(|place| (priority, place)));
            if aging == PriorityAging::Never && !heads.is_empty() {
                break;
            }
        }
        let Some(top) = heads.iter().map(|(_, place)| place.urgency).min() else {
            return Ok(Vec::new());
        };
        let mut front = Vec::new();
        for (priority, head) in heads.into_iter().filter(|(_, head)| head.urgency == top) {
            match limit {
                1 => front.push(head),
                limit => front.extend(self.class(&search, priority, limit)?),
            }
        }
        front.retain(|place| place.urgency == top);
        front.sort_unstable();
        Ok(front.into_iter().map(|place| place.num).take(limit).collect())
    }

    /// Returns the tasks whose claim expired and that match the filter.
    fn left(
        &self,
        kinds: &TypeFilter<'_>,
        limit: usize,
        without: &HashSet<u64>,
    ) -> RowResult<Vec<u64>> {
        let left = self.orphans()?.into_iter();
        let is_wanted = |(num, kind): &(u64, Option<String>)| {
            kinds.include(kind.as_ref()) && !without.contains(num)
        };
        Ok(left.filter(is_wanted).map(|(num, _)| num).take(limit).collect())
    }

    fn orphans(&self) -> RowResult<Vec<(u64, Option<String>)>> {
        let mut select = self.conn.prepare_cached(ORPHANS)?;
        let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the priorities that ready tasks may have, most urgent first.
    fn classes(&self, has_timed: bool) -> RowResult<Vec<Priority>> {
        let mut classes: Vec<Priority> = priorities().collect();
        if has_timed {
            return Ok(classes);
        }
        let mut select = self.conn.prepare_cached(NEXT_CLASS)?;
        let (mut found, mut last) = (Vec::new(), -1);
        while let Some(next) = select.query_row([last], |row| row.get::<_, Option<i64>>(0))? {
            found.push(next);
            last = next;
        }
        classes.retain(|class| found.contains(&i64::from(class.get())));
        Ok(classes)
    }

    /// Returns the first `limit` ready tasks of one priority, oldest first.
    fn class(
        &self,
        search: &ReadySearch<'_>,
        priority: Priority,
        limit: usize,
    ) -> RowResult<Vec<ReadyPlace>> {
        let ReadySearch { kinds, aging, without, has_timed } = *search;
        let most = sql_limit(limit.saturating_add(without.len()));
        let (class, time) = (priority.get(), self.time());
        let mut found = Vec::new();
        match kinds {
            TypeFilter::Except([]) => {
                self.places(FRONT, params![class, most], &mut found)?;
                if has_timed {
                    self.places(FRONT_TIMED, params![class, most, time], &mut found)?;
                }
            }
            TypeFilter::Except(kinds) => {
                let kinds = to_json(kinds);
                self.places(FRONT_EXCEPT, params![class, most, kinds], &mut found)?;
                if has_timed {
                    let values = params![class, most, time, kinds];
                    self.places(FRONT_EXCEPT_TIMED, values, &mut found)?;
                }
            }
            TypeFilter::Only(kinds) => {
                for kind in distinct(kinds) {
                    self.places(FRONT_OF_KIND, params![class, most, kind], &mut found)?;
                    if has_timed {
                        let values = params![class, most, time, kind];
                        self.places(FRONT_OF_KIND_TIMED, values, &mut found)?;
                    }
                }
            }
        }
        let places = found.into_iter().map(|(num, since)| {
            let since = Timestamp(since);
            ReadyPlace { urgency: self.urgency(aging, priority, since), since, num: num as u64 }
        });
        let mut places: Vec<ReadyPlace> =
            places.filter(|place| !without.contains(&place.num)).collect();
        places.sort_unstable_by_key(|place| (place.since, place.num));
        places.truncate(limit);
        Ok(places)
    }

    fn places(&self, sql: &str, values: impl Params, found: &mut Vec<(i64, i64)>) -> RowResult<()> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query(values)?;
        while let Some(row) = rows.next()? {
            found.push((row.get(0)?, row.get(1)?));
        }
        Ok(())
    }

    /// Counts the claimed tasks.
    pub fn in_hands(&self) -> RowResult<TasksInProgress> {
        let mut select = self.conn.prepare_cached(IN_HANDS)?;
        let mut rows = select.query([])?;
        let mut held = TasksInProgress::default();
        while let Some(row) = rows.next()? {
            let (kind, count): (Option<String>, u32) = (row.get(0)?, row.get(1)?);
            held.all += count;
            if let Some(kind) = kind {
                *held.of_type.entry(kind).or_default() += count;
            }
        }
        Ok(held)
    }

    /// Returns the claimed tasks, oldest first.
    pub fn claimed(&self) -> RowResult<Vec<TaskRow>> {
        let sql = format!("SELECT {COLUMNS} FROM task WHERE claim IS NOT NULL ORDER BY num");
        self.tasks(&sql, [], |_| true, usize::MAX)
    }

    pub fn count_claimed(&self) -> RowResult<u64> {
        Ok(self.conn.prepare_cached(CLAIMED)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    }
}

/// Returns all priorities, most urgent first.
fn priorities() -> impl Iterator<Item = Priority> {
    // Every number up to the largest is a priority.
    (0..=Priority::MAX).filter_map(|priority| Priority::try_from(priority).ok())
}

/// Returns each type once, so that no task is found twice.
fn distinct(kinds: &[String]) -> impl Iterator<Item = &String> {
    kinds.iter().enumerate().filter(|(i, kind)| !kinds[..*i].contains(kind)).map(|(_, kind)| kind)
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These queries read only the tasks that they return, however many there are.
    #[test]
    fn each_query_uses_its_index() {
        let conn = crate::sqlite::open_in_memory().unwrap();
        let check = |sql: &str, values: &[&dyn rusqlite::ToSql], index: &str| {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = explain.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = steps.map(RowResult::unwrap).collect();
            assert!(plan.len() == 1 && plan[0].contains(index), "{sql}: {plan:?}");
        };
        check(FRONT, &[&1, &1], "INDEX task_ready (priority=?)");
        check(
            FRONT_TIMED,
            &[&1, &1, &1],
            "INDEX task_timed (priority=? AND not_before>? AND not_before<?)",
        );
        check(FRONT_OF_KIND, &[&1, &1, &"x"], "INDEX task_ready_kind (kind=? AND priority=?)");
        let timed =
            "INDEX task_timed_kind (kind=? AND priority=? AND not_before>? AND not_before<?)";
        check(FRONT_OF_KIND_TIMED, &[&1, &1, &1, &"x"], timed);
        check(EARLY, &[&1], "INDEX task_time (not_before>?)");
        check(ANY_TIMED, &[&1], "INDEX task_time (not_before>? AND not_before<?)");
        check(NEXT_CLASS, &[&1], "INDEX task_ready (priority>?)");
        check(CLAIMED, &[], "INDEX task_claimed");
        for state in [1, 2, 4] {
            let busy = format!("SELECT num FROM task WHERE state = {state} AND num > 7");
            check(&busy, &[], "COVERING INDEX task_busy (state=? AND num>?)");
        }
    }
}
