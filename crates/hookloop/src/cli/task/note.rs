use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::remark::TaskRemark;

use super::give;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Leave a note on a task
///
/// Agents read it with the task; `task show` has the last ones, the log has all.
#[derive(clap::Args)]
pub(crate) struct TaskNoteArgs {
    /// The task, or the start of its id
    task: String,

    /// What is to be said
    text: String,
}

impl TaskNoteArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = ids::resolve(&project, &self.task)?;
        // A note does not change the claim of the task.
        let remark = TaskRemark::Note(self.text);
        let fence = Fence::Override;
        give(context, &project, "Noted", &Command::RemarkTask { id, remark, fence })?;
        Ok(())
    }
}
