use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;

use super::{give, silence};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Make a task ready again whose holder is gone
///
/// Watches the holder for the whole of its lease. A heartbeat in that time, and it is refused.
#[derive(clap::Args)]
pub(crate) struct TaskRequeueArgs {
    /// The task, or the start of its id
    task: String,

    /// At once, whoever holds it
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
