//! Commands that change the state of a task: start, complete, block, unblock, delete.

use hookloop_core::command::{Command, DependentsOfDeleted};
use hookloop_core::task::{TaskObstacle, TaskOutcome};

use super::give;
use super::holder::ClaimRight;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Start a ready task without a claim
#[derive(clap::Args)]
pub(crate) struct TaskStart {
    /// Id of the task, or the start of it
    task: String,

    /// Starting point of the work
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
}

impl TaskStart {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        give(context, &project, "Started", &Command::StartTask { id, context: self.context })?;
        Ok(())
    }
}

/// Complete a task
#[derive(clap::Args)]
pub(crate) struct TaskComplete {
    /// Id of the task, or the start of it
    task: String,

    /// Result of the task
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,

    /// Artifact of the task (repeatable)
    #[arg(long = "artifact", value_name = "TEXT")]
    artifacts: Vec<String>,

    #[command(flatten)]
    right: ClaimRight,
}

impl TaskComplete {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let fence = self.right.fence(&id)?;
        let outcome = TaskOutcome { result: self.result, artifacts: self.artifacts, proven: false };
        give(context, &project, "Completed", &Command::CompleteTask { id, outcome, fence })?;
        Ok(())
    }
}

/// Block a task that can't continue
///
/// Tasks that depend on the blocked task keep waiting; `hookloop status` and `hookloop task list` show them.
#[derive(clap::Args)]
pub(crate) struct TaskBlock {
    /// Id of the task, or the start of it
    task: String,

    /// Reason
    #[arg(short, long, value_name = "TEXT")]
    reason: String,

    /// Knowledge that the task needs to continue
    #[arg(long, value_name = "TEXT")]
    needs: Option<String>,

    #[command(flatten)]
    right: ClaimRight,
}

impl TaskBlock {
    /// Whether the command changes a task that another agent has claimed.
    pub(in crate::cli) fn forces(&self) -> bool {
        self.right.forces()
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let fence = self.right.fence(&id)?;
        let obstacle = TaskObstacle { reason: self.reason, required_knowledge: self.needs };
        give(
            context,
            &project,
            "Blocked",
            &Command::BlockTask { id: id.clone(), obstacle, fence },
        )?;
        let waiting = project.read(|view| view.count_dependents(&id, WAITING_COUNTED))?;
        if waiting > 0 && !context.out.json {
            let waiting = match waiting {
                1 => "1 task".to_owned(),
                WAITING_COUNTED => format!("{WAITING_COUNTED} tasks or more"),
                n => format!("{n} tasks"),
            };
            context.out.line(format_args!("  dependents that wait: {waiting}"))?;
        }
        Ok(())
    }
}

/// Dependents of a blocked task are counted up to this number.
const WAITING_COUNTED: usize = 1_000;

/// Unblock a task
#[derive(clap::Args)]
pub(crate) struct TaskUnblock {
    /// Id of the task, or the start of it
    task: String,
}

impl TaskUnblock {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        give(context, &project, "Unblocked", &Command::UnblockTask { id })?;
        Ok(())
    }
}

/// Delete a task
///
/// Open tasks that depend on the deleted task are blocked, with the deletion as the reason. With --release, they no
/// longer depend on it. The log keeps the events of the deleted task.
#[derive(clap::Args)]
pub(crate) struct TaskDelete {
    /// Id of the task, or the start of it
    task: String,

    /// Remove the dependencies of other tasks on this task
    #[arg(long)]
    release: bool,

    /// Delete an active task, and override its claim
    #[arg(long)]
    force: bool,
}

impl TaskDelete {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let dependents =
            if self.release { DependentsOfDeleted::Release } else { DependentsOfDeleted::Block };
        let command = Command::DeleteTask { id, dependents, force: self.force };
        give(context, &project, "Deleted", &command)?;
        Ok(())
    }
}
