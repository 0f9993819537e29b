//! Commands that move a task along: start, complete, block, unblock, delete.

use hookloop_core::command::{Command, DependentsOfDeleted};
use hookloop_core::task::{TaskObstacle, TaskOutcome};

use super::give;
use super::holder::ClaimRight;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Start a task that is ready
#[derive(clap::Args)]
pub(crate) struct TaskStart {
    /// The task, or the start of its id
    task: String,

    /// What the work starts from
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
    /// The task, or the start of its id
    task: String,

    /// What came of it
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,

    /// Something it left behind; may be given more than once
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

/// Say that a task can't go on
///
/// Tasks that depend on it keep waiting; `status` and `task list` say so.
#[derive(clap::Args)]
pub(crate) struct TaskBlock {
    /// The task, or the start of its id
    task: String,

    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: String,

    /// What has to be known for it to go on
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
            context.out.line(format_args!("  waiting for it: {waiting}"))?;
        }
        Ok(())
    }
}

/// Dependents of a blocked task are counted up to this number.
const WAITING_COUNTED: usize = 1_000;

/// Let a blocked task go on
#[derive(clap::Args)]
pub(crate) struct TaskUnblock {
    /// The task, or the start of its id
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
/// Open tasks that depend on it are blocked with that as the reason, so that none waits for what is
/// gone; with --release they no longer wait for it. The log keeps what happened.
#[derive(clap::Args)]
pub(crate) struct TaskDelete {
    /// The task, or the start of its id
    task: String,

    /// Let the tasks that depend on it go on without it
    #[arg(long)]
    release: bool,

    /// Even if it is active, whoever holds it
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
