//! The controlled action that each command is: a command without a row here does not compile.
//!
//! The check runs before a command does anything, so a refusal does not reveal whether a name exists. The engine checks
//! again at the decision.

use hookloop_core::authority::ControlledAction as Action;

use super::{
    Cli, TopCommand, agents, fleet, hooks, import, inbox, nats, schedule, sessions, task, worktrees,
};

impl Cli {
    /// The decisions that this command line takes, if it takes any.
    pub(super) fn controlled(&self) -> impl Iterator<Item = Action> {
        let trust = self.global.trust.is_some().then_some(Action::TrustHooks);
        trust.into_iter().chain(self.command.controlled())
    }
}

impl TopCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            // Init trusts nothing and runs nothing for an agent; the demo has its own project and state.
            TopCommand::Init(_) | TopCommand::Demo(_) => None,
            TopCommand::Run(_) => Some(Action::StartSession),
            TopCommand::Resume(args) => Some(args.controlled()),
            TopCommand::Pause(_) => Some(Action::PauseSession),
            TopCommand::Stop(_) => Some(Action::StopSession),
            TopCommand::Message(_) => Some(Action::MessageAgent),
            TopCommand::Merge(_) => Some(Action::MergeWork),
            TopCommand::Worker(_) => Some(Action::StartWorker),
            TopCommand::Serve(_) => Some(Action::ServeDashboard),
            TopCommand::Dispatch(_) => Some(Action::DispatchReactions),
            TopCommand::Rebuild(_) => Some(Action::RebuildView),
            TopCommand::Verify(args) => args.accepts().then_some(Action::RebuildView),
            TopCommand::Install(args) => args.changes_settings().then_some(Action::InstallHooks),
            TopCommand::Uninstall(_) => Some(Action::InstallHooks),
            TopCommand::Sessions(command) => command.controlled(),
            TopCommand::Fleet(command) => command.controlled(),
            TopCommand::Worktrees(command) => command.controlled(),
            TopCommand::Inbox(args) => args.controlled(),
            TopCommand::Task(command) => command.controlled(),
            TopCommand::Schedule(command) => command.controlled(),
            TopCommand::Hooks(command) => command.controlled(),
            TopCommand::Agents(command) => command.controlled(),
            TopCommand::Nats(command) => command.controlled(),
            TopCommand::Import(command) => command.controlled(),
            // The TUI checks at each deciding key; the MCP server and native hooks act for an agent.
            TopCommand::Watch(_) | TopCommand::Mcp(_) | TopCommand::Hook(_) => None,
            TopCommand::Why(_)
            | TopCommand::Usage(_)
            | TopCommand::Log(_)
            | TopCommand::Status(_)
            | TopCommand::Policy(_)
            | TopCommand::Doctor(_)
            | TopCommand::Schema(_)
            | TopCommand::Reference(_)
            | TopCommand::Completions(_)
            | TopCommand::Man(_) => None,
        }
    }
}

impl task::TaskCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            task::TaskCommand::Complete(_) => Some(Action::CompleteTask),
            task::TaskCommand::Unblock(_) => Some(Action::UnblockTask),
            task::TaskCommand::Delete(_) => Some(Action::DeleteTask),
            task::TaskCommand::Undepend(_) => Some(Action::RemoveDependency),
            task::TaskCommand::Requeue(_) => Some(Action::OverrideClaim),
            task::TaskCommand::Import(_) => Some(Action::ImportTasks),
            task::TaskCommand::Block(args) => args.forces().then_some(Action::OverrideClaim),
            task::TaskCommand::Release(_)
            | task::TaskCommand::Add(_)
            | task::TaskCommand::Show(_)
            | task::TaskCommand::List(_)
            | task::TaskCommand::Ready(_)
            | task::TaskCommand::Start(_)
            | task::TaskCommand::Claim(_)
            | task::TaskCommand::Heartbeat(_)
            | task::TaskCommand::Steal(_)
            | task::TaskCommand::Note(_)
            | task::TaskCommand::Depend(_)
            | task::TaskCommand::Export(_)
            | task::TaskCommand::Graph(_) => None,
        }
    }
}

impl hooks::HooksCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            hooks::HooksCommand::Trust(args) => args.trusts().then_some(Action::TrustHooks),
            hooks::HooksCommand::Enable { .. } | hooks::HooksCommand::Disable { .. } => {
                Some(Action::SwitchHook)
            }
            hooks::HooksCommand::List
            | hooks::HooksCommand::Show { .. }
            | hooks::HooksCommand::Explain(_)
            | hooks::HooksCommand::Run(_) => None,
        }
    }
}

impl agents::AgentsCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            agents::AgentsCommand::Trust(args) => args.trusts().then_some(Action::TrustAgents),
            agents::AgentsCommand::List(_) => None,
        }
    }
}

impl inbox::InboxArgs {
    fn controlled(&self) -> Option<Action> {
        match self.command.as_ref()? {
            inbox::InboxCommand::Answer(_) | inbox::InboxCommand::Quit(_) => {
                Some(Action::AnswerQuestion)
            }
            inbox::InboxCommand::Approve(_) => Some(Action::ApproveWork),
            inbox::InboxCommand::Dismiss(_) => Some(Action::DismissItem),
            inbox::InboxCommand::Notify(_) | inbox::InboxCommand::Test(_) => {
                Some(Action::SendNotifications)
            }
            inbox::InboxCommand::List(_) | inbox::InboxCommand::Show(_) => None,
        }
    }
}

impl schedule::ScheduleSubcommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            schedule::ScheduleSubcommand::Add(_)
            | schedule::ScheduleSubcommand::Pause(_)
            | schedule::ScheduleSubcommand::Resume(_)
            | schedule::ScheduleSubcommand::Remove(_)
            | schedule::ScheduleSubcommand::Run(_) => Some(Action::ManageSchedules),
            schedule::ScheduleSubcommand::List(_) | schedule::ScheduleSubcommand::Show(_) => None,
        }
    }
}

impl fleet::FleetCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            fleet::FleetCommand::Pause(_)
            | fleet::FleetCommand::Stop(_)
            | fleet::FleetCommand::Resume(_)
            | fleet::FleetCommand::Drain(_) => Some(Action::DirectFleet),
            fleet::FleetCommand::Budget(args) => args.sets().then_some(Action::SetFleetBudget),
            fleet::FleetCommand::Status(_) => None,
        }
    }
}

impl worktrees::WorktreesCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            worktrees::WorktreesCommand::Clean(_) => Some(Action::CleanWorktrees),
            worktrees::WorktreesCommand::List(_) => None,
        }
    }
}

impl sessions::SessionsCommand {
    fn controlled(&self) -> Option<Action> {
        match self {
            sessions::SessionsCommand::List(_)
            | sessions::SessionsCommand::Show(_)
            | sessions::SessionsCommand::Trace(_) => None,
        }
    }
}

impl nats::NatsCommand {
    /// A server to try a store with holds nothing of a project that a person runs.
    fn controlled(&self) -> Option<Action> {
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
    fn controlled(&self) -> Option<Action> {
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
            | import::ImportCommand::AutomationHooks(_) => Some(Action::ImportTasks),
        }
    }
}
