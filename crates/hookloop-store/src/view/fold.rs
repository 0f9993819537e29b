//! The view while events are applied to it.

use std::cell::RefCell;

use hookloop_core::id::{Subject, TaskId};
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::tables::{RowResult, StoredState};
use super::totals::{View, ViewTotals};
use crate::log::Seq;

/// The view while events are applied to it.
///
/// Totals stay in memory until the unit of work ends. So do the changes to one task, because the
/// edges of a task arrive one after another.
#[derive(Debug)]
pub(crate) struct ViewFold<'c> {
    pub(super) conn: &'c Connection,
    pub(crate) totals: ViewTotals,
    pub(super) hot: RefCell<Option<HotTask>>,
}

/// The columns of a task that decide its changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskNode {
    pub(super) num: i64,
    pub(super) version: Seq,
    pub(super) state: StoredState,
    pub(super) open_deps: u32,
}

/// The task of the last edges.
#[derive(Debug)]
pub(super) struct HotTask {
    pub(super) id: TaskId,
    pub(super) node: TaskNode,
    /// Whether the table lacks the change.
    pub(super) changed: bool,
}

impl<'c> ViewFold<'c> {
    pub(crate) fn new(conn: &'c Connection, totals: ViewTotals) -> ViewFold<'c> {
        ViewFold { conn, totals, hot: RefCell::new(None) }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.conn
    }

    /// Returns the view with everything that was applied.
    pub(crate) fn view(&self) -> RowResult<View<'c>> {
        self.settle()?;
        Ok(View::new(self.conn))
    }

    pub(super) fn run(&self, sql: &'static str, values: impl Params) -> RowResult<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(values)?)
    }

    pub(super) fn node(&self, id: &TaskId) -> RowResult<Option<TaskNode>> {
        let select = "SELECT num, version, state, open_deps FROM task WHERE id = ?1";
        let node = self.conn.prepare_cached(select)?.query_row([id.as_str()], |row| {
            Ok(TaskNode {
                num: row.get(0)?,
                version: row.get::<_, i64>(1)? as Seq,
                state: StoredState::read(row.get(2)?),
                open_deps: row.get(3)?,
            })
        });
        Ok(node.optional()?)
    }

    /// Writes the pending change of the last edges' task to the table.
    pub(super) fn settle(&self) -> RowResult<()> {
        match self.hot.borrow_mut().as_mut() {
            Some(hot) if hot.changed => {
                hot.changed = false;
                self.write_open_deps(hot.node)
            }
            _ => Ok(()),
        }
    }

    /// Writes the number of open dependencies.
    ///
    /// A task that waits again is announced again when its dependencies are complete.
    pub(super) fn write_open_deps(&self, node: TaskNode) -> RowResult<()> {
        let update = "UPDATE task SET version = ?2, open_deps = ?3,
            announced = announced AND ?3 = 0 WHERE num = ?1";
        self.run(update, params![node.num, node.version as i64, node.open_deps])?;
        Ok(())
    }

    /// Returns the version of a subject in the subject table, or 0 if it is not there.
    pub(super) fn version_of(&self, name: &str) -> RowResult<Seq> {
        let select = "SELECT version FROM subject WHERE name = ?1";
        let version =
            self.conn.prepare_cached(select)?.query_row([name], |row| row.get::<_, i64>(0));
        Ok(version.optional()?.unwrap_or(0) as Seq)
    }

    /// Forgets the task of the last edges after writing its row.
    pub(super) fn cool(&self) -> RowResult<()> {
        self.settle()?;
        self.hot.take();
        Ok(())
    }

    pub(super) fn raise_version(&self, subject: &Subject, seq: Seq) -> RowResult<Seq> {
        let name = subject.to_string();
        let prev = self.version_of(&name)?;
        self.run("INSERT OR REPLACE INTO subject VALUES (?1, ?2)", params![name, seq as i64])?;
        Ok(prev)
    }
}
