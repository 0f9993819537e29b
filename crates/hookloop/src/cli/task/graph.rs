use std::collections::{BTreeMap, VecDeque};

use clap::ValueEnum;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::project::Project;

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;
use crate::output::{CommandOutput, DIM, state_style};
use crate::picture::TaskPicture;
use crate::sanitize::plain;

/// Minimum lines of a task: one of them is blank.
const ROW_HEIGHT: usize = 2;

/// Draw the graph of tasks, dependencies above dependents
#[derive(clap::Args)]
pub(crate) struct TaskGraphArgs {
    /// Task whose connected tasks are drawn [default: all]
    task: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    format: GraphFormat,

    /// Include completed tasks
    #[arg(short, long)]
    all: bool,

    /// Maximum number of tasks
    #[arg(short = 'n', long, value_name = "N", default_value = "200")]
    limit: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum GraphFormat {
    Text,
    Dot,
    Mermaid,
}

impl TaskGraphArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let picture = self.picture(&project)?;
        let out = &mut context.out;
        match (out.json, self.format) {
            (true, _) => out.json(&json(&picture)),
            (false, GraphFormat::Text) => text(&picture, out),
            (false, GraphFormat::Dot) => dot(&picture, out),
            (false, GraphFormat::Mermaid) => mermaid(&picture, out),
        }
    }

    fn picture(&self, project: &Project) -> CliResult<TaskPicture> {
        let start = self.task.as_ref().map(|task| ids::resolve(project, task)).transpose()?;
        let picture = project.read(|view| {
            let mut rows = BTreeMap::new();
            let mut cut = false;
            match &start {
                None => view.each_task(|row| {
                    let shown = self.all || row.task.state != TaskState::Completed;
                    cut |= shown && rows.len() == self.limit;
                    if shown && !cut {
                        rows.insert(row.num, row);
                    }
                    !cut
                })?,
                Some(start) => {
                    let mut queue: VecDeque<_> = view.task(start)?.into_iter().collect();
                    while let Some(row) = queue.pop_front() {
                        cut = rows.len() == self.limit;
                        if cut {
                            break;
                        }
                        queue.extend(view.dependencies(&row.task.id)?);
                        queue.extend(view.dependents(&row.task.id, 0, self.limit)?);
                        rows.insert(row.num, row);
                        queue.retain(|row| !rows.contains_key(&row.num));
                    }
                }
            }
            TaskPicture::new(view, rows.into_values(), cut)
        })?;
        Ok(picture)
    }
}

fn text(picture: &TaskPicture, out: &mut CommandOutput) -> CliResult {
    let label = |task: &Task| {
        let style = state_style(task.state);
        format!("{} {style}{}{style:#} {}", task.id, task.state, plain(&task.spec.goal))
    };
    for row in picture.draw(ROW_HEIGHT, label) {
        out.line(row.lines.trim_end())?;
    }
    if picture.cut {
        out.line(format_args!("{DIM}… more tasks exist; see --limit{DIM:#}"))
    } else {
        Ok(())
    }
}

fn dot(picture: &TaskPicture, out: &mut CommandOutput) -> CliResult {
    let quoted =
        |text: &str| format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""));
    out.line("digraph tasks {\n  rankdir=TB;\n  node [shape=box, style=rounded];")?;
    for task in picture.tasks.values() {
        let label = quoted(&format!("{} ({})", task.spec.goal, task.state));
        out.line(format_args!("  {} [label={label}];", quoted(task.id.as_str())))?;
    }
    for (task, need) in picture.edges() {
        out.line(format_args!("  {} -> {};", quoted(need.id.as_str()), quoted(task.id.as_str())))?;
    }
    out.line("}")
}

fn mermaid(picture: &TaskPicture, out: &mut CommandOutput) -> CliResult {
    out.line("flowchart TD")?;
    // Mermaid reads markup in labels; everything but letters and digits goes as a number.
    let quoted = |text: &str| -> String {
        let entity = |c: char| {
            if c.is_alphanumeric() || c == ' ' {
                c.to_string()
            } else {
                format!("#{};", u32::from(c))
            }
        };
        plain(text).chars().map(entity).collect()
    };
    for (num, task) in &picture.tasks {
        let label = quoted(&format!("{} ({})", task.spec.goal, task.state));
        out.line(format_args!("  t{num}[\"{label}\"]"))?;
    }
    for num in picture.tasks.keys() {
        for need in picture.needs_of(*num) {
            out.line(format_args!("  t{need} --> t{num}"))?;
        }
    }
    Ok(())
}

fn json(picture: &TaskPicture) -> serde_json::Value {
    let task = |task: &Task| serde_json::json!({"id": task.id, "state": task.state, "goal": task.spec.goal});
    let edge =
        |(task, need): (&Task, &Task)| serde_json::json!({"task": task.id, "needs": need.id});
    serde_json::json!({
        "tasks": picture.tasks.values().map(task).collect::<Vec<_>>(),
        "edges": picture.edges().map(edge).collect::<Vec<_>>(),
        "truncated": picture.cut,
    })
}
