//! `hookloop task …`

mod add;
mod change;
mod claim;
mod dependency;
mod export;
mod graph;
mod heartbeat;
mod holder;
mod import;
mod list;
mod note;
mod release;
mod requeue;
mod show;
mod silence;
mod take_over;

pub(super) use add::SpecArgs;
use clap::Subcommand;
pub(super) use dependency::DependencyCommand;
use hookloop_core::command::Command as Ask;
use hookloop_core::id::TaskId;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::command_outcome::{CommandOutcome, ReactionsLeft};
use hookloop_engine::project::Project;

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::json_output::DoneJson;
use crate::output::state_style;
use crate::sanitize::plain;

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum TaskCommand {
    Add(add::TaskAddArgs),
    Show(show::TaskShowArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Ready(list::ReadyArgs),
    Start(change::TaskStart),
    Claim(claim::TaskClaimArgs),
    Heartbeat(heartbeat::TaskHeartbeatArgs),
    Release(release::TaskReleaseArgs),
    Requeue(requeue::TaskRequeueArgs),
    TakeOver(take_over::TaskTakeOverArgs),
    Complete(change::TaskComplete),
    Block(change::TaskBlock),
    Unblock(change::TaskUnblock),
    Delete(change::TaskDelete),
    Note(note::TaskNoteArgs),
    /// Add and remove dependencies between tasks
    #[command(subcommand)]
    Dep(DependencyCommand),
    Import(import::TaskImportArgs),
    Export(export::TaskExportArgs),
    Graph(graph::TaskGraphArgs),
}

impl TaskCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            TaskCommand::Add(args) => args.run(context),
            TaskCommand::Show(args) => args.run(context),
            TaskCommand::List(args) => args.run(context),
            TaskCommand::Ready(args) => args.run(context),
            TaskCommand::Start(args) => args.run(context),
            TaskCommand::Note(args) => args.run(context),
            TaskCommand::Claim(args) => args.run(context),
            TaskCommand::Heartbeat(args) => args.run(context),
            TaskCommand::Release(args) => args.run(context),
            TaskCommand::Requeue(args) => args.run(context),
            TaskCommand::TakeOver(args) => args.run(context),
            TaskCommand::Complete(args) => args.run(context),
            TaskCommand::Block(args) => args.run(context),
            TaskCommand::Unblock(args) => args.run(context),
            TaskCommand::Delete(args) => args.run(context),
            TaskCommand::Dep(command) => command.run(context),
            TaskCommand::Import(args) => args.run(context),
            TaskCommand::Export(args) => args.run(context),
            TaskCommand::Graph(args) => args.run(context),
        }
    }
}

/// Gives a command, prints its result, and runs the reactions.
fn give(
    context: &mut CommandContext,
    project: &Project,
    verb: &str,
    ask: &Ask,
) -> CliResult<CommandOutcome> {
    let mut done = project.execute(ask)?;
    if done.pending {
        project.react_here(&mut done)?;
    }
    if context.out.json {
        context.out.json(&DoneJson::from(&done))?;
    } else {
        show_done(context, project, verb, ask.task(), &done)?;
    }
    follow_up(context, project, &done)?;
    Ok(done)
}

/// Runs the reactions after the answer is printed.
fn follow_up(context: &mut CommandContext, project: &Project, done: &CommandOutcome) -> CliResult {
    if done.pending { context.finish(project) } else { Ok(()) }
}

/// Names the obstacle of a task that is not ready.
fn waits(task: &Task) -> String {
    match task.waits_until() {
        Some(time) => format!("from {}", time.brief()),
        None => format!("waits for {}", task.open_dependencies),
    }
}

/// Failures of hooks that are printed with a command's result.
const FAILURES_SHOWN: usize = 5;

fn show_done(
    context: &mut CommandContext,
    project: &Project,
    verb: &str,
    id: Option<&TaskId>,
    done: &CommandOutcome,
) -> CliResult {
    let out = &mut context.out;
    match (&done.task, id) {
        (Some(task), _) => {
            let style = state_style(task.state);
            let goal = plain(&task.spec.goal);
            // "Completed x" is enough; "Added x" is not.
            let state = match (task.state, task.open_dependencies) {
                (TaskState::Active | TaskState::Completed | TaskState::Blocked, _) => String::new(),
                (TaskState::Created, 0) => format!("  {style}{}{style:#}", waits(task)),
                (TaskState::Created, open) => format!("  {style}waits for {open}{style:#}"),
                (state, _) => format!("  {style}{state}{style:#}"),
            };
            out.line(format_args!("{verb} {}{state}  {goal}", task.id))?;
        }
        (None, Some(id)) => out.line(format_args!("{verb} {id}"))?,
        (None, None) => {}
    }
    let groups = [
        ("  now ready:", &done.readied),
        ("  added by a hook:", &done.added),
        ("  blocked by this:", &done.blocked),
    ];
    for (label, ids) in groups {
        const SHOWN: usize = 10;
        for id in ids.iter().take(SHOWN) {
            let goal = project.read(|view| Ok(view.task(id)?.map(|row| row.task.spec.goal)))?;
            out.line(format_args!("{label} {id}  {}", plain(&goal.unwrap_or_default())))?;
        }
        if ids.len() > SHOWN {
            out.line(format_args!("{label} … and {} more", ids.len() - SHOWN))?;
        }
    }
    for failure in done.failures.iter().take(FAILURES_SHOWN) {
        let red = anstyle::AnsiColor::Red.on_default();
        out.line(format_args!("  {red}{}{red:#}", plain(failure)))?;
    }
    if let Some(more) = done.failures.len().checked_sub(FAILURES_SHOWN)
        && more > 0
    {
        out.line(format_args!("  … and {more} more: hookloop log"))?;
    }
    match &done.left {
        // An agent or a hook needs no such line.
        None | Some(ReactionsLeft::Above) => Ok(()),
        Some(left) => out.line(format_args!("  {left}")),
    }
}
