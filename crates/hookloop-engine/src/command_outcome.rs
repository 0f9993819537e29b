//! The outcome of a command.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{EventId, TaskId};
use hookloop_core::task::Task;
use hookloop_hooks::hook_run::command_for;
use hookloop_process::HiddenAncestry;

/// The outcome of a command.
#[derive(Clone, Debug, Default)]
pub struct CommandOutcome {
    /// The task of the command, after the command.
    pub task: Option<Task>,
    /// Tasks that became ready.
    pub readied: Vec<TaskId>,
    /// Tasks that hooks added.
    pub added: Vec<TaskId>,
    /// Open tasks that were blocked because a dependency was deleted.
    pub blocked: Vec<TaskId>,
    /// Errors of hooks and of their actions.
    pub failures: Vec<String>,
    /// Whether reactions or workflows are still to be run.
    pub pending: bool,
    /// The reason why reactions were not run.
    pub left: Option<ReactionsLeft>,
    /// The events of the command whose reactions were deferred.
    pub(crate) roots: Vec<EventId>,
}

impl CommandOutcome {
    pub(crate) fn note_failure(&mut self, event: &Event) {
        let hook = event.cause.as_ref().map_or("", |cause| cause.hook.as_str());
        match &event.body {
            EventBody::HookError(error) => {
                // The hint is for people. The log and the agent get the error without it.
                let hint = command_for(&error.error).map(|command| format!(": {command}"));
                let (error, hint) = (&error.error, hint.unwrap_or_default());
                self.failures.push(format!("hook `{hook}` failed: {error}{hint}"));
            }
            EventBody::ActionError(error) => {
                let (action, why) = (&error.action_type, &error.error);
                self.failures.push(format!("hook `{hook}` could not {action}: {why}"));
            }
            EventBody::CascadeLimitReached(cut) => {
                let (limit, dropped) = (cut.limit, cut.dropped);
                let text = format!(
                    "hook `{hook}` was cut by the cascade limit `{limit}`: {dropped} actions dropped"
                );
                self.failures.push(text);
            }
            _ => {}
        }
    }

    pub(crate) fn note(&mut self, subject_is_command: bool, task: &TaskId, body: &EventBody) {
        match body {
            EventBody::TaskCreated(_) if !subject_is_command => self.added.push(task.clone()),
            EventBody::DependencySatisfied(_) => self.readied.push(task.clone()),
            EventBody::TaskBlocked(_) if !subject_is_command => self.blocked.push(task.clone()),
            _ => {}
        }
    }
}

/// The reason why the reactions to a command are not done when it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReactionsLeft {
    /// Another process still runs hooks.
    Running,
    /// A hook or an agent of the project gave the command. The process above it runs the reactions.
    Above,
    /// The ancestors of this process are hidden, so a hook or an agent may have given the command.
    Hidden(HiddenAncestry),
}

impl std::fmt::Display for ReactionsLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReactionsLeft::Running => f.write_str("reactions are still running in another process"),
            ReactionsLeft::Above => {
                f.write_str("reactions run after the hook or turn that gave this command")
            }
            ReactionsLeft::Hidden(why) => write!(f, "reactions were not run: {why}"),
        }
    }
}
