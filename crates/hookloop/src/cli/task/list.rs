//! `task list` and `task ready`.

use hookloop_core::task::{Task, TaskState};
use hookloop_engine::project::Project;
use hookloop_engine::store::{TaskFilter, TaskRow};

use super::waits;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;
use crate::json_output::TaskJson;
use crate::output::{DIM, TableCell, state_style};

/// The texts for empty lists on a terminal.
const NO_TASKS: &str = "No tasks yet. Add one: hookloop task add \"…\"";
const NO_MATCH: &str = "No matching tasks.";
const NO_READY: &str = "No tasks are ready. See all: hookloop task list";

/// List tasks, newest first
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// State: created, ready, active, submitted, completed or blocked
    #[arg(short, long, value_name = "STATE")]
    state: Option<TaskState>,

    /// Label of the tasks
    #[arg(short, long, value_name = "LABEL")]
    label: Option<String>,

    /// Type of the tasks
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Maximum number of tasks; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value = "100")]
    limit: usize,
}

impl ListArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let filter = TaskFilter {
            state: self.state,
            label: self.label,
            kind: self.kind,
            limit: Some(self.limit).filter(|limit| *limit > 0),
            ..TaskFilter::default()
        };
        let has_filter = filter.state.is_some() || filter.label.is_some() || filter.kind.is_some();
        let rows = project.read(|view| view.list(&filter))?;
        print(context, &project, &rows, if has_filter { NO_MATCH } else { NO_TASKS })?;
        let full = self.limit > 0 && rows.len() == self.limit;
        if full && context.out.terminal && !context.out.json {
            context.out.line(format_args!("{DIM}newest {}; all with --limit 0{DIM:#}", self.limit))
        } else {
            Ok(())
        }
    }
}

/// List ready tasks, most urgent first
///
/// A task becomes more urgent as it waits (`scheduling.priority_aging`).
#[derive(clap::Args)]
pub(crate) struct ReadyArgs {
    /// Type of the tasks (repeatable)
    #[arg(short, long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// Maximum number of tasks; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    limit: usize,
}

impl ReadyArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let aging = project.rules().scheduling.priority_aging;
        let rows = project.read(|view| match self.types.as_slice() {
            [] => view.ready(aging, limit),
            types => view.ready_of(types, aging, limit),
        })?;
        print(context, &project, &rows, NO_READY)
    }
}

/// Prints tasks; on a terminal `empty` if there are none.
fn print(
    context: &mut CommandContext,
    project: &Project,
    rows: &[TaskRow],
    empty: &str,
) -> CliResult {
    let out = &mut context.out;
    if out.json {
        let tasks: Vec<TaskJson<'_>> = rows.iter().map(|row| TaskJson::from(&row.task)).collect();
        return out.json(&tasks);
    }
    if rows.is_empty() {
        return if out.terminal { out.line(format_args!("{DIM}{empty}{DIM:#}")) } else { Ok(()) };
    }
    let terminal = out.terminal;
    let cells: Vec<Vec<TableCell>> = project.read(|view| {
        rows.iter()
            .map(|TaskRow { task, num, .. }| {
                let note = match task.state {
                    TaskState::Created if view.waits_for_blocked(*num)? => {
                        format!("waits for {}, blocked", task.open_dependencies)
                    }
                    TaskState::Created => waits(task),
                    _ => held(task),
                };
                Ok(vec![
                    ids::cell(view, &task.id, terminal)?,
                    TableCell::new(format!("P{}", task.spec.priority.get())),
                    TableCell::new(task.state).style(state_style(task.state)),
                    TableCell::new(note).style(DIM),
                    TableCell::new(task.spec.labels.join(",")).style(DIM),
                    TableCell::new(&task.spec.goal),
                ])
            })
            .collect()
    })?;
    out.table(&["id", "prio", "state", "", "labels", "goal"], &cells)
}

/// Returns the claimant of a task, and the number of the claim.
fn held(task: &Task) -> String {
    match &task.claim {
        Some(claim) => format!("claimed by {}, epoch {}", claim.agent, claim.epoch),
        None => String::new(),
    }
}
