//! The outcome of a command.

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{EventId, TaskId};
use hookloop_core::task::Task;
use hookloop_hooks::hook_run::command_for;
use hookloop_process::HiddenAncestry;

/// What a command came to.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The task it was about, as it stands now.
    pub task: Option<Task>,
    /// Tasks that became ready by it.
    pub readied: Vec<TaskId>,
    /// Tasks that hooks added.
    pub added: Vec<TaskId>,
    /// Open tasks that were blocked because what they wait for was deleted.
    pub blocked: Vec<TaskId>,
    /// What hooks could not do.
    pub failures: Vec<String>,
    /// Reactions or workflows are left to do.
    pub pending: bool,
    /// Why reactions are left when they were to be done.
    pub left: Option<ReactionsLeft>,
    /// The events of the command whose reactions were left for later.
    pub(crate) roots: Vec<EventId>,
}

impl Done {
    pub(crate) fn note_failure(&mut self, event: &Event) {
        let hook = event.cause.as_ref().map_or("", |cause| cause.hook.as_str());
        match &event.body {
            EventBody::HookError(error) => {
                // These are for people: the log and the agent have the error alone.
                let hint = command_for(&error.error).map(|command| format!(": {command}"));
                let (error, hint) = (&error.error, hint.unwrap_or_default());
                self.failures.push(format!("hook `{hook}` failed: {error}{hint}"));
            }
            EventBody::ActionError(error) => {
                let (action, why) = (&error.action_type, &error.error);
                self.failures.push(format!("hook `{hook}` could not {action}: {why}"));
            }
            EventBody::CascadeCut(cut) => {
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

/// Why the reactions to a command are not done when it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReactionsLeft {
    /// Another process still runs hooks.
    Running,
    /// A hook or an agent of the project gave the command; the process above runs them.
    Above,
    /// The processes above this one are hidden, so it may be such a command.
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
