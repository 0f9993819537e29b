use serde_json::json;

use super::holder::EpochArg;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;

/// Show that the work on a claimed task goes on
///
/// Refused once the claim is over: someone else may have the task now.
#[derive(clap::Args)]
pub(crate) struct TaskHeartbeatArgs {
    /// The task, or the start of its id
    task: String,

    #[command(flatten)]
    epoch: EpochArg,
}

impl TaskHeartbeatArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        let Some(epoch) = self.epoch.of(&id)? else {
            let usage = CliError::usage("a heartbeat names the claim that it is for: --epoch N");
            return Err(usage.hint(format!("hookloop task show {id}")));
        };
        project.heartbeat(&id, epoch)?;
        if context.out.json {
            context.out.json(&json!({"id": id, "epoch": epoch}))
        } else {
            context.out.line(format_args!("Alive {id}  epoch {epoch}"))
        }
    }
}
