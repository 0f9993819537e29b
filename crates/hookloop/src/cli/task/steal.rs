use super::holder::ClaimantArgs;
use super::{claim, silence};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Take a claimed task over whose holder is gone
///
/// Watches the holder for the whole of its lease. A heartbeat in that time, and it is refused.
#[derive(clap::Args)]
pub(crate) struct TaskStealArgs {
    /// The task, or the start of its id
    task: String,

    #[command(flatten)]
    holder: ClaimantArgs,
}

impl TaskStealArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let silent = silence::wait_for(&project, &id)?;
        let agent = self.holder.agent();
        let claimed = project.take_over(&id, silent.epoch, &agent, self.holder.lease)?;
        claim::show(context, &project, "Took over", &self.holder, &claimed)
    }
}
