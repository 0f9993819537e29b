use hookloop_engine::bulk::{self, Line};

use crate::cli::context::CommandContext;
use crate::error::Result;

/// Write all tasks as JSON lines, as `task import` reads them
#[derive(clap::Args)]
pub(crate) struct TaskExportArgs {}

impl TaskExportArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result {
        let project = context.project_to_read()?;
        bulk::export(&project, |line: &Line| context.out.json(line))
    }
}
