//! The parameters of a session. The log holds them, so a resumed session has the same ones.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session_limits::Limits;
use crate::id::TaskId;
use crate::promise::Promise;
use crate::trace::TraceParent;

/// What the agent is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Prompt(String),
    /// A file of the project that says it; read again for each prompt.
    Spec(String),
    /// Ready tasks, the most urgent first, until none is left.
    Tasks,
    /// This task alone.
    Task(TaskId),
    /// What the agent's own user asks of it.
    Own,
    /// A review of what is to be delivered: one turn, of which only the answer counts.
    Review(String),
}

/// What decides that an iteration is the last one. Each is asked in turn; the first that does not say
/// "continue" decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopWhen {
    /// The agent's promise; without one, the validation rules.
    Default,
    /// All validation rules pass.
    Validation,
    /// The agent's promise.
    Promise,
    /// The end of a turn.
    Turn,
    /// No task is open.
    Tasks,
    /// A command of the project's, by its name.
    Hook(String),
}

impl StopWhen {
    /// Whether a command of the project's is asked.
    pub fn is_hook(&self) -> bool {
        matches!(self, StopWhen::Hook(_))
    }

    const NAMED: [(StopWhen, &'static str); 5] = [
        (StopWhen::Default, "default"),
        (StopWhen::Validation, "validation"),
        (StopWhen::Promise, "promise"),
        (StopWhen::Turn, "turn"),
        (StopWhen::Tasks, "tasks"),
    ];
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a way to stop: `default`, `validation`, `promise`, `turn` or `tasks`")]
pub struct NoSuchStop(String);

impl FromStr for StopWhen {
    type Err = NoSuchStop;

    fn from_str(text: &str) -> Result<StopWhen, NoSuchStop> {
        let found = StopWhen::NAMED.into_iter().find(|(_, name)| *name == text);
        found.map(|(stop, _)| stop).ok_or_else(|| NoSuchStop(text.to_owned()))
    }
}

impl fmt::Display for StopWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = StopWhen::NAMED.iter().find(|(stop, _)| stop == self);
        match (self, named) {
            (StopWhen::Hook(name), _) => f.write_str(name),
            (_, Some((_, name))) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}

/// What happens when gates have sent the agent back as often as they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtRetryLimit {
    /// The session ends and says that it needs a human.
    #[default]
    NeedsHuman,
    /// The work is taken as it is, and the record says so.
    Accept,
}

/// Whether an iteration goes on in the conversation of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conversation {
    #[default]
    Fresh,
    Continue,
}

/// Which turns of a session go on in the conversation of the turn before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversationPolicy {
    /// Every iteration begins a new conversation.
    Fresh,
    /// A turn that answers a gate's feedback goes on; any other iteration begins a new conversation.
    #[default]
    Feedback,
    /// Every iteration goes on in the conversation of the one before.
    Continue,
}

impl ConversationPolicy {
    /// The policy for iterations that answer no feedback.
    pub fn of_iterations(self) -> Conversation {
        match self {
            ConversationPolicy::Fresh | ConversationPolicy::Feedback => Conversation::Fresh,
            ConversationPolicy::Continue => Conversation::Continue,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`fresh`, `feedback` or `continue`")]
pub struct UnknownConversationPolicy;

impl FromStr for ConversationPolicy {
    type Err = UnknownConversationPolicy;

    fn from_str(text: &str) -> Result<ConversationPolicy, UnknownConversationPolicy> {
        match text {
            "fresh" => Ok(ConversationPolicy::Fresh),
            "feedback" => Ok(ConversationPolicy::Feedback),
            "continue" => Ok(ConversationPolicy::Continue),
            _ => Err(UnknownConversationPolicy),
        }
    }
}

/// Who takes the turns when the agent only fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fallback {
    /// By their names, in order.
    pub agents: Vec<String>,
    /// Failed turns in a row.
    pub after: u32,
}

/// How the agent of a session is called that hookloop does not start.
pub const GUEST: &str = "guest:";

/// A script of the project that a hook of a session runs, with the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenScript {
    /// The hook.
    pub hook: String,
    /// The list that the hook is in: a task type's, or an agent's; none for the project's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// Which word of the hook's command names the script, from 0.
    pub word: u32,
    /// The script, from the project's root.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: String,
}

/// Everything that a session is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What `{{session}}` stands for.
    pub name: String,
    pub work: Work,
    /// As the user named it: `claude`, `command:…`, `scripted:…`.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    #[serde(default)]
    pub conversation: Conversation,
    /// A turn that answers a gate's feedback continues the conversation of the previous turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_feedback: bool,
    /// The promises that end the session; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// What the user wants of the agent beside its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    pub stop_when: Vec<StopWhen>,
    pub at_retry_limit: AtRetryLimit,
    pub limits: Limits,
    /// The hooks that the session has, by digest: with others it is not resumed unasked.
    pub hooks: String,
    /// The scripts that its hooks run; none where an older version started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<FrozenScript>>,
    /// Random, so that nothing that a hook prints can end the part of a prompt that it stands in.
    pub fence: String,
    pub machine: String,
    /// Its tasks are worked on in worktrees of their own, and submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivers: bool,
    /// Completing without any change is fine, by the word of the person who started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_changes_ok: bool,
    /// The user's own file says `gates: none`: tasks are completed without proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_no_gates: bool,
    /// The worker whose session it is: nobody watches it, and who takes its task next may be elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The span that it was started in, if its starter has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceParent>,
}

impl Plan {
    /// Whether the promise ends the session.
    pub fn ends_with(&self, promise: Promise) -> bool {
        self.promises.is_empty() || self.promises.contains(&promise)
    }

    /// Whether work that changes nothing is in question. External sessions and reviews may only answer.
    pub fn must_change_files(&self) -> bool {
        let is_work = !matches!(self.work, Work::Own | Work::Review(_));
        is_work && !self.has_guest() && !self.no_changes_ok
    }

    /// Whether nobody sees how often it is begun anew.
    pub fn is_unwatched(&self) -> bool {
        self.has_guest() || self.worker.is_some()
    }

    /// Whether the agent comes by itself: its turns are its own affair, and what they use is not known.
    pub fn has_guest(&self) -> bool {
        self.agent.starts_with(GUEST)
    }
}

impl Work {
    /// Whether it comes from the graph.
    pub fn is_of_tasks(&self) -> bool {
        matches!(self, Work::Tasks | Work::Task(_))
    }
}
