//! `task depend` and `task undepend`.

use hookloop_core::command::Command;

use super::give;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Make a task wait for another
#[derive(clap::Args)]
pub(crate) struct TaskDepend {
    /// The task that waits
    task: String,

    /// The task it waits for
    #[arg(long, value_name = "TASK")]
    on: String,
}

impl TaskDepend {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let task = ids::resolve(&project, &self.task)?;
        let on = ids::resolve(&project, &self.on)?;
        let what = format!("Now waits for {on}:");
        give(context, &project, &what, &Command::AddDependency { task, on })?;
        Ok(())
    }
}

/// Let a task no longer wait for another
#[derive(clap::Args)]
pub(crate) struct TaskUndepend {
    /// The task that waits
    task: String,

    /// The task it waits for
    #[arg(long, value_name = "TASK")]
    on: String,
}

impl TaskUndepend {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let task = ids::resolve(&project, &self.task)?;
        let on = ids::resolve(&project, &self.on)?;
        let what = format!("No longer waits for {on}:");
        give(context, &project, &what, &Command::RemoveDependency { task, on })?;
        Ok(())
    }
}
