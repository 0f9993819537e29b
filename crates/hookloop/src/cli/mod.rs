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
use context::CommandContext;

use crate::diagnostics::{self, DiagnosticsMode, StartedSink, VerbosityArgs};
use crate::error::{CliError, CliResult};

/// The command that agents' own hooks run.
pub(crate) const HOOK: &str = "hook";

/// Hooks, gates and a task graph for coding agents.
#[derive(Parser)]
#[command(name = "hookloop", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,

    #[command(subcommand)]
    command: TopCommand,
}

#[derive(clap::Args)]
struct GlobalArgs {
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
    color: ColourChoice,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum ColourChoice {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum TopCommand {
    Init(init::InitArgs),
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Watch(watch::WatchArgs),
    Pause(pause::PauseArgs),
    Stop(stop::StopArgs),
    Message(message::MessageArgs),
    /// What sessions there are, and what happened in them
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    Merge(merge::MergeArgs),
    Worker(worker::WorkerArgs),
    /// See and steer all workers that share a store
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// The worktrees that tasks are worked on in
    #[command(subcommand)]
    Worktrees(worktrees::WorktreesCommand),
    Inbox(inbox::InboxArgs),
    Why(why::WhyArgs),
    Usage(usage::UsageArgs),
    /// Add tasks, move them along, look at them
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Tasks that come again
    #[command(subcommand)]
    Schedule(schedule::ScheduleSubcommand),
    /// See and switch the hooks that follow events
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    /// See the agents that can do the work, and agree to what a repository has for them
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    Install(install::InstallArgs),
    Uninstall(uninstall::UninstallArgs),
    Hook(hook::HookArgs),
    Mcp(mcp::McpArgs),
    Serve(serve::ServeArgs),
    Log(log::EventLogArgs),
    Dispatch(dispatch::DispatchArgs),
    /// A server to try a shared store with; keys and permissions for one
    #[command(subcommand)]
    Nats(nats::NatsCommand),
    Status(status::StatusArgs),
    /// Take over another tool's configuration
    #[command(subcommand)]
    Import(import::ImportCommand),
    Policy(policy::PolicyArgs),
    Doctor(doctor::DoctorArgs),
    Verify(verify::VerifyArgs),
    Rebuild(rebuild::RebuildArgs),
    Schema(schema::SchemaArgs),
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
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

impl TopCommand {
    /// An agent reads the exit code of a wrong command line as a hook's refusal.
    fn as_own_failure(&self, error: CliError) -> CliError {
        if let TopCommand::Hook(_) = self { error.into_refused() } else { error }
    }
}

impl Cli {
    pub(crate) fn wants_json(&self) -> bool {
        self.global.json
    }

    /// Returns the place of this command's diagnostics.
    fn diagnostics(&self) -> DiagnosticsMode {
        let has_screen = match &self.command {
            TopCommand::Run(args) => args.has_screen(),
            TopCommand::Resume(args) => args.has_screen(),
            TopCommand::Watch(_) => true,
            _ => false,
        };
        let has_log_lines = match &self.command {
            TopCommand::Run(args) => args.has_log_lines(),
            TopCommand::Resume(args) => args.has_log_lines(),
            TopCommand::Worker(args) => args.has_log_lines(),
            TopCommand::Serve(args) => args.has_log_lines(),
            _ => false,
        };
        match &self.command {
            _ if has_screen && !self.global.json => DiagnosticsMode::FileOnly,
            // Other lines would break the format of the log.
            _ if has_log_lines => DiagnosticsMode::FileOnly,
            // An agent reads the standard error of these.
            TopCommand::Mcp(_) | TopCommand::Hook(_) => DiagnosticsMode::FileOnly,
            TopCommand::Run(_)
            | TopCommand::Resume(_)
            | TopCommand::Merge(_)
            | TopCommand::Worker(_)
            | TopCommand::Serve(_)
            | TopCommand::Dispatch(_) => DiagnosticsMode::LongRunning,
            _ => DiagnosticsMode::OnRequest,
        }
    }

    /// Runs the command and returns the exit code.
    pub(crate) fn run(self) -> CliResult<u8> {
        let decisions: Vec<_> = self.controlled().collect();
        let verbosity = self.global.verbosity;
        let mode = self.diagnostics();
        let mut context = CommandContext::new(self.global);
        let context = &mut context;
        let sink = diagnostics::start(verbosity, mode, || context.diagnostics_directory())
            .map_err(|error| self.command.as_own_failure(error))?;
        for action in decisions {
            context.authorize(action)?;
        }
        let done = match self.command {
            TopCommand::Init(args) => args.run(context),
            TopCommand::Demo(args) => args.run(context),
            TopCommand::Run(args) => args.run(context),
            TopCommand::Resume(args) => args.run(context),
            TopCommand::Watch(args) => args.run(context),
            TopCommand::Pause(args) => args.run(context),
            TopCommand::Stop(args) => args.run(context),
            TopCommand::Message(args) => args.run(context),
            TopCommand::Sessions(command) => command.run(context),
            TopCommand::Merge(args) => args.run(context),
            TopCommand::Worker(args) => args.run(context),
            TopCommand::Fleet(command) => command.run(context),
            TopCommand::Worktrees(command) => command.run(context),
            TopCommand::Inbox(args) => args.run(context),
            TopCommand::Why(args) => args.run(context),
            TopCommand::Usage(args) => args.run(context),
            TopCommand::Task(command) => command.run(context),
            TopCommand::Schedule(command) => command.run(context),
            TopCommand::Hooks(command) => command.run(context),
            TopCommand::Agents(command) => command.run(context),
            TopCommand::Install(args) => args.run(context),
            TopCommand::Uninstall(args) => args.run(context),
            TopCommand::Hook(args) => args.run(context),
            TopCommand::Mcp(args) => args.run(context),
            TopCommand::Serve(args) => args.run(context),
            TopCommand::Log(args) => args.run(context),
            TopCommand::Dispatch(args) => args.run(context),
            TopCommand::Nats(command) => command.run(context),
            TopCommand::Status(args) => args.run(context),
            TopCommand::Import(command) => command.run(context),
            TopCommand::Policy(args) => args.run(context),
            TopCommand::Doctor(args) => args.run(context),
            TopCommand::Verify(args) => args.run(context),
            TopCommand::Rebuild(args) => args.run(context),
            TopCommand::Schema(args) => args.run(context),
            TopCommand::Reference(args) => args.run(context),
            TopCommand::Completions(args) => args.run(context),
            TopCommand::Man(args) => args.run(context),
        };
        let done = done.map_err(|error| context.with_log_path(error));
        // On standard error the message follows anyway.
        if let (Err(error), StartedSink::File) = (&done, sink) {
            tracing::error!(kind = error.kind().name(), error = error.message(), "command failed");
        }
        // With a log, the error is a log line too: other lines would break its format.
        if let (Err(error), Some(logger)) = (&done, context.log) {
            return Ok(logger.error(error));
        }
        done?;
        context.out.flush()?;
        Ok(context.exit)
    }
}
