//! The context that a hook runs in: the point, the event, the task, the session, the delivery.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hookloop_core::cascade::EventCause;
use hookloop_core::delivery::Submission;
use hookloop_core::event::Event;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::id::{EventId, SessionId, TaskId};
use hookloop_core::point::Point;
use hookloop_core::promise::Promise;
use hookloop_core::rule::Rule;
use hookloop_core::session::Session;
use hookloop_core::session::stop::ValidationResult;
use hookloop_core::task::Task;
use hookloop_process::{Cancel, JobObserver};
use serde_json::Value;

use crate::hook_run::HookRun;

/// A hook that starts to run, as users see it.
#[derive(Clone, Debug)]
pub struct HookStart {
    pub name: String,
    pub command: String,
    pub attempt: u32,
    pub timeout: Duration,
}

/// Shows running hooks to users.
pub trait HookBoard: std::fmt::Debug + Sync {
    /// Adds a hook to the board. The hook is removed when the observer is dropped.
    fn show(&self, start: HookStart) -> Arc<dyn JobObserver>;
}

/// Runs the hooks that are part of hookloop itself and need more than a process.
pub trait BuiltinHooks: std::fmt::Debug + Sync {
    fn run(&self, hook: &Hook, hook_context: &HookContext<'_>) -> HookRun;
}

/// The hook_context of a run: the hook point, and its event, task, session or delivery.
#[derive(Clone, Copy, Debug)]
pub struct HookContext<'a> {
    pub point: &'a Point,
    pub event: Option<&'a Event>,
    pub task: Option<&'a Task>,
    pub session: Option<&'a SessionContext<'a>>,
    /// Cancels the run.
    pub cancel: Option<&'a Cancel>,
    /// Runs built-in hooks.
    pub builtins: Option<&'a dyn BuiltinHooks>,
    /// The files that changed since the work began, with their changed lines. Only some rules use
    /// them.
    pub changes: Option<&'a [(String, u64)]>,
    /// The branch of the work, and its base.
    pub branches: Option<(&'a str, &'a str)>,
    /// The delivery that the run is part of, if any.
    pub delivery: Option<&'a DeliveryFacts>,
    /// The reaction to an event that the run is part of, if any.
    pub reaction: Option<ReactionRun<'a>>,
    /// The board that shows running hooks.
    pub board: Option<&'a dyn HookBoard>,
}

/// The session that a hook runs in.
#[derive(Clone, Copy, Debug)]
pub struct SessionContext<'a> {
    pub call: &'a SessionCall<'a>,
    /// A file with the conversation so far, if there was any.
    pub transcript: Option<&'a Path>,
    /// The working directory of the agent.
    pub root: &'a Path,
    /// The parent span of the hooks, if the session is exported to a collector.
    pub trace_parent: Option<&'a str>,
}

/// Returns whether a hook needs the list of changed files.
pub fn needs_changes(hook: &Hook) -> bool {
    matches!(hook.handler, HookHandler::Rule(Rule::Changed(_) | Rule::Diff(_)))
}

impl<'a> HookContext<'a> {
    /// A run at a point that is about nothing else.
    pub fn at(point: &'a Point) -> HookContext<'a> {
        HookContext {
            point,
            event: None,
            task: None,
            session: None,
            cancel: None,
            builtins: None,
            changes: None,
            branches: None,
            delivery: None,
            reaction: None,
            board: None,
        }
    }

    /// Returns the id of the hook_context's task, even if that task no longer exists.
    pub fn task_id(&self) -> Option<&TaskId> {
        let of_event = || self.event?.subject.task();
        self.task.map(|task| &task.id).or_else(of_event)
    }

    /// Returns the session of the hook_context, else the session that caused the event.
    pub fn session_id(&self) -> Option<String> {
        let of_actor = || SessionId::of_actor(&self.event?.actor).map(|id| id.to_string());
        self.session.map(|session| session.call.id.to_string()).or_else(of_actor)
    }
}

/// The situation in which hooks of a session run.
#[derive(Clone, Copy, Debug)]
pub struct SessionCall<'a> {
    pub id: &'a SessionId,
    pub session: &'a Session,
    pub point: &'a Point,
    pub task: Option<&'a Task>,
    pub error: Option<&'a str>,
    pub validated: &'a [ValidationResult],
    /// The delivery that the hooks are part of, if any.
    pub delivery: Option<&'a DeliveryFacts>,
}

/// Facts about a delivery that its hooks get.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryFacts {
    /// The URL of the pull request, once there is one.
    pub url: Option<String>,
    pub number: Option<u64>,
    /// The last commit of the branch.
    pub head: Option<String>,
    /// Number of commits on the branch that its base lacks.
    pub commits: Option<u32>,
    /// The agent that did the work.
    pub agent: Option<String>,
    /// The merged `context` of earlier hooks of the same point and run.
    pub context: Value,
}

impl DeliveryFacts {
    pub fn of_submission(submission: &Submission) -> DeliveryFacts {
        DeliveryFacts {
            url: submission.url.clone(),
            number: submission.number,
            head: Some(submission.head.clone()),
            commits: submission.commits,
            agent: submission.agent.clone(),
            context: Value::Null,
        }
    }
}

/// Adds the values of a later hook. On a name that both have, the later value wins.
pub fn merge_context(context: &mut Value, later: &Value) {
    let Value::Object(later) = later else { return };
    if !context.is_object() {
        *context = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(context) = context {
        context.extend(later.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

impl SessionCall<'_> {
    /// Returns the number of the iteration that the hooks belong to.
    ///
    /// Hooks of `pre_iteration` run before the iteration is in the log, so they get the number that
    /// its prompt will have.
    pub fn iteration(&self) -> u32 {
        if *self.point == Point::PreIteration {
            self.session.next_iteration()
        } else {
            self.session.iteration
        }
    }

    pub fn promises(&self) -> &[Promise] {
        self.session.last.as_ref().map_or(&[], |last| &last.promises)
    }
}

/// The variable that names a hook's event to the commands of the hook.
pub const CAUSE_VARIABLE: &str = "HOOKLOOP_CAUSE";

/// The run of a hook for an event: the lock that its keeper holds, and the cause of its commands.
#[derive(Clone, Copy, Debug)]
pub struct ReactionRun<'a> {
    pub lock: Option<BorrowedFd<'a>>,
    pub event: EventId,
    pub root: EventId,
    pub depth: u32,
}

impl ReactionRun<'_> {
    /// Returns the cause of the commands of `hook`, as the value of [`CAUSE_VARIABLE`].
    pub fn variable(&self, hook: &str) -> OsString {
        let ReactionRun { event, root, depth, .. } = *self;
        let cause = EventCause { event, hook: hook.to_owned(), root, depth, count: 0 };
        serde_json::to_string(&cause).unwrap_or_default().into()
    }
}

/// Time without output after which a hook may be waiting for a file change that never comes.
pub const QUIET_AFTER: Duration = Duration::from_secs(4 * 60);

/// The likely reason for the silence of such a hook, as a question to the user.
pub const WATCHER_HINT: &str = "does its command watch files or wait for input?";
