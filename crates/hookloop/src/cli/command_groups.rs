//! The commands in groups, in the order of the help.

use clap::Subcommand;

use super::context::CommandContext;
use super::{
    agents, checks, completions, demo, dispatch, doctor, fleet, gc, hook, hooks, import, inbox,
    init, install, log, man, mcp, merge, message, nats, pause, policy, rebuild, reference, resume,
    rooms, run, schedule, schema, serve, sessions, status, stop, task, undo, uninstall, usage,
    verify, watch, why, worker, worktrees,
};
use crate::error::CliResult;

/// Setup and sessions.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum SessionGroup {
    Init(init::InitArgs),
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Watch(watch::WatchArgs),
    Pause(pause::PauseArgs),
    Stop(stop::StopArgs),
    Message(message::MessageArgs),
    Undo(undo::UndoArgs),
    Restore(undo::RestoreArgs),
    /// List sessions and show their events
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
}

/// Work of many sessions and workers.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum FleetGroup {
    Merge(merge::MergeArgs),
    Worker(worker::WorkerArgs),
    /// Show and direct the workers that share a store
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// List and remove the worktrees of tasks
    #[command(subcommand)]
    Worktrees(worktrees::WorktreesCommand),
    Inbox(inbox::InboxArgs),
    Why(why::WhyArgs),
    Checks(checks::ChecksArgs),
    Usage(usage::UsageArgs),
}

/// Tasks, hooks and agents.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum TaskGroup {
    /// Add, claim, change and show tasks
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Manage recurring tasks
    #[command(subcommand)]
    Schedule(schedule::ScheduleSubcommand),
    /// Show, trust, run and enable hooks
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    /// List, remove and enter the rooms in which gates run
    #[command(subcommand)]
    Rooms(rooms::RoomsCommand),
    /// List agents and trust agent files of a repository
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
}

/// Commands for agents and other programs that use hookloop.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum IntegrationGroup {
    Install(install::InstallArgs),
    Uninstall(uninstall::UninstallArgs),
    Hook(hook::HookArgs),
    Mcp(mcp::McpArgs),
    Serve(serve::ServeArgs),
}

/// The log and configuration of a project, and documentation of the program.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum ProjectGroup {
    Log(log::EventLogArgs),
    Dispatch(dispatch::DispatchArgs),
    /// Run a local NATS server; create keys and permissions
    #[command(subcommand)]
    Nats(nats::NatsCommand),
    Status(status::StatusArgs),
    /// Import configuration and tasks of another tool
    #[command(subcommand)]
    Import(import::ImportCommand),
    Policy(policy::PolicyArgs),
    Doctor(doctor::DoctorArgs),
    Gc(gc::GcArgs),
    Verify(verify::VerifyArgs),
    Rebuild(rebuild::RebuildArgs),
    Schema(schema::SchemaArgs),
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl SessionGroup {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            SessionGroup::Init(args) => args.run(context),
            SessionGroup::Demo(args) => args.run(context),
            SessionGroup::Run(args) => args.run(context),
            SessionGroup::Resume(args) => args.run(context),
            SessionGroup::Watch(args) => args.run(context),
            SessionGroup::Pause(args) => args.run(context),
            SessionGroup::Stop(args) => args.run(context),
            SessionGroup::Message(args) => args.run(context),
            SessionGroup::Undo(args) => args.run(context),
            SessionGroup::Restore(args) => args.run(context),
            SessionGroup::Sessions(command) => command.run(context),
        }
    }
}

impl FleetGroup {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            FleetGroup::Merge(args) => args.run(context),
            FleetGroup::Worker(args) => args.run(context),
            FleetGroup::Fleet(command) => command.run(context),
            FleetGroup::Worktrees(command) => command.run(context),
            FleetGroup::Inbox(args) => args.run(context),
            FleetGroup::Why(args) => args.run(context),
            FleetGroup::Checks(args) => args.run(context),
            FleetGroup::Usage(args) => args.run(context),
        }
    }
}

impl TaskGroup {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            TaskGroup::Task(command) => command.run(context),
            TaskGroup::Schedule(command) => command.run(context),
            TaskGroup::Hooks(command) => command.run(context),
            TaskGroup::Rooms(command) => command.run(context),
            TaskGroup::Agents(command) => command.run(context),
        }
    }
}

impl IntegrationGroup {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            IntegrationGroup::Install(args) => args.run(context),
            IntegrationGroup::Uninstall(args) => args.run(context),
            IntegrationGroup::Hook(args) => args.run(context),
            IntegrationGroup::Mcp(args) => args.run(context),
            IntegrationGroup::Serve(args) => args.run(context),
        }
    }
}

impl ProjectGroup {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            ProjectGroup::Log(args) => args.run(context),
            ProjectGroup::Dispatch(args) => args.run(context),
            ProjectGroup::Nats(command) => command.run(context),
            ProjectGroup::Status(args) => args.run(context),
            ProjectGroup::Import(command) => command.run(context),
            ProjectGroup::Policy(args) => args.run(context),
            ProjectGroup::Doctor(args) => args.run(context),
            ProjectGroup::Gc(args) => args.run(context),
            ProjectGroup::Verify(args) => args.run(context),
            ProjectGroup::Rebuild(args) => args.run(context),
            ProjectGroup::Schema(args) => args.run(context),
            ProjectGroup::Reference(args) => args.run(context),
            ProjectGroup::Completions(args) => args.run(context),
            ProjectGroup::Man(args) => args.run(context),
        }
    }
}
