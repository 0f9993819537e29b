//! The controlled action that each command is: a command without a row here does not compile.
//!
//! The check runs before a command does anything, so a refusal does not reveal whether a name exists. The engine checks
//! again at the decision.

use hookloop_core::authority::ControlledAction;

use super::command_groups::{FleetGroup, IntegrationGroup, ProjectGroup, SessionGroup, TaskGroup};
use super::{
    Cli, TopCommand, agents, fleet, hooks, import, inbox, nats, rooms, schedule, sessions, task,
    worktrees,
};

impl Cli {
    /// The decisions that this command line takes, if it takes any.
    pub(super) fn controlled(&self) -> impl Iterator<Item = ControlledAction> {
        let trust = self.global.trust.is_some().then_some(ControlledAction::TrustHooks);
        trust.into_iter().chain(self.command.controlled())
    }
}

impl TopCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            // Init trusts nothing and runs nothing for an agent; the demo has its own project and state.
            TopCommand::Session(SessionGroup::Init(_))
            | TopCommand::Session(SessionGroup::Demo(_)) => None,
            TopCommand::Session(SessionGroup::Run(_)) => Some(ControlledAction::StartSession),
            TopCommand::Session(SessionGroup::Resume(args)) => Some(args.controlled()),
            TopCommand::Session(SessionGroup::Pause(_)) => Some(ControlledAction::PauseSession),
            TopCommand::Session(SessionGroup::Stop(_)) => Some(ControlledAction::StopSession),
            TopCommand::Session(SessionGroup::Message(_)) => Some(ControlledAction::MessageAgent),
            TopCommand::Session(SessionGroup::Undo(_) | SessionGroup::Restore(_)) => {
                Some(ControlledAction::RestoreFiles)
            }
            TopCommand::Fleet(FleetGroup::Merge(_)) => Some(ControlledAction::MergeWork),
            TopCommand::Fleet(FleetGroup::Worker(_)) => Some(ControlledAction::StartWorker),
            TopCommand::Integration(IntegrationGroup::Serve(_)) => {
                Some(ControlledAction::ServeDashboard)
            }
            TopCommand::Project(ProjectGroup::Dispatch(_)) => {
                Some(ControlledAction::DispatchReactions)
            }
            TopCommand::Project(ProjectGroup::Gc(_)) => Some(ControlledAction::CollectGarbage),
            TopCommand::Project(ProjectGroup::Rebuild(_)) => Some(ControlledAction::RebuildView),
            TopCommand::Project(ProjectGroup::Verify(args)) => {
                args.accepts().then_some(ControlledAction::RebuildView)
            }
            TopCommand::Integration(IntegrationGroup::Install(args)) => {
                args.changes_settings().then_some(ControlledAction::InstallHooks)
            }
            TopCommand::Integration(IntegrationGroup::Uninstall(_)) => {
                Some(ControlledAction::InstallHooks)
            }
            TopCommand::Session(SessionGroup::Sessions(command)) => command.controlled(),
            TopCommand::Fleet(FleetGroup::Fleet(command)) => command.controlled(),
            TopCommand::Fleet(FleetGroup::Worktrees(command)) => command.controlled(),
            TopCommand::Fleet(FleetGroup::Inbox(args)) => args.controlled(),
            TopCommand::Task(TaskGroup::Task(command)) => command.controlled(),
            TopCommand::Task(TaskGroup::Schedule(command)) => command.controlled(),
            TopCommand::Task(TaskGroup::Hooks(command)) => command.controlled(),
            TopCommand::Task(TaskGroup::Rooms(command)) => command.controlled(),
            TopCommand::Task(TaskGroup::Agents(command)) => command.controlled(),
            TopCommand::Project(ProjectGroup::Nats(command)) => command.controlled(),
            TopCommand::Project(ProjectGroup::Import(command)) => command.controlled(),
            // The TUI checks at each deciding key; the MCP server and native hooks act for an agent.
            TopCommand::Session(SessionGroup::Watch(_))
            | TopCommand::Integration(IntegrationGroup::Mcp(_))
            | TopCommand::Integration(IntegrationGroup::Hook(_)) => None,
            TopCommand::Fleet(FleetGroup::Why(_))
            | TopCommand::Fleet(FleetGroup::Checks(_))
            | TopCommand::Fleet(FleetGroup::Usage(_))
            | TopCommand::Project(ProjectGroup::Log(_))
            | TopCommand::Project(ProjectGroup::Status(_))
            | TopCommand::Project(ProjectGroup::Policy(_))
            | TopCommand::Project(ProjectGroup::Doctor(_))
            | TopCommand::Project(ProjectGroup::Schema(_))
            | TopCommand::Project(ProjectGroup::Reference(_))
            | TopCommand::Project(ProjectGroup::Completions(_))
            | TopCommand::Project(ProjectGroup::Man(_)) => None,
        }
    }
}

