use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::options::Length;
use hookloop_core::task::{Priority, TaskSpec};
use hookloop_core::time::Timestamp;

use super::give;
use crate::cli::context::CommandContext;
use crate::cli::value_parsers::pattern;
use crate::error::CliResult;
use crate::ids;

/// The fields of a task beside its goal.
#[derive(clap::Args)]
pub(crate) struct SpecArgs {
    /// Description of the task
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    description: String,

    /// Label (repeatable)
    #[arg(short, long = "label", value_name = "LABEL")]
    labels: Vec<String>,

    /// Priority; 0 is the most urgent
    #[arg(short, long, value_name = "0-9", default_value = "2")]
    priority: Priority,

    /// Deliverable of the task (repeatable)
    #[arg(long = "deliverable", value_name = "TEXT")]
    deliverables: Vec<String>,

    /// Type of the task
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Tests that the work may change, from the top of the repository (repeatable)
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    may_change: Vec<String>,
}

impl SpecArgs {
    pub(crate) fn spec(self, goal: String) -> TaskSpec {
        let SpecArgs { description, labels, priority, deliverables, kind, may_change } = self;
        let parent_task_id = None;
        let not_before = None;
        TaskSpec {
            goal,
            description,
            deliverables,
            labels,
            priority,
            kind,
            parent_task_id,
            not_before,
            may_change,
        }
    }
}

/// Add a task
///
/// The task is ready at once, unless it depends on a task that is not completed or has a start time. Example:
/// `hookloop task add "Parse dates" --type feature --depends-on schema`
#[derive(clap::Args)]
pub(crate) struct TaskAddArgs {
    /// Goal of the task
    goal: String,

    #[command(flatten)]
    rest: SpecArgs,

    /// Task that must be completed first (repeatable)
    #[arg(long = "depends-on", value_name = "TASK")]
    depends_on: Vec<String>,

    /// Earliest start time, such as 2026-12-01T08:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    not_before: Option<Timestamp>,

    /// Delay before the task is ready, such as 30m, 2h or 3d
    #[arg(long, value_name = "LENGTH", value_parser = Length::of_waiting)]
    #[arg(conflicts_with = "not_before")]
    after: Option<Length>,

    /// Parent: the task that led to this one
    #[arg(long, value_name = "TASK")]
    parent: Option<String>,

    /// Id of the task [default: generated]
    #[arg(long, value_name = "ID")]
    id: Option<TaskId>,
}

impl TaskAddArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let parent = self.parent.map(|parent| ids::resolve(&project, &parent)).transpose()?;
        let later = |length: Length| {
            let ms = i64::try_from(length.ms).unwrap_or(i64::MAX);
            Timestamp(project.now().0.saturating_add(ms))
        };
        let command = Command::AddTask {
            id: self.id.unwrap_or_else(|| project.new_task_id()),
            spec: TaskSpec {
                parent_task_id: parent,
                not_before: self.not_before.or(self.after.map(later)),
                ..self.rest.spec(self.goal)
            },
            depends_on: ids::resolve_all(&project, &self.depends_on)?,
        };
        give(context, &project, "Added", &command)?;
        Ok(())
    }
}

fn time(text: &str) -> std::result::Result<Timestamp, String> {
    let wrong = |_| format!("`{text}` is not a time with a zone, such as 2026-12-01T08:00Z");
    text.parse().map_err(wrong)
}
