//! The controlled action that each command is: a command without a row here does not compile.
//!
//! The check runs before a command does anything, so a refusal does not reveal whether a name exists. The engine checks
//! again at the decision.

use hookloop_core::authority::ControlledAction as Action;

use super::{
    Cli, Command, agents, fleet, hooks, import, inbox, nats, schedule, sessions, task, worktrees,
};

impl Cli {
    /// The decisions that this command line takes, if it takes any.
    pub(super) fn controlled(&self) -> impl Iterator<Item = Action> {
        let trust = self.global.trust.is_some().then_some(Action::TrustHooks);
        trust.into_iter().chain(self.command.controlled())
    }
}

impl Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            // Init trusts nothing and runs nothing for an agent; the demo has its own project and state.
            Command::Init(_) | Command::Demo(_) => None,
            Command::Run(_) => Some(Action::StartSession),
            Command::Resume(args) => Some(args.controlled()),
            Command::Pause(_) => Some(Action::PauseSession),
            Command::Stop(_) => Some(Action::StopSession),
            Command::Message(_) => Some(Action::MessageAgent),
            Command::Merge(_) => Some(Action::MergeWork),
            Command::Worker(_) => Some(Action::StartWorker),
            Command::Serve(_) => Some(Action::ServeDashboard),
            Command::Dispatch(_) => Some(Action::DispatchReactions),
            Command::Rebuild(_) => Some(Action::RebuildView),
            Command::Verify(args) => args.accepts().then_some(Action::RebuildView),
            Command::Install(args) => args.changes_settings().then_some(Action::InstallHooks),
            Command::Uninstall(_) => Some(Action::InstallHooks),
            Command::Sessions(command) => command.controlled(),
            Command::Fleet(command) => command.controlled(),
            Command::Worktrees(command) => command.controlled(),
            Command::Inbox(args) => args.controlled(),
            Command::Task(command) => command.controlled(),
            Command::Schedule(command) => command.controlled(),
            Command::Hooks(command) => command.controlled(),
            Command::Agents(command) => command.controlled(),
            Command::Nats(command) => command.controlled(),
            Command::Import(command) => command.controlled(),
            // The TUI checks at each deciding key; the MCP server and native hooks act for an agent.
            Command::Watch(_) | Command::Mcp(_) | Command::Hook(_) => None,
            Command::Why(_)
            | Command::Usage(_)
            | Command::Log(_)
            | Command::Status(_)
            | Command::Policy(_)
            | Command::Doctor(_)
            | Command::Schema(_)
            | Command::Reference(_)
            | Command::Completions(_)
            | Command::Man(_) => None,
        }
    }
}

impl task::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            task::Command::Complete(_) => Some(Action::CompleteTask),
            task::Command::Unblock(_) => Some(Action::UnblockTask),
            task::Command::Delete(_) => Some(Action::DeleteTask),
            task::Command::Undepend(_) => Some(Action::RemoveDependency),
            task::Command::Requeue(_) => Some(Action::OverrideClaim),
            task::Command::Import(_) => Some(Action::ImportTasks),
            task::Command::Block(args) => args.forces().then_some(Action::OverrideClaim),
            task::Command::Release(_)
            | task::Command::Add(_)
            | task::Command::Show(_)
            | task::Command::List(_)
            | task::Command::Ready(_)
            | task::Command::Start(_)
            | task::Command::Claim(_)
            | task::Command::Heartbeat(_)
            | task::Command::Steal(_)
            | task::Command::Note(_)
            | task::Command::Depend(_)
            | task::Command::Export(_)
            | task::Command::Graph(_) => None,
        }
    }
}

impl hooks::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            hooks::Command::Trust(args) => args.trusts().then_some(Action::TrustHooks),
            hooks::Command::Enable { .. } | hooks::Command::Disable { .. } => {
                Some(Action::SwitchHook)
            }
            hooks::Command::List
            | hooks::Command::Show { .. }
            | hooks::Command::Explain(_)
            | hooks::Command::Run(_) => None,
        }
    }
}

impl agents::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            agents::Command::Trust(args) => args.trusts().then_some(Action::TrustAgents),
            agents::Command::List(_) => None,
        }
    }
}

impl inbox::InboxArgs {
    fn controlled(&self) -> Option<Action> {
        match self.command.as_ref()? {
            inbox::Command::Answer(_) | inbox::Command::Quit(_) => Some(Action::AnswerQuestion),
            inbox::Command::Approve(_) => Some(Action::ApproveWork),
            inbox::Command::Dismiss(_) => Some(Action::DismissItem),
            inbox::Command::Notify(_) | inbox::Command::Test(_) => Some(Action::SendNotifications),
            inbox::Command::List(_) | inbox::Command::Show(_) => None,
        }
    }
}

impl schedule::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            schedule::Command::Add(_)
            | schedule::Command::Pause(_)
            | schedule::Command::Resume(_)
            | schedule::Command::Remove(_)
            | schedule::Command::Run(_) => Some(Action::ManageSchedules),
            schedule::Command::List(_) | schedule::Command::Show(_) => None,
        }
    }
}

impl fleet::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            fleet::Command::Pause(_)
            | fleet::Command::Stop(_)
            | fleet::Command::Resume(_)
            | fleet::Command::Drain(_) => Some(Action::DirectFleet),
            fleet::Command::Budget(args) => args.sets().then_some(Action::SetFleetBudget),
            fleet::Command::Status(_) => None,
        }
    }
}

impl worktrees::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            worktrees::Command::Clean(_) => Some(Action::CleanWorktrees),
            worktrees::Command::List(_) => None,
        }
    }
}

impl sessions::Command {
    fn controlled(&self) -> Option<Action> {
        match self {
            sessions::Command::List(_)
            | sessions::Command::Show(_)
            | sessions::Command::Trace(_) => None,
        }
    }
}

impl nats::Command {
    /// A server to try a store with holds nothing of a project that a person runs.
    fn controlled(&self) -> Option<Action> {
        match self {
            nats::Command::Up(_)
            | nats::Command::Down(_)
            | nats::Command::Key(_)
            | nats::Command::Permissions(_) => None,
        }
    }
}

impl import::Command {
    /// Each of them may write a configuration and tasks.
    fn controlled(&self) -> Option<Action> {
        match self {
            import::Command::Claude(_)
            | import::Command::Codemie(_)
            | import::Command::Iteratr(_)
            | import::Command::Lefthook(_)
            | import::Command::Octopoid(_)
            | import::Command::Ralph(_)
            | import::Command::Beads(_)
            | import::Command::VibeKanban(_)
            | import::Command::TaskCopilot(_)
            | import::Command::AutomationHooks(_) => Some(Action::ImportTasks),
        }
    }
}
