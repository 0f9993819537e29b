//! The data of events about hooks: runs, failures, switches and trust.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cascade::CascadeLimit;
use crate::time::Timestamp;

/// One run of a hook, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRan {
    /// The hook.
    pub hook_name: String,
    /// Where it ran.
    pub point: String,
    /// As [`crate::answer::Status`] names it.
    pub status: String,
    /// Its first process's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    /// When it ended: runs of several hooks are stored together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Runs that it took.
    pub attempts: u32,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A message for the user about the run, such as the parts of its answer that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Where this machine keeps the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The last lines of its output, if it failed and stopped nothing, or blocks and is no known test runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

/// A failure of a reaction, for the session that made the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReactionFailed {
    pub hook_name: String,
    /// The type of the event, or the hook point.
    pub point: String,
    /// The action that was not done; none if the hook itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    pub error: String,
    /// The last lines of the hook's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookError {
    pub hook_name: String,
    pub error: String,
    pub original_event: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionError {
    pub action_type: String,
    pub error: String,
    pub payload: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CascadeCut {
    pub hook_name: String,
    pub limit: CascadeLimit,
    /// Actions that were not done.
    pub dropped: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookSwitched {
    pub name: String,
    pub enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksTrusted {
    /// The digest of all hooks and gates, as `--trust` takes it.
    pub digest: String,
    /// The names of all gates.
    #[serde(default)]
    pub gates: Vec<String>,
    /// How the gates differ from those that were agreed to before, in words.
    #[serde(default)]
    pub changes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentsTrusted {
    /// The digest of everything that the repository has for agents.
    pub digest: String,
    /// The names of the agents and files.
    #[serde(default)]
    pub agents: Vec<String>,
}

/// Reactions are done for all due events up to `seq`; where `part` is set, that one is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorMoved {
    pub seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<CursorPart>,
}

/// A place inside the reactions to one event: too many dependents for one batch. Hooks are named,
/// because which ones there are may change between two batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorPart {
    pub hooks_done: Vec<String>,
    /// The hook that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Within that hook, the last dependent that was looked at.
    pub after: u64,
}
