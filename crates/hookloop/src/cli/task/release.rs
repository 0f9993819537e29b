use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;

use super::give;
use super::holder::EpochArg;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Release a claimed task, so that it is ready again
#[derive(clap::Args)]
pub(crate) struct TaskReleaseArgs {
    /// Id of the task, or the start of it
    task: String,

    #[command(flatten)]
    epoch: EpochArg,

    /// Reason
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

impl TaskReleaseArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let fence = self.epoch.of(&id)?.map_or(Fence::None, Fence::Epoch);
        let reason = ReleaseReason::Released;
        let note = self.reason;
        give(context, &project, "Released", &Command::ReleaseTask { id, fence, reason, note })?;
        Ok(())
    }
}
