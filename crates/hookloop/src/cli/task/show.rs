use std::time::Duration;

use hookloop_core::claim::Claim;
use hookloop_core::delivery::Delivery;
use hookloop_core::remark::TaskNoted;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::store::{LogError, TaskAnnotation, TaskRow};

use super::holder::said;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::json_output::{DeliveryJson, NeighbourJson, NoteJson, TaskDetailJson, TaskJson};
use crate::output::{BOLD, CommandOutput, DIM, state_style};
use crate::sanitize::{plain, plain_lines};

/// Neighbours that are shown.
const SHOWN: usize = 50;

/// Show a task, its dependencies and its dependents
#[derive(clap::Args)]
pub(crate) struct TaskShowArgs {
    /// Id of the task, or the start of it
    task: String,
}

struct ShownTask {
    task: Task,
    depends_on: Vec<Task>,
    dependents: Vec<Task>,
    spawned: Vec<Task>,
    notes: Vec<TaskAnnotation<TaskNoted>>,
    delivery: Delivery,
}

impl TaskShowArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let id = ids::resolve(&project, &self.task)?;
        let tasks = |rows: Vec<TaskRow>| rows.into_iter().map(|row| row.task).collect();
        let detail = project.read(|view| -> std::result::Result<_, LogError> {
            let Some(row) = view.task(&id)? else { return Ok(None) };
            Ok(Some(ShownTask {
                task: row.task,
                depends_on: tasks(view.dependencies(&id)?),
                dependents: tasks(view.dependents(&id, 0, SHOWN)?),
                spawned: tasks(view.spawned(&id)?),
                notes: view.notes(&id)?,
                delivery: view.delivery(&id)?,
            }))
        })?;
        let detail = detail.ok_or_else(|| CliError::refused(format!("there is no task `{id}`")))?;
        if context.out.json {
            context.out.json(&detail.json())
        } else {
            detail.print(&mut context.out)
        }
    }
}

impl ShownTask {
    fn json(&self) -> TaskDetailJson<'_> {
        TaskDetailJson {
            task: TaskJson::from(&self.task),
            depends_on: self.depends_on.iter().map(NeighbourJson::from).collect(),
            dependents: self.dependents.iter().map(NeighbourJson::from).collect(),
            spawned: self.spawned.iter().map(NeighbourJson::from).collect(),
            notes: self.notes.iter().map(NoteJson::from).collect(),
            delivery: DeliveryJson::from(&self.delivery),
        }
    }

    fn print(&self, out: &mut CommandOutput) -> CliResult {
        let Task { id, spec, state, .. } = &self.task;
        let style = state_style(*state);
        out.line(format_args!("{BOLD}{}{BOLD:#}", plain(&spec.goal)))?;
        out.line(format_args!("{id}  {style}{state}{style:#}  P{}", spec.priority.get()))?;
        if !spec.description.is_empty() {
            out.line(format_args!("\n{}\n", plain_lines(&spec.description, 0)))?;
        }
        let field = |out: &mut CommandOutput, name: &str, value: &str| {
            if value.is_empty() {
                Ok(())
            } else {
                out.line(format_args!("{DIM}{name:>13}{DIM:#}  {}", plain_lines(value, 15)))
            }
        };
        field(out, "type", spec.kind.as_deref().unwrap_or(""))?;
        field(out, "labels", &spec.labels.join(", "))?;
        for deliverable in &spec.deliverables {
            field(out, "deliverable", deliverable)?;
        }
        field(out, "may change", &spec.may_change.join(", "))?;
        field(out, "added", &self.task.created_at.to_string())?;
        let not_before = spec.not_before.map_or(String::new(), |time| time.to_string());
        field(out, "not before", &not_before)?;
        let times = [("started", self.task.started_at), ("completed", self.task.completed_at)];
        for (name, at) in times {
            field(out, name, &at.map_or(String::new(), |at| at.to_string()))?;
        }
        if let Some(Claim { agent, epoch, lease_ms }) = &self.task.claim {
            let lease = said(Duration::from_millis(*lease_ms));
            field(out, "claimed by", &format!("{agent}, epoch {epoch}, lease {lease}"))?;
        }
        if let Some(obstacle) = &self.task.obstacle {
            field(out, "blocked", &obstacle.reason)?;
            field(out, "needs", obstacle.required_knowledge.as_deref().unwrap_or(""))?;
        }
        if let Some(outcome) = &self.task.outcome {
            field(out, "result", outcome.result.as_deref().unwrap_or(""))?;
            for artifact in &outcome.artifacts {
                field(out, "artifact", artifact)?;
            }
        }
        if let Some(submission) = &self.delivery.submission {
            field(out, "branch", &format!("{} at {}", submission.branch, submission.head))?;
            field(out, "request", submission.url.as_deref().unwrap_or(""))?;
        }
        if let Some(awaited) = &self.delivery.awaited {
            field(out, "waits for", awaited.reason.as_deref().unwrap_or(""))?;
            let place = awaited.queue.as_ref().map(ToString::to_string);
            field(out, "queue", place.as_deref().unwrap_or(""))?;
        }
        field(out, "returned", self.delivery.reason.as_deref().unwrap_or(""))?;
        for note in &self.notes {
            field(out, "note", &format!("{} ({}, {})", note.what.text, note.by, note.at))?;
        }
        field(out, "spawned by", spec.parent_task_id.as_ref().map_or("", |id| id.as_str()))?;
        self.print_neighbours(out)
    }

    fn print_neighbours(&self, out: &mut CommandOutput) -> CliResult {
        let groups = [
            ("depends on", &self.depends_on),
            ("needed by", &self.dependents),
            ("spawned", &self.spawned),
        ];
        for (name, tasks) in groups {
            for task in tasks.iter().take(SHOWN) {
                let style = state_style(task.state);
                let state = task.state;
                let alarm = match (name, state) {
                    ("depends on", TaskState::Blocked) => "  ← blocked, so this task waits",
                    _ => "",
                };
                let goal = plain(&task.spec.goal);
                out.line(format_args!(
                    "{DIM}{name:>13}{DIM:#}  {}  {style}{state}{style:#}  {goal}{alarm}",
                    task.id
                ))?;
            }
        }
        Ok(())
    }
}
