use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::remark::TaskRemark;

use super::give;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::ids;

/// Add a note to a task
///
/// Agents get the notes with the task. `task show` prints the last notes, and the log contains all of them.
#[derive(clap::Args)]
pub(crate) struct TaskNoteArgs {
    /// Id of the task, or the start of it
    task: String,

    /// Text of the note
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
