//! The command line: one file per command.

mod agents;
mod authority;
mod completions;
mod context;
mod demo;
mod dispatch;
mod doctor;
mod fleet;
mod hook;
mod hooks;
mod import;
mod inbox;
mod init;
mod install;
mod log;
mod man;
mod mcp;
mod merge;
mod message;
mod nats;
mod pause;
mod policy;
mod rebuild;
mod reference;
mod resume;
mod run;
mod schedule;
mod schema;
mod serve;
mod session;
mod sessions;
mod status;
mod stop;
mod task;
mod trace_notices;
mod traces;
mod uninstall;
mod usage;
mod value_parsers;
mod verify;
mod watch;
mod why;
mod worker;
mod worktrees;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::error::Result;
use context::Context;

/// The command that agents' own hooks run.
pub(crate) const HOOK: &str = "hook";

/// Hooks, gates and a task graph for coding agents.
#[derive(Parser)]
#[command(name = "hookloop", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args)]
struct Global {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    /// Work in this directory's project instead of the current one's
    #[arg(short = 'C', long, global = true, value_name = "DIR", num_args = 0..=1)]
    #[arg(default_missing_value = ".")]
    project: Option<PathBuf>,

    /// Run the repository's hooks this time if this is their digest (`hookloop hooks trust --show`)
    #[arg(long, global = true, value_name = "DIGEST", hide_short_help = true)]
    trust: Option<String>,

    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Colour,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Demo(demo::Args),
    Run(run::Args),
    Resume(resume::Args),
    Watch(watch::Args),
    Pause(pause::Args),
    Stop(stop::Args),
    Message(message::Args),
    /// What sessions there are, and what happened in them
    #[command(subcommand)]
    Sessions(sessions::Command),
    Merge(merge::Args),
    Worker(worker::Args),
    /// See and steer all workers that share a store
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// The worktrees that tasks are worked on in
    #[command(subcommand)]
    Worktrees(worktrees::Command),
    Inbox(inbox::InboxArgs),
    Why(why::Args),
    Usage(usage::Args),
    /// Add tasks, move them along, look at them
    #[command(subcommand)]
    Task(task::Command),
    /// Tasks that come again
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// See and switch the hooks that follow events
    #[command(subcommand)]
    Hooks(hooks::Command),
    /// See the agents that can do the work, and agree to what a repository has for them
    #[command(subcommand)]
    Agents(agents::Command),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Hook(hook::Args),
    Mcp(mcp::Args),
    Serve(serve::Args),
    Log(log::Args),
    Dispatch(dispatch::Args),
    /// A server to try a shared store with; keys and permissions for one
    #[command(subcommand)]
    Nats(nats::Command),
    Status(status::Args),
    /// Take over another tool's configuration
    #[command(subcommand)]
    Import(import::Command),
    Policy(policy::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Rebuild(rebuild::Args),
    Schema(schema::Args),
    #[command(hide = true)]
    Reference(reference::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Tools for git hooks that are not imported: a gate runs them.
const GIT_HOOK_TOOLS: [&str; 4] = ["husky", "pre-commit", "prek", "git-hooks"];

/// Returns the hint for an unknown name after `hookloop import`; none for any other mistake.
pub(crate) fn unknown_importer(error: &clap::Error, parser: &clap::Command) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let mut words = std::env::args_os().skip(1).skip_while(|word| word != "import").skip(1);
    if !words.any(|word| word == name.as_str()) {
        return None;
    }
    let import = parser.get_subcommands().find(|command| command.get_name() == "import")?;
    let importers = import.get_subcommands().map(clap::Command::get_name);
    let importers: Vec<&str> = importers.filter(|name| *name != "help").collect();
    let importers = format!("importers: {}", importers.join(", "));
    Some(if GIT_HOOK_TOOLS.contains(&name.as_str()) {
        format!("keep {name}, and let a `stop` gate run it: docs/from/git-hooks.md; {importers}")
    } else {
        format!("{importers}; for git hooks see docs/from/git-hooks.md")
    })
}

impl Cli {
    pub(crate) fn wants_json(&self) -> bool {
        self.global.json
    }

    /// Runs the command and returns the exit code.
    pub(crate) fn run(self) -> Result<u8> {
        let decisions: Vec<_> = self.controlled().collect();
        let mut context = Context::new(self.global);
        let context = &mut context;
        for action in decisions {
            context.authorize(action)?;
        }
        let done = match self.command {
            Command::Init(args) => args.run(context),
            Command::Demo(args) => args.run(context),
            Command::Run(args) => args.run(context),
            Command::Resume(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Pause(args) => args.run(context),
            Command::Stop(args) => args.run(context),
            Command::Message(args) => args.run(context),
            Command::Sessions(command) => command.run(context),
            Command::Merge(args) => args.run(context),
            Command::Worker(args) => args.run(context),
            Command::Fleet(command) => command.run(context),
            Command::Worktrees(command) => command.run(context),
            Command::Inbox(args) => args.run(context),
            Command::Why(args) => args.run(context),
            Command::Usage(args) => args.run(context),
            Command::Task(command) => command.run(context),
            Command::Schedule(command) => command.run(context),
            Command::Hooks(command) => command.run(context),
            Command::Agents(command) => command.run(context),
            Command::Install(args) => args.run(context),
            Command::Uninstall(args) => args.run(context),
            Command::Hook(args) => args.run(context),
            Command::Mcp(args) => args.run(context),
            Command::Serve(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Dispatch(args) => args.run(context),
            Command::Nats(command) => command.run(context),
            Command::Status(args) => args.run(context),
            Command::Import(command) => command.run(context),
            Command::Policy(args) => args.run(context),
            Command::Doctor(args) => args.run(context),
            Command::Verify(args) => args.run(context),
            Command::Rebuild(args) => args.run(context),
            Command::Schema(args) => args.run(context),
            Command::Reference(args) => args.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(context),
        };
        let done = done.map_err(|error| context.with_log_path(error));
        // With a log, the error is a log line too: other lines would break its format.
        if let (Err(error), Some(logger)) = (&done, context.log) {
            return Ok(logger.error(error));
        }
        done?;
        context.out.flush()?;
        Ok(context.exit)
    }
}
