//! `hookloop schedule …`

mod add;

use clap::Subcommand;
use hookloop_core::command::Command as Order;
use hookloop_core::schedule::{
    OccurrenceResult, ScheduleCommand, ScheduleFired, ScheduleName, ScheduleStanding,
};
use hookloop_core::time::Timestamp;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::project::Project;
use serde::Serialize;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::json_output::DoneJson;
use crate::output::{BOLD, CommandOutput, DIM, TableCell};
use crate::sanitize::{plain, plain_lines};

/// Slots ahead that `show` names.
const AHEAD: usize = 3;

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum ScheduleSubcommand {
    Add(Box<add::ScheduleAddArgs>),
    #[command(visible_alias = "ls")]
    List(ScheduleList),
    Show(ScheduleShow),
    Pause(SchedulePause),
    Resume(ScheduleResume),
    Remove(ScheduleRemove),
    Run(ScheduleRun),
}

impl ScheduleSubcommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            ScheduleSubcommand::Add(args) => args.run(context),
            ScheduleSubcommand::List(args) => args.run(context),
            ScheduleSubcommand::Show(args) => args.run(context),
            ScheduleSubcommand::Pause(args) => args.run(context),
            ScheduleSubcommand::Resume(args) => args.run(context),
            ScheduleSubcommand::Remove(args) => args.run(context),
            ScheduleSubcommand::Run(args) => args.run(context),
        }
    }
}

/// List schedules with their next and last occurrence
#[derive(clap::Args)]
pub(crate) struct ScheduleList {}

/// Show a schedule, its task and its next occurrences
#[derive(clap::Args)]
pub(crate) struct ScheduleShow {
    /// Name of the schedule
    name: ScheduleName,
}

/// Pause a schedule
///
/// Occurrences that are due while the schedule is paused are skipped.
#[derive(clap::Args)]
pub(crate) struct SchedulePause {
    /// Name of the schedule
    name: ScheduleName,
}

/// Resume a paused schedule
#[derive(clap::Args)]
pub(crate) struct ScheduleResume {
    /// Name of the schedule
    name: ScheduleName,
}

/// Remove a schedule, and keep its tasks
#[derive(clap::Args)]
pub(crate) struct ScheduleRemove {
    /// Name of the schedule
    name: ScheduleName,
}

/// Add a schedule's task now
///
/// The command adds the task also if the schedule is not due, is paused, or has an open task.
#[derive(clap::Args)]
pub(crate) struct ScheduleRun {
    /// Name of the schedule
    name: ScheduleName,
}

#[derive(Serialize)]
struct ScheduleJson<'a> {
    name: &'a str,
    cron: &'a str,
    tz: &'a str,
    overlap: &'static str,
    paused: bool,
    next: Option<Timestamp>,
    last: Option<FiredJson<'a>>,
    goal: &'a str,
    description: &'a str,
    r#type: Option<&'a str>,
    labels: &'a [String],
    priority: u8,
    deliverables: &'a [String],
    may_change: &'a [String],
}

#[derive(Serialize)]
struct FiredJson<'a> {
    occurrence: Timestamp,
    by_hand: bool,
    /// The task that it made; none if it was skipped.
    task: Option<&'a str>,
    /// The open task because of which it was skipped.
    skipped_for: Option<&'a str>,
    missed_from: Option<Timestamp>,
}

impl<'a> From<&'a ScheduleFired> for FiredJson<'a> {
    fn from(fired: &'a ScheduleFired) -> FiredJson<'a> {
        let (task, skipped_for) = match &fired.came {
            OccurrenceResult::TaskId(id) => (Some(id.as_str()), None),
            OccurrenceResult::SkippedFor(id) => (None, Some(id.as_str())),
        };
        let ScheduleFired { occurrence, by_hand, missed_from, .. } = *fired;
        FiredJson { occurrence, by_hand, task, skipped_for, missed_from }
    }
}

impl<'a> From<&'a ScheduleStanding> for ScheduleJson<'a> {
    fn from(standing: &'a ScheduleStanding) -> ScheduleJson<'a> {
        let table = &standing.schedule.timetable;
        let task = &standing.schedule.task;
        ScheduleJson {
            name: standing.name.as_str(),
            cron: &table.cron,
            tz: table.tz.as_deref().unwrap_or("UTC"),
            overlap: standing.schedule.overlap.name(),
            paused: standing.is_paused,
            next: standing.next,
            last: standing.last.as_ref().map(FiredJson::from),
            goal: &task.goal,
            description: &task.description,
            r#type: task.kind.as_deref(),
            labels: &task.labels,
            priority: task.priority.get(),
            deliverables: &task.deliverables,
            may_change: &task.may_change,
        }
    }
}

impl ScheduleList {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let schedules = project.read(|view| view.schedules())?;
        let out = &mut context.out;
        if out.json {
            let list: Vec<ScheduleJson<'_>> = schedules.iter().map(ScheduleJson::from).collect();
            return out.json(&list);
        }
        if schedules.is_empty() {
            return if out.terminal {
                out.line(format_args!("{DIM}No schedules yet. Add one: hookloop schedule add NAME --cron \"0 3 * * *\" --goal \"…\"{DIM:#}"))
            } else {
                Ok(())
            };
        }
        let cells = schedules.iter().map(|standing| {
            vec![
                TableCell::new(&standing.name),
                TableCell::new(&standing.schedule.timetable),
                TableCell::new(due(standing)),
                TableCell::new(last(standing)).style(DIM),
                TableCell::new(&standing.schedule.task.goal),
            ]
        });
        let cells: Vec<Vec<TableCell>> = cells.collect();
        out.table(&["name", "when", "next", "last", "goal"], &cells)
    }
}