impl task::TaskCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            task::TaskCommand::Complete(_) => Some(ControlledAction::CompleteTask),
            task::TaskCommand::Unblock(_) => Some(ControlledAction::UnblockTask),
            task::TaskCommand::Delete(_) => Some(ControlledAction::DeleteTask),
            task::TaskCommand::Dep(command) => command.controlled(),
            task::TaskCommand::Requeue(_) => Some(ControlledAction::OverrideClaim),
            task::TaskCommand::Import(_) => Some(ControlledAction::ImportTasks),
            task::TaskCommand::Block(args) => {
                args.forces().then_some(ControlledAction::OverrideClaim)
            }
            task::TaskCommand::Release(_)
            | task::TaskCommand::Add(_)
            | task::TaskCommand::Show(_)
            | task::TaskCommand::List(_)
            | task::TaskCommand::Ready(_)
            | task::TaskCommand::Start(_)
            | task::TaskCommand::Claim(_)
            | task::TaskCommand::Heartbeat(_)
            | task::TaskCommand::TakeOver(_)
            | task::TaskCommand::Note(_)
            | task::TaskCommand::Export(_)
            | task::TaskCommand::Graph(_) => None,
        }
    }
}

impl task::DependencyCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            task::DependencyCommand::Remove(_) => Some(ControlledAction::RemoveDependency),
            task::DependencyCommand::Add(_) => None,
        }
    }
}

impl hooks::HooksCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            hooks::HooksCommand::Trust(args) => {
                args.trusts().then_some(ControlledAction::TrustHooks)
            }
            hooks::HooksCommand::Enable { .. } | hooks::HooksCommand::Disable { .. } => {
                Some(ControlledAction::SwitchHook)
            }
            hooks::HooksCommand::List
            | hooks::HooksCommand::Show { .. }
            | hooks::HooksCommand::Explain(_)
            | hooks::HooksCommand::Run(_) => None,
        }
    }
}

impl agents::AgentsCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            agents::AgentsCommand::Trust(args) => {
                args.trusts().then_some(ControlledAction::TrustAgents)
            }
            agents::AgentsCommand::List(_) => None,
        }
    }
}

impl inbox::InboxArgs {
    fn controlled(&self) -> Option<ControlledAction> {
        match self.command.as_ref()? {
            inbox::InboxCommand::Answer(_) | inbox::InboxCommand::Abort(_) => {
                Some(ControlledAction::AnswerQuestion)
            }
            inbox::InboxCommand::Approve(_) => Some(ControlledAction::ApproveWork),
            inbox::InboxCommand::Dismiss(_) => Some(ControlledAction::DismissItem),
            inbox::InboxCommand::Notify(_) | inbox::InboxCommand::Test(_) => {
                Some(ControlledAction::SendNotifications)
            }
            inbox::InboxCommand::List(_) | inbox::InboxCommand::Show(_) => None,
        }
    }
}

impl schedule::ScheduleSubcommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            schedule::ScheduleSubcommand::Add(_)
            | schedule::ScheduleSubcommand::Pause(_)
            | schedule::ScheduleSubcommand::Resume(_)
            | schedule::ScheduleSubcommand::Remove(_)
            | schedule::ScheduleSubcommand::Run(_) => Some(ControlledAction::ManageSchedules),
            schedule::ScheduleSubcommand::List(_) | schedule::ScheduleSubcommand::Show(_) => None,
        }
    }
}

impl fleet::FleetCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            fleet::FleetCommand::Pause(_)
            | fleet::FleetCommand::Stop(_)
            | fleet::FleetCommand::Resume(_)
            | fleet::FleetCommand::Drain(_) => Some(ControlledAction::DirectFleet),
            fleet::FleetCommand::Budget(args) => {
                args.sets().then_some(ControlledAction::SetFleetBudget)
            }
            fleet::FleetCommand::Status(_) => None,
        }
    }
}

impl worktrees::WorktreesCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            worktrees::WorktreesCommand::Clean(_) => Some(ControlledAction::CleanWorktrees),
            worktrees::WorktreesCommand::List(_) => None,
        }
    }
}

impl rooms::RoomsCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            rooms::RoomsCommand::Clean(_) => Some(ControlledAction::CleanRooms),
            rooms::RoomsCommand::Shell(_) => Some(ControlledAction::EnterRoom),
            rooms::RoomsCommand::List(_) => None,
        }
    }
}

impl sessions::SessionsCommand {
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            sessions::SessionsCommand::List(_)
            | sessions::SessionsCommand::Show(_)
            | sessions::SessionsCommand::Trace(_) => None,
        }
    }
}

impl nats::NatsCommand {
    /// A server to try a store with holds nothing of a project that a person runs.
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            nats::NatsCommand::Up(_)
            | nats::NatsCommand::Down(_)
            | nats::NatsCommand::Key(_)
            | nats::NatsCommand::Permissions(_) => None,
        }
    }
}

impl import::ImportCommand {
    /// Each of them may write a configuration and tasks.
    fn controlled(&self) -> Option<ControlledAction> {
        match self {
            import::ImportCommand::Claude(_)
            | import::ImportCommand::Codemie(_)
            | import::ImportCommand::Iteratr(_)
            | import::ImportCommand::Lefthook(_)
            | import::ImportCommand::Octopoid(_)
            | import::ImportCommand::Ralph(_)
            | import::ImportCommand::Beads(_)
            | import::ImportCommand::VibeKanban(_)
            | import::ImportCommand::TaskCopilot(_)
            | import::ImportCommand::AutomationHooks(_) => Some(ControlledAction::ImportTasks),
        }
    }
}
