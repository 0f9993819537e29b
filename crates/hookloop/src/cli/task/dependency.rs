//! `task dep add` and `task dep remove`.

use clap::Subcommand;
use hookloop_core::command::Command;

use super::give;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum DependencyCommand {
    Add(DependencyAdd),
    Remove(DependencyRemove),
}

impl DependencyCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            DependencyCommand::Add(args) => args.run(context),
            DependencyCommand::Remove(args) => args.run(context),
        }
    }
}

/// Make a task depend on another task
///
/// The task is not ready before the other task is completed. A cycle is refused. Example:
/// `hookloop task dep add printer --on parser`
#[derive(clap::Args)]
pub(crate) struct DependencyAdd {
    /// Id of the task that waits, or the start of it
    task: String,

    /// Id of the task that must be completed first, or the start of it
    #[arg(long, value_name = "TASK")]
    on: String,
}

impl DependencyAdd {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let task = ids::resolve(&project, &self.task)?;
        let on = ids::resolve(&project, &self.on)?;
        let what = format!("Now waits for {on}:");
        give(context, &project, &what, &Command::AddDependency { task, on })?;
        Ok(())
    }
}

/// Remove the dependency of a task on another task
#[derive(clap::Args)]
pub(crate) struct DependencyRemove {
    /// Id of the task that waits, or the start of it
    task: String,

    /// Id of the task that it depends on, or the start of it
    #[arg(long, value_name = "TASK")]
    on: String,
}

impl DependencyRemove {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let task = ids::resolve(&project, &self.task)?;
        let on = ids::resolve(&project, &self.on)?;
        let what = format!("No longer waits for {on}:");
        give(context, &project, &what, &Command::RemoveDependency { task, on })?;
        Ok(())
    }
}
