//! The decisions that only some actors may make: one table for every front end.
//!
//! The command line, MCP, the dashboard, the TUI and native hooks first call
//! [`ControlledAction::is_allowed_to`]. So a refusal does not reveal whether the object of the
//! decision exists.

use std::fmt;

use crate::claim::Fence;
use crate::command::Command;
use crate::remark::TaskRemark;

/// The kinds of actors that ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActorKind {
    /// A user at a terminal, in a script of their own, or logged in to the dashboard.
    Person,
    /// A process below an agent that a session started.
    SessionAgent,
    /// An agent that its user started, and the processes below it.
    ExternalSession,
    /// A process below a hook or a gate.
    Hook,
    /// `hookloop worker` itself, not the agents that it starts.
    Worker,
    /// `hookloop dispatch` itself, not the hooks that it runs.
    Dispatcher,
}

impl ActorKind {
    pub const ALL: [ActorKind; 6] = [
        ActorKind::Person,
        ActorKind::SessionAgent,
        ActorKind::ExternalSession,
        ActorKind::Hook,
        ActorKind::Worker,
        ActorKind::Dispatcher,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ActorKind::Person => "person",
            ActorKind::SessionAgent => "session agent",
            ActorKind::ExternalSession => "external session",
            ActorKind::Hook => "hook",
            ActorKind::Worker => "worker",
            ActorKind::Dispatcher => "dispatcher",
        }
    }
}

/// A decision that not every actor may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ControlledAction {
    TrustHooks,
    TrustAgents,
    SwitchHook,
    CompleteTask,
    OverrideClaim,
    DeleteTask,
    UnblockTask,
    RemoveDependency,
    ImportTasks,
    ApproveWork,
    AllowTestChanges,
    AnswerQuestion,
    DismissItem,
    StartSession,
    ResumeSession,
    RaiseLimits,
    PauseSession,
    StopSession,
    MessageAgent,
    ManageSchedules,
    MergeWork,
    RecordDelivery,
    DispatchReactions,
    SendNotifications,
    StartWorker,
    DirectFleet,
    SetFleetBudget,
    ServeDashboard,
    CleanWorktrees,
    CleanRooms,
    EnterRoom,
    CollectGarbage,
    RestoreFiles,
    RebuildView,
    InstallHooks,
}

/// The name of an action, and the actors other than a person that may take it.
struct AuthorityRow {
    /// Follows "only a person can".
    words: &'static str,
    others: &'static [ActorKind],
}

const NOBODY_ELSE: &[ActorKind] = &[];
const SERVICES: &[ActorKind] = &[ActorKind::Worker, ActorKind::Dispatcher];
const WORKERS: &[ActorKind] = &[ActorKind::Worker];

impl ControlledAction {
    pub const ALL: [ControlledAction; 35] = [
        ControlledAction::TrustHooks,
        ControlledAction::TrustAgents,
        ControlledAction::SwitchHook,
        ControlledAction::CompleteTask,
        ControlledAction::OverrideClaim,
        ControlledAction::DeleteTask,
        ControlledAction::UnblockTask,
        ControlledAction::RemoveDependency,
        ControlledAction::ImportTasks,
        ControlledAction::ApproveWork,
        ControlledAction::AllowTestChanges,
        ControlledAction::AnswerQuestion,
        ControlledAction::DismissItem,
        ControlledAction::StartSession,
        ControlledAction::ResumeSession,
        ControlledAction::RaiseLimits,
        ControlledAction::PauseSession,
        ControlledAction::StopSession,
        ControlledAction::MessageAgent,
        ControlledAction::ManageSchedules,
        ControlledAction::MergeWork,
        ControlledAction::RecordDelivery,
        ControlledAction::DispatchReactions,
        ControlledAction::SendNotifications,
        ControlledAction::StartWorker,
        ControlledAction::DirectFleet,
        ControlledAction::SetFleetBudget,
        ControlledAction::ServeDashboard,
        ControlledAction::CleanWorktrees,
        ControlledAction::CleanRooms,
        ControlledAction::EnterRoom,
        ControlledAction::CollectGarbage,
        ControlledAction::RestoreFiles,
        ControlledAction::RebuildView,
        ControlledAction::InstallHooks,
    ];

