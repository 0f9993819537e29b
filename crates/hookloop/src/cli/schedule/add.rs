use hookloop_core::schedule::{Overlap, Schedule, ScheduleCommand, ScheduleName, Timetable};

use super::super::task::SpecArgs;
use super::order;
use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Add a task repeatedly, at the times of a cron expression
///
/// A dispatcher, any command that changes something, or a session that claims its next task adds the task. Each
/// occurrence adds one task, also with many machines. If several occurrences pass while no process runs, only the last
/// one adds a task.
#[derive(clap::Args)]
pub(crate) struct ScheduleAddArgs {
    /// Name of the schedule; the id of a due task is this name and the time in UTC
    name: ScheduleName,

    /// Cron expression: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "EXPRESSION")]
    cron: String,

    /// Time zone of the cron expression, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,

    /// Behaviour while the last task is open: `skip` or `allow`
    #[arg(long, value_name = "POLICY", default_value = "skip")]
    overlap: Overlap,

    /// Goal of the task
    #[arg(long, value_name = "TEXT")]
    goal: String,

    #[command(flatten)]
    rest: SpecArgs,
}

impl ScheduleAddArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let schedule = Schedule {
            timetable: Timetable { cron: self.cron, tz: Some(self.tz) },
            overlap: self.overlap,
            task: self.rest.spec(self.goal),
        };
        order(context, self.name, "Added", ScheduleCommand::Set(Box::new(schedule)))
    }
}
