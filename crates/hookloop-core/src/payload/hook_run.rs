//! The data of events about hooks: runs, failures, switches and trust.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cascade::CascadeLimit;
use crate::hook_status::RecordedStatus;
use crate::time::Timestamp;

/// One run of a hook, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRan {
    /// The hook.
    #[serde(alias = "hookName")]
    pub hook_name: String,
    /// The hook point.
    pub point: String,
    /// The status of the run: `passed`, `blocked`, `failed`, `timed_out`, `killed`, `not_started`, `cancelled` or
    /// `skipped`.
    pub status: RecordedStatus,
    /// The exit code of the first process.
    #[serde(alias = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(alias = "durationMs")]
    pub duration_ms: u64,
    /// The end of the run. Runs of several hooks are stored together.
    #[serde(alias = "endedAt", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The number of runs, retries included.
    pub attempts: u32,
    /// The reason why the hook did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A message for the user about the run, such as the parts of its answer that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(alias = "stdoutBytes")]
    pub stdout_bytes: u64,
    #[serde(alias = "stderrBytes")]
    pub stderr_bytes: u64,
    /// The path of the whole output on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Whether the run was one beside the gate's own: with the tests of the base, or of a mutation engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base_tests: bool,
    /// The last lines of the output, if the hook failed without blocking, or blocks and is no known test
    /// runner.
    #[serde(alias = "outputTail", default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

/// A failure of a reaction, for the session that made the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReactionFailed {
    #[serde(alias = "hookName")]
    pub hook_name: String,
    /// The type of the event, or the hook point.
    pub point: String,
    /// The action that was not taken; none if the hook itself failed.
    #[serde(alias = "actionType", default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    pub error: String,
    /// The last lines of the hook's output.
    #[serde(alias = "outputTail", default, skip_serializing_if = "Vec::is_empty")]
    pub output_tail: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookError {
    #[serde(alias = "hookName")]
    pub hook_name: String,
    pub error: String,
    #[serde(alias = "originalEvent")]
    pub original_event: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionError {
    #[serde(alias = "actionType")]
    pub action_type: String,
    pub error: String,
    pub payload: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CascadeLimitReached {
    #[serde(alias = "hookName")]
    pub hook_name: String,
    pub limit: CascadeLimit,
    /// The number of dropped actions.
    pub dropped: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookSwitch {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksTrusted {
    /// The digest of all hooks and gates, as `--trust` takes it.
    pub digest: String,
    /// The names of all gates.
    #[serde(default)]
    pub gates: Vec<String>,
    /// The differences from the gates that were trusted before, in words.
    #[serde(default)]
    pub changes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentsTrusted {
    /// The digest of all agent definitions of the repository.
    pub digest: String,
    /// The names of the agents and files.
    #[serde(default)]
    pub agents: Vec<String>,
}

/// Reactions are done for all due events up to `seq`. If `part` is set, that event is in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorMoved {
    pub seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<CursorPart>,
}

/// A position within the reactions to one event that has too many dependents for one batch. Hooks are named,
/// because the set of hooks may change between two batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorPart {
    pub hooks_done: Vec<String>,
    /// The hook that is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The last dependent that this hook has handled.
    pub after: u64,
}
