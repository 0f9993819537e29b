//! `hookloop hooks …`

mod explain;
mod run;
pub(super) mod trust;
mod visible;

use clap::Subcommand;
use hookloop_core::command::Command as Ask;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::point::Point;
use hookloop_core::refusal::Refusal;
use hookloop_core::task::Task;
use hookloop_engine::project::Project;
use hookloop_engine::store::HookRuns;
use hookloop_hooks::trust::HookStanding;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::json_output::{HookJson, HookLine, handler_name};
use crate::output::{BOLD, CommandOutput, DIM, TableCell};
use crate::sanitize::plain;

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum HooksCommand {
    /// List hooks in the order in which they run
    List,
    /// Show one hook
    Show {
        /// Name of the hook
        #[arg(value_name = "HOOK")]
        name: String,
    },
    Explain(explain::HookExplainArgs),
    Trust(trust::HookTrustArgs),
    Run(run::HookRunArgs),
    /// Enable a hook, and override the configuration
    Enable {
        /// Name of the hook
        #[arg(value_name = "HOOK")]
        name: String,
    },
    /// Disable a hook, and override the configuration
    Disable {
        /// Name of the hook
        #[arg(value_name = "HOOK")]
        name: String,
    },
}

impl HooksCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            HooksCommand::List => list(context),
            HooksCommand::Show { name } => show(context, &name),
            HooksCommand::Explain(args) => args.run(context),
            HooksCommand::Trust(args) => args.run(context),
            HooksCommand::Run(args) => args.run(context),
            HooksCommand::Enable { name } => switch(context, name, true),
            HooksCommand::Disable { name } => switch(context, name, false),
        }
    }
}

fn list(context: &mut CommandContext) -> CliResult {
    let project = context.project_to_read()?;
    let registry = project.hooks()?;
    let runs = project.read(|view| view.hook_runs())?;
    let mut hooks: Vec<&Hook> = registry.list().iter().collect();
    hooks.sort_by_key(|hook| hook.priority);
    let lines: Vec<HookLine<'_>> = hooks.iter().map(|hook| line(&project, &runs, hook)).collect();
    let out = &mut context.out;
    if out.json {
        return out.json(&lines.iter().map(HookJson::from).collect::<Vec<_>>());
    }
    let row = |line: &HookLine<'_>| {
        let hook = line.hook;
        let state = match (hook.enabled, line.standing) {
            (false, _) => "off",
            (true, HookStanding::Own | HookStanding::Trusted) => "on",
            (true, standing) => standing.name(),
        };
        let name = match &hook.task_type {
            Some(task_type) => format!("{} ({task_type})", hook.name),
            None => hook.name.clone(),
        };
        let runs = match line.runs.runs {
            0 => String::new(),
            runs => format!(
                "{runs} runs, {} failed, {} blocked, p50 {} ms",
                line.runs.failures, line.runs.blocks, line.runs.p50_ms
            ),
        };
        vec![
            TableCell::new(hook.priority),
            TableCell::new(state),
            TableCell::new(name).style(BOLD),
            TableCell::new(handler_name(&hook.handler)).style(DIM),
            TableCell::new(points(hook)),
            TableCell::new(runs).style(DIM),
        ]
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    out.table(&["priority", "", "name", "", "points", ""], &rows)
}

/// Returns a hook with its trust state and the results of its runs.
fn line<'a>(project: &Project, runs: &[HookRuns], hook: &'a Hook) -> HookLine<'a> {
    let standing = project.runner().map_or(HookStanding::Own, |runner| runner.standing(hook));
    let runs = runs.iter().find(|runs| runs.name == hook.name).cloned().unwrap_or_default();
    HookLine { hook, standing, runs }
}

/// The task that an id stands for, which may be shortened.
fn find_task(project: &Project, id: &str) -> CliResult<Task> {
    let id = ids::resolve(project, id)?;
    let task = project.read(|view| view.task(&id))?.map(|row| row.task);
    // It was there a moment ago.
    task.ok_or_else(|| CliError::refused(Refusal::NoSuchTask(id)))
}

fn points(hook: &Hook) -> String {
    hook.points.iter().map(Point::name).collect::<Vec<_>>().join(", ")
}

fn show(context: &mut CommandContext, name: &str) -> CliResult {
    let project = context.project_to_read()?;
    let registry = project.hooks()?;
    let Some(hook) = registry.get(name) else {
        let message = format!("there is no hook `{name}`");
        return Err(CliError::refused(message).hint("hookloop hooks list"));
    };
    let runs = project.read(|view| view.hook_runs())?;
    if context.out.json {
        context.out.json(&HookJson::from(&line(&project, &runs, hook)))
    } else {
        print(&mut context.out, hook)
    }
}

fn print(out: &mut CommandOutput, hook: &Hook) -> CliResult {
    out.line(format_args!("{BOLD}{}{BOLD:#}", hook.name))?;
    let state = if hook.enabled { "on" } else { "off" };
    let mut field = |name: &str, value: &str| {
        if value.is_empty() {
            Ok(())
        } else {
            out.line(format_args!("{DIM}{name:>13}{DIM:#}  {}", plain(value)))
        }
    };
    field("", hook.metadata.description.as_deref().unwrap_or(""))?;
    field("state", state)?;
    field("priority", &hook.priority.to_string())?;
    field("points", &points(hook))?;
    field("handler", handler_name(&hook.handler))?;
    if let HookHandler::Declared(actions) = &hook.handler {
        field("actions", &actions.iter().map(|action| action.kind).collect::<Vec<_>>().join(", "))?;
    }
    field("author", hook.metadata.author.as_deref().unwrap_or(""))?;
    field("version", hook.metadata.version.as_deref().unwrap_or(""))
}

fn switch(context: &mut CommandContext, name: String, enabled: bool) -> CliResult {
    let project = context.project()?;
    project.execute(&Ask::SwitchHook { name: name.clone(), enabled })?;
    if context.out.json {
        return show(context, &name);
    }
    let state = if enabled { "on" } else { "off" };
    context.out.line(format_args!("{name} is {state}"))
}
