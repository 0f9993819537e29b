//! `hookloop hooks …`

use clap::Subcommand;
use hookloop_core::command::Command as Ask;
use hookloop_core::hook::{Handler, Hook};

use super::Context;
use crate::error::CliError;
use crate::output::{BOLD, Cell, DIM, Output, Result, plain};
use crate::wire::{HookJson, handler_name};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List hooks in the order they run
    List,
    /// Show one hook
    Show { name: String },
    /// Switch a hook on, whatever the configuration says
    Enable { name: String },
    /// Switch a hook off, whatever the configuration says
    Disable { name: String },
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self {
            Command::List => list(context),
            Command::Show { name } => show(context, &name),
            Command::Enable { name } => switch(context, name, true),
            Command::Disable { name } => switch(context, name, false),
        }
    }
}

fn list(context: &mut Context) -> Result {
    let registry = context.project()?.hooks()?;
    let mut hooks: Vec<&Hook> = registry.list().iter().collect();
    hooks.sort_by_key(|hook| hook.priority);
    let out = &mut context.out;
    if out.json {
        return out.json(&hooks.iter().map(|hook| HookJson::from(*hook)).collect::<Vec<_>>());
    }
    let row = |hook: &&Hook| {
        vec![
            Cell::new(hook.priority),
            Cell::new(if hook.enabled { "on" } else { "off" }),
            Cell::new(&hook.name).style(BOLD),
            Cell::new(handler_name(&hook.handler)).style(DIM),
            Cell::new(hook.events.join(", ")),
        ]
    };
    let rows: Vec<_> = hooks.iter().map(row).collect();
    out.table(&["priority", "", "name", "", "events"], &rows)
}

fn show(context: &mut Context, name: &str) -> Result {
    let project = context.project()?;
    let registry = project.hooks()?;
    let Some(hook) = registry.get(name) else {
        let message = format!("there is no hook `{name}`");
        return Err(CliError::refused(message).hint("hookloop hooks list"));
    };
    match context.out.json {
        true => context.out.json(&HookJson::from(hook)),
        false => print(&mut context.out, hook),
    }
}

fn print(out: &mut Output, hook: &Hook) -> Result {
    out.line(format_args!("{BOLD}{}{BOLD:#}", hook.name))?;
    let state = if hook.enabled { "on" } else { "off" };
    let mut field = |name: &str, value: &str| match value.is_empty() {
        true => Ok(()),
        false => out.line(format_args!("{DIM}{name:>13}{DIM:#}  {}", plain(value))),
    };
    field("", hook.metadata.description.as_deref().unwrap_or(""))?;
    field("state", state)?;
    field("priority", &hook.priority.to_string())?;
    field("events", &hook.events.join(", "))?;
    field("handler", handler_name(&hook.handler))?;
    if let Handler::Declared(actions) = &hook.handler {
        field("actions", &actions.iter().map(|action| action.kind).collect::<Vec<_>>().join(", "))?;
    }
    field("author", hook.metadata.author.as_deref().unwrap_or(""))?;
    field("version", hook.metadata.version.as_deref().unwrap_or(""))
}

fn switch(context: &mut Context, name: String, enabled: bool) -> Result {
    let project = context.project()?;
    project.execute(&Ask::SwitchHook { name: name.clone(), enabled })?;
    if context.out.json {
        return show(context, &name);
    }
    let state = if enabled { "on" } else { "off" };
    context.out.line(format_args!("{name} is {state}"))
}