    fn row(self) -> AuthorityRow {
        let (words, others) = match self {
            ControlledAction::TrustHooks => ("trust hooks", NOBODY_ELSE),
            ControlledAction::TrustAgents => ("trust the settings of an agent", NOBODY_ELSE),
            ControlledAction::SwitchHook => ("switch a hook on or off", NOBODY_ELSE),
            ControlledAction::CompleteTask => ("complete a task without its gates", NOBODY_ELSE),
            ControlledAction::OverrideClaim => ("change a task that is claimed", NOBODY_ELSE),
            ControlledAction::DeleteTask => ("delete a task", NOBODY_ELSE),
            ControlledAction::UnblockTask => ("unblock a task", NOBODY_ELSE),
            ControlledAction::RemoveDependency => ("remove a dependency", NOBODY_ELSE),
            ControlledAction::ImportTasks => ("import tasks and configuration", NOBODY_ELSE),
            ControlledAction::ApproveWork => ("approve work", NOBODY_ELSE),
            ControlledAction::AllowTestChanges => ("allow changes of tests", NOBODY_ELSE),
            ControlledAction::AnswerQuestion => ("answer a question", NOBODY_ELSE),
            ControlledAction::DismissItem => ("dismiss an inbox item", NOBODY_ELSE),
            ControlledAction::StartSession => ("start a session", WORKERS),
            ControlledAction::ResumeSession => ("resume a session", WORKERS),
            ControlledAction::RaiseLimits => ("raise the limits of a session", NOBODY_ELSE),
            ControlledAction::PauseSession => ("pause a session", NOBODY_ELSE),
            ControlledAction::StopSession => ("stop a session", NOBODY_ELSE),
            ControlledAction::MessageAgent => ("send a message to an agent", NOBODY_ELSE),
            ControlledAction::ManageSchedules => ("change a schedule", NOBODY_ELSE),
            ControlledAction::MergeWork => ("merge submitted work", SERVICES),
            ControlledAction::RecordDelivery => ("record a delivery", SERVICES),
            ControlledAction::DispatchReactions => ("dispatch reactions", SERVICES),
            ControlledAction::SendNotifications => ("send notifications", SERVICES),
            ControlledAction::StartWorker => ("start a worker", NOBODY_ELSE),
            ControlledAction::DirectFleet => ("direct the fleet", NOBODY_ELSE),
            ControlledAction::SetFleetBudget => ("set the budget of the fleet", NOBODY_ELSE),
            ControlledAction::ServeDashboard => ("serve the dashboard", NOBODY_ELSE),
            ControlledAction::CleanWorktrees => ("remove worktrees", NOBODY_ELSE),
            ControlledAction::CleanRooms => ("remove rooms", NOBODY_ELSE),
            ControlledAction::EnterRoom => ("open a shell in a room", NOBODY_ELSE),
            ControlledAction::CollectGarbage => ("remove old snapshots and rooms", NOBODY_ELSE),
            ControlledAction::RestoreFiles => ("undo turns and restore files", NOBODY_ELSE),
            ControlledAction::RebuildView => ("rebuild the view", NOBODY_ELSE),
            ControlledAction::InstallHooks => {
                ("install hooks into the settings of an agent", NOBODY_ELSE)
            }
        };
        AuthorityRow { words, others }
    }

    /// Returns the action in words that follow "only a person can".
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// Whether an actor of this kind may take the action. A person may take every action.
    pub fn is_allowed_to(self, actor: ActorKind) -> bool {
        actor == ActorKind::Person || self.row().others.contains(&actor)
    }

    /// Returns the controlled action of a command, if it is one.
    ///
    /// Every actor may add to the graph, claim, report and ask.
    pub fn of_command(command: &Command) -> Option<ControlledAction> {
        let overriding = |fence: &Fence| {
            matches!(fence, Fence::Override).then_some(ControlledAction::OverrideClaim)
        };
        match command {
            Command::AddTask { spec, .. } if !spec.may_change.is_empty() => {
                Some(ControlledAction::AllowTestChanges)
            }
            Command::AddTask { .. }
            | Command::StartTask { .. }
            | Command::ClaimTask { .. }
            | Command::TakeOverTask { .. }
            | Command::AddDependency { .. }
            | Command::ConfirmReady { .. } => None,
            Command::ReleaseTask { fence, .. }
            | Command::SubmitTask { fence, .. }
            | Command::BlockTask { fence, .. } => overriding(fence),
            Command::RemarkTask { remark: TaskRemark::Note(_), .. } => None,
            Command::RemarkTask { remark: TaskRemark::Answer { .. }, .. } => {
                Some(ControlledAction::AnswerQuestion)
            }
            Command::RemarkTask { remark: TaskRemark::AllowTests(_), .. } => {
                Some(ControlledAction::AllowTestChanges)
            }
            Command::RemarkTask { fence, .. } => overriding(fence),
            Command::CompleteTask { .. } => Some(ControlledAction::CompleteTask),
            Command::DeleteTask { .. } => Some(ControlledAction::DeleteTask),
            Command::UnblockTask { .. } => Some(ControlledAction::UnblockTask),
            Command::RemoveDependency { .. } => Some(ControlledAction::RemoveDependency),
            Command::ApproveTask { .. } => Some(ControlledAction::ApproveWork),
            Command::PlanPush { .. }
            | Command::RecordDelivery { .. }
            | Command::ReturnTask { .. } => Some(ControlledAction::RecordDelivery),
            Command::SwitchHook { .. } => Some(ControlledAction::SwitchHook),
            Command::Schedule { .. } => Some(ControlledAction::ManageSchedules),
        }
    }
}

impl fmt::Display for ControlledAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_controlled_actions_is_complete() {
        for (place, action) in ControlledAction::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, place, "{action:?}");
        }
    }

    #[test]
    fn every_controlled_action_is_allowed_to_persons_and_to_no_agent() {
        for action in ControlledAction::ALL {
            assert!(action.is_allowed_to(ActorKind::Person));
            for agent in [ActorKind::SessionAgent, ActorKind::ExternalSession, ActorKind::Hook] {
                assert!(!action.is_allowed_to(agent), "{action:?} is not for a {}", agent.name());
            }
        }
    }

    #[test]
    fn a_worker_may_run_sessions_and_merge_but_not_loosen_rules() {
        let allowed: Vec<ControlledAction> = ControlledAction::ALL
            .into_iter()
            .filter(|action| action.is_allowed_to(ActorKind::Worker))
            .collect();
        let expected = [
            ControlledAction::StartSession,
            ControlledAction::ResumeSession,
            ControlledAction::MergeWork,
            ControlledAction::RecordDelivery,
            ControlledAction::DispatchReactions,
            ControlledAction::SendNotifications,
        ];
        assert_eq!(allowed, expected);
    }
}
