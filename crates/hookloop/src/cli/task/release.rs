use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;

use super::holder::Epoch;
use super::{Context, give};
use crate::error::Result;
use crate::ids;

/// Give a claimed task back: it is ready for another
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The task, or the start of its id
    task: String,

    #[command(flatten)]
    epoch: Epoch,

    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let fence = self.epoch.of(&id)?.map_or(Fence::None, Fence::Epoch);
        let reason = ReleaseReason::Released;
        let note = self.reason;
        give(context, &project, "Released", &Command::ReleaseTask { id, fence, reason, note })?;
        Ok(())
    }
}
