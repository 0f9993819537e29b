use hookloop_core::schedule::{Overlap, Schedule, ScheduleCommand, ScheduleName, Timetable};

use super::super::task::SpecArgs;
use super::order;
use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Add a task again and again, when a cron pattern says so
///
/// Whoever is there makes it: a dispatcher, any command, a session that takes its next task. Each time makes one task, however many machines
/// there are; of the times that pass while nobody is there, the last one.
#[derive(clap::Args)]
pub(crate) struct ScheduleAddArgs {
    /// What the schedule is called; its tasks have it and the time (in UTC) as their id
    name: ScheduleName,

    /// When: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "PATTERN")]
    cron: String,

    /// Whose clock the pattern is about, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,

    /// While the last task is open: `skip` makes no other, `allow` does
    #[arg(long, value_name = "WHAT", default_value = "skip")]
    overlap: Overlap,

    /// What should be achieved
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
