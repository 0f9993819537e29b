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

/// List tasks, newest first
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// Only tasks in this state: created, ready, active, submitted, completed or blocked
    #[arg(short, long, value_name = "STATE")]
    state: Option<TaskState>,

    /// Only tasks with this label
    #[arg(short, long, value_name = "LABEL")]
    label: Option<String>,

    /// Only tasks of this type
    #[arg(short, long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// At most so many; 0 for all
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
        let rows = project.read(|view| view.list(&filter))?;
        print(context, &project, &rows)?;
        let full = self.limit > 0 && rows.len() == self.limit;
        if full && context.out.terminal && !context.out.json {
            context
                .out
                .line(format_args!("{DIM}the newest {}; all with --limit 0{DIM:#}", self.limit))
        } else {
            Ok(())
        }
    }
}

/// List the tasks that can be started, most urgent first
///
/// A task becomes more urgent as it waits (`scheduling.ageing`).
#[derive(clap::Args)]
pub(crate) struct ReadyArgs {
    /// Only tasks of this type; may be given more than once
    #[arg(short, long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// At most so many; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    limit: usize,
}

impl ReadyArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let ageing = project.rules().scheduling.ageing;
        let rows = project.read(|view| match self.types.as_slice() {
            [] => view.ready(ageing, limit),
            types => view.ready_of(types, ageing, limit),
        })?;
        print(context, &project, &rows)
    }
}

fn print(context: &mut CommandContext, project: &Project, rows: &[TaskRow]) -> CliResult {
    let out = &mut context.out;
    if out.json {
        let tasks: Vec<TaskJson<'_>> = rows.iter().map(|row| TaskJson::from(&row.task)).collect();
        return out.json(&tasks);
    }
    if rows.is_empty() {
        return if out.terminal { out.line(format_args!("{DIM}none{DIM:#}")) } else { Ok(()) };
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
        Some(claim) => format!("held by {}, epoch {}", claim.agent, claim.epoch),
        None => String::new(),
    }
}
