use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;

use super::{give, silence};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Make a task ready again whose claimant misses its heartbeat
///
/// Watches the claim for the whole of its lease. If a heartbeat arrives in that time, the command is refused.
#[derive(clap::Args)]
pub(crate) struct TaskRequeueArgs {
    /// Id of the task, or the start of it
    task: String,

    /// Override the claim at once, without waiting for the lease
    #[arg(long)]
    force: bool,
}

impl TaskRequeueArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let fence = if self.force {
            Fence::Override
        } else {
            Fence::Epoch(silence::wait_for(&project, &id)?.epoch)
        };
        let reason = ReleaseReason::Requeued;
        let command = Command::ReleaseTask { id, fence, reason, note: None };
        give(context, &project, "Requeued", &command)?;
        Ok(())
    }
}
