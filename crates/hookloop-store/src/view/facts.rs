//! The facts that decide a command.

use hookloop_core::command::Command;
use hookloop_core::decide::KnownFacts;
use hookloop_core::id::TaskId;
use hookloop_core::task::TaskState;
use rusqlite::params;

use super::tables::RowResult;
use super::task_rows::{KnownId, TaskRow, parse_id};
use super::totals::View;

impl View<'_> {
    /// Returns the facts that decide `command`. `batch` limits the dependents of one deletion.
    pub fn facts(&self, command: &Command, batch: usize) -> RowResult<KnownFacts> {
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
            KnownId::Task(known) => row = Some(known),
            KnownId::Deleted => facts.deleted = true,
            KnownId::Nothing => {}
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

    fn deletion_facts(&self, row: &TaskRow, batch: usize, facts: &mut KnownFacts) -> RowResult<()> {
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
        facts.waiting = ids.map(|id| parse_id(id?)).collect::<RowResult<_>>()?;
        facts.more_waiting = facts.waiting.len() > batch;
        facts.waiting.truncate(batch);
        Ok(())
    }
}
