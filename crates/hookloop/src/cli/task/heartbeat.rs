use serde_json::json;

use super::holder::EpochArg;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;

/// Send a heartbeat for a claimed task
///
/// The command is refused once the claim is over: another claimant may have the task.
#[derive(clap::Args)]
pub(crate) struct TaskHeartbeatArgs {
    /// Id of the task, or the start of it
    task: String,

    #[command(flatten)]
    epoch: EpochArg,
}

impl TaskHeartbeatArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let Some(epoch) = self.epoch.of(&id)? else {
            let usage = CliError::usage("a heartbeat needs the epoch of its claim: --epoch N");
            return Err(usage.hint(format!("hookloop task show {id}")));
        };
        project.heartbeat(&id, epoch)?;
        if context.out.json {
            context.out.json(&json!({"id": id, "epoch": epoch}))
        } else {
            context.out.line(format_args!("Heartbeat {id}  epoch {epoch}"))
        }
    }
}
