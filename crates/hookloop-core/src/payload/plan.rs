//! The parameters of a session. The log holds them, so a resumed session has the same ones.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::session_limits::SessionLimits;
use crate::id::TaskId;
use crate::promise::Promise;
use crate::trace::TraceParent;

/// The work of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionWork {
    Prompt(String),
    /// A file of the project with the work, as it was when the session began.
    Spec(String),
    /// Ready tasks, the most urgent first, until none is left.
    Tasks,
    /// This task alone.
    Task(TaskId),
    /// The work that the agent's own user requests.
    Own,
    /// A review of a delivery: one turn, of which only the answer counts.
    Review(String),
}

/// A condition for the last iteration. The conditions are evaluated in order, and the first one that does not
/// continue decides.
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
    /// A command of the project, by its name.
    Hook(String),
}

impl StopWhen {
    /// Whether a command of the project decides.
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
#[error("`{0}` is not a stop condition: `default`, `validation`, `promise`, `turn` or `tasks`")]
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

/// The effect of reaching the retry limit of gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtRetryLimit {
    /// The session ends and needs a person.
    #[default]
    NeedsHuman,
    /// The work is accepted without proof, which the log records.
    Accept,
}

/// Whether an iteration continues the conversation of the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    #[default]
    Fresh,
    Continue,
}

/// The turns of a session that continue the conversation of the previous turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversationPolicy {
    /// Every iteration begins a new conversation.
    Fresh,
    /// A turn that answers a gate's feedback continues the conversation. Any other iteration begins a new one.
    #[default]
    Feedback,
    /// Every iteration continues the conversation of the previous one.
    Continue,
}

impl ConversationPolicy {
    /// Returns the policy for iterations that answer no feedback.
    pub fn of_iterations(self) -> ConversationMode {
        match self {
            ConversationPolicy::Fresh | ConversationPolicy::Feedback => ConversationMode::Fresh,
            ConversationPolicy::Continue => ConversationMode::Continue,
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

/// The agents that take over after repeated failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFallback {
    /// The names of the agents, in order.
    pub agents: Vec<String>,
    /// Failed turns in a row.
    pub after: u32,
}

/// The prefix of the agent's name in an external session.
pub const EXTERNAL: &str = "external:";

/// Whether an agent's name is that of an external session.
pub fn is_external_agent(agent: &str) -> bool {
    agent.starts_with(EXTERNAL)
}

/// [`EXTERNAL`] in events of format 1.
const OLD_EXTERNAL: &str = "guest:";

/// Reads an agent's name. Names of external sessions in format 1 get the prefix of today.
pub(crate) fn agent_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(name.strip_prefix(OLD_EXTERNAL).map(|rest| format!("{EXTERNAL}{rest}")).unwrap_or(name))
}

/// A script of the project that a hook of a session runs, with the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenScript {
    /// The hook.
    pub hook: String,
    /// The list that the hook is in: a task type's, or an agent's; none for the project's.
    #[serde(alias = "taskType", default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// The position of the script among the words of the hook's command, from 0.
    pub word: u32,
    /// The script, from the project's root.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: String,
}

/// The parameters of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPlan {
    /// The value of `{{session}}`.
    pub name: String,
    pub work: SessionWork,
    /// The agent as the user named it: `claude`, `command:…`, `scripted:…`.
    #[serde(deserialize_with = "agent_name")]
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentFallback>,
    #[serde(default)]
    pub conversation: ConversationMode,
    /// A turn that answers a gate's feedback continues the conversation of the previous turn.
    #[serde(alias = "keepsFeedback", default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_feedback: bool,
    /// The promises that end the session; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// The model that the user requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    #[serde(alias = "stopWhen")]
    pub stop_when: Vec<StopWhen>,
    #[serde(alias = "atRetryLimit")]
    pub at_retry_limit: AtRetryLimit,
    pub limits: SessionLimits,
    /// The digest of the session's hooks. A resume with other hooks needs consent.
    pub hooks: String,
    /// The scripts that its hooks run; none where an older version started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<FrozenScript>>,
    /// A random word around hook output in prompts, so that the output can't end its own section.
    pub fence: String,
    pub machine: String,
    /// Tasks are worked on in worktrees of their own, and submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivers: bool,
    /// The person who started the session allows completion without any change.
    #[serde(alias = "noChangesOk", default, skip_serializing_if = "std::ops::Not::not")]
    pub no_changes_ok: bool,
    /// Patterns of the tests that the work may change, by a person's word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
    /// The user's own file says `gates: none`: tasks are completed without proof.
    #[serde(alias = "wantsNoGates", default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_no_gates: bool,
    /// The worker that runs the session. No person watches it, and the next holder of its task may be on
    /// another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The trace span that started the session, if there is one.
    #[serde(alias = "traceParent", default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceParent>,
}

impl SessionPlan {
    /// Whether the promise ends the session.
    pub fn ends_with(&self, promise: Promise) -> bool {
        self.promises.is_empty() || self.promises.contains(&promise)
    }

    /// Whether work without changes is questioned. External sessions and reviews may only answer.
    pub fn must_change_files(&self) -> bool {
        let is_work = !matches!(self.work, SessionWork::Own | SessionWork::Review(_));
        is_work && !self.is_external() && !self.no_changes_ok
    }

    /// Whether no person sees how often the session starts again.
    pub fn is_unwatched(&self) -> bool {
        self.is_external() || self.worker.is_some()
    }

    /// Whether the session is external: hookloop does not run its turns, and their usage is unknown.
    pub fn is_external(&self) -> bool {
        is_external_agent(&self.agent)
    }
}

impl SessionWork {
    /// Whether the work comes from the task graph.
    pub fn is_of_tasks(&self) -> bool {
        matches!(self, SessionWork::Tasks | SessionWork::Task(_))
    }
}