/// When it is due, in a word.
fn due(standing: &ScheduleStanding) -> String {
    match (standing.is_paused, standing.next) {
        (true, _) => "paused".to_owned(),
        (false, Some(next)) => next.brief(),
        (false, None) => "never".to_owned(),
    }
}

fn last(standing: &ScheduleStanding) -> String {
    match standing.last.as_ref().map(|fired| (&fired.came, fired.occurrence)) {
        None => String::new(),
        Some((OccurrenceResult::TaskId(id), _)) => id.to_string(),
        Some((OccurrenceResult::SkippedFor(id), occurrence)) => {
            format!("{} skipped for {id}", occurrence.brief())
        }
    }
}

impl ScheduleShow {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let standing = existing(&project, &self.name)?;
        if context.out.json {
            context.out.json(&ScheduleJson::from(&standing))
        } else {
            print(&standing, &mut context.out)
        }
    }
}

fn print(standing: &ScheduleStanding, out: &mut CommandOutput) -> CliResult {
    let task = &standing.schedule.task;
    out.line(format_args!("{BOLD}{}{BOLD:#}", plain(&task.goal)))?;
    out.line(format_args!(
        "{}  {}",
        standing.name,
        plain(&standing.schedule.timetable.to_string())
    ))?;
    let field = |out: &mut CommandOutput, name: &str, value: &str| {
        if value.is_empty() {
            Ok(())
        } else {
            out.line(format_args!("{DIM}{name:>13}{DIM:#}  {}", plain_lines(value, 15)))
        }
    };
    field(out, "description", &task.description)?;
    field(out, "type", task.kind.as_deref().unwrap_or(""))?;
    field(out, "labels", &task.labels.join(", "))?;
    field(out, "priority", &task.priority.get().to_string())?;
    for deliverable in &task.deliverables {
        field(out, "deliverable", deliverable)?;
    }
    field(out, "may change", &task.may_change.join(", "))?;
    field(out, "overlap", standing.schedule.overlap.name())?;
    field(out, "next", &due(standing))?;
    let mut ahead = standing.next;
    for _ in 1..AHEAD {
        let after = ahead.map(|slot| standing.schedule.timetable.next_after(slot));
        // A timetable without a further time is shown as far as it goes.
        ahead = after.and_then(|next| next.ok().flatten());
        field(out, "", &ahead.map_or(String::new(), Timestamp::brief))?;
    }
    field(out, "last", &last(standing))
}

fn existing(project: &Project, name: &ScheduleName) -> CliResult<ScheduleStanding> {
    let none = || {
        CliError::refused(format!("there is no schedule `{name}`")).hint("hookloop schedule list")
    };
    project.read(|view| view.schedule(name))?.ok_or_else(none)
}

/// Gives an order about a schedule, and shows how it stands.
fn order(
    context: &mut CommandContext,
    name: ScheduleName,
    verb: &str,
    ask: ScheduleCommand,
) -> CliResult {
    let project = context.project()?;
    project.execute(&Order::Schedule { name: name.clone(), ask })?;
    let standing = existing(&project, &name)?;
    if context.out.json {
        context.out.json(&ScheduleJson::from(&standing))
    } else {
        let when = standing.schedule.timetable.to_string();
        let next = due(&standing);
        let when = plain(&when);
        context.out.line(format_args!("{verb} {name}  {when}  {DIM}next{DIM:#} {next}"))
    }
}

impl SchedulePause {
    fn run(self, context: &mut CommandContext) -> CliResult {
        order(context, self.name, "Paused", ScheduleCommand::Pause)
    }
}

impl ScheduleResume {
    fn run(self, context: &mut CommandContext) -> CliResult {
        order(context, self.name, "Resumed", ScheduleCommand::Resume)
    }
}

impl ScheduleRemove {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let standing = existing(&project, &self.name)?;
        project.execute(&Order::Schedule { name: self.name, ask: ScheduleCommand::Remove })?;
        if context.out.json {
            context.out.json(&ScheduleJson::from(&standing))
        } else {
            context.out.line(format_args!("Removed {}", standing.name))
        }
    }
}

impl ScheduleRun {
    fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let ask = ScheduleCommand::Run { task: project.new_task_id() };
        let mut done: CommandOutcome =
            project.execute(&Order::Schedule { name: self.name, ask })?;
        if done.pending {
            project.react_here(&mut done)?;
        }
        match (context.out.json, &done.task) {
            (true, _) => context.out.json(&DoneJson::from(&done))?,
            (false, Some(task)) => {
                context.out.line(format_args!("Added {}  {}", task.id, plain(&task.spec.goal)))?;
            }
            (false, None) => {}
        }
        if done.pending { context.finish(&project) } else { Ok(()) }
    }
}
