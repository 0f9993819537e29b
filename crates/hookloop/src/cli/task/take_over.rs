use super::holder::ClaimantArgs;
use super::{claim, silence};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Take over a claimed task whose claimant misses its heartbeat
///
/// Watches the claim for the whole of its lease. If a heartbeat arrives in that time, the command is refused.
#[derive(clap::Args)]
pub(crate) struct TaskTakeOverArgs {
    /// Id of the task, or the start of it
    task: String,

    #[command(flatten)]
    holder: ClaimantArgs,
}

impl TaskTakeOverArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let silent = silence::wait_for(&project, &id)?;
        let agent = self.holder.agent();
        let claimed = project.take_over(&id, silent.epoch, &agent, self.holder.lease)?;
        claim::show(context, &project, "Took over", &self.holder, &claimed)
    }
}
