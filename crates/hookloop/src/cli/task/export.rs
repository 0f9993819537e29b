use hookloop_engine::bulk::{self, ImportLine};

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Print all tasks as JSON lines for `task import`
#[derive(clap::Args)]
pub(crate) struct TaskExportArgs {}

impl TaskExportArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        bulk::export(&project, |line: &ImportLine| context.out.json(line))
    }
}
