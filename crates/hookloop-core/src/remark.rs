//! Remarks about a task beside its state: registered stop conditions, notes, checkpoints.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::payload::plan::StopWhen;
use crate::payload::session::AllowedFindings;

/// Stop hooks that a task may have.
pub(crate) const STOP_HOOKS_MAX: usize = 10;
/// The longest metadata of a stop hook, as JSON.
pub(crate) const METADATA_MAX_BYTES: usize = 4 * 1024;
pub const NOTE_MAX_BYTES: usize = 16 * 1024;
/// The longest question that an answer is kept with.
pub(crate) const QUESTION_MAX_BYTES: usize = 2_000;
/// The newest notes and checkpoints in the view. The log has all of them.
pub const NOTES_KEPT: usize = 100;
pub const CHECKPOINTS_KEPT: usize = 20;
/// The note to the next agent of a task about changes of tests that a person allows.
pub const TESTS_ALLOWED: &str = "I allow the changes of tests that the work on this task has made. If nothing else is left to do, report \
                                 COMPLETE.";
/// Maximum changes of tests that a person allows at once.
pub(crate) const ALLOWED_FINDINGS_MAX: usize = 1_000;
/// The largest checkpoint, as JSON.
pub(crate) const CHECKPOINT_MAX_BYTES: usize = 64 * 1024;

/// A stop condition that any actor may register for a task. None of them executes a command of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Preset")]
pub enum StopPreset {
    Default,
    Validation,
    Promise,
}

impl StopPreset {
    pub const ALL: [StopPreset; 3] =
        [StopPreset::Default, StopPreset::Validation, StopPreset::Promise];

    pub fn name(self) -> &'static str {
        match self {
            StopPreset::Default => "default",
            StopPreset::Validation => "validation",
            StopPreset::Promise => "promise",
        }
    }

    pub fn way(self) -> StopWhen {
        match self {
            StopPreset::Default => StopWhen::Default,
            StopPreset::Validation => StopWhen::Validation,
            StopPreset::Promise => StopWhen::Promise,
        }
    }
}

impl fmt::Display for StopPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StopPreset {
    type Err = String;

    fn from_str(text: &str) -> Result<StopPreset, String> {
        let found = StopPreset::ALL.into_iter().find(|preset| preset.name() == text);
        found.ok_or_else(|| format!("`{text}` is none of default, validation, promise"))
    }
}

/// A stop hook of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopHook {
    pub id: String,
    #[serde(alias = "hookType")]
    pub hook_type: StopPreset,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskNoted {
    pub text: String,
    /// The agent's question that a person answers with the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// A checkpoint of an agent's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Checkpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
    #[serde(alias = "draftContent", skip_serializing_if = "Option::is_none")]
    pub draft_content: Option<String>,
    #[serde(alias = "draftType", skip_serializing_if = "Option::is_none")]
    pub draft_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCheckpointed {
    pub id: String,
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

/// A remark about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRemark {
    RegisterStop(StopHook),
    ClearStops,
    Note(String),
    /// A person's answer to the question that blocked the task.
    Answer {
        question: String,
        text: String,
    },
    Checkpoint(TaskCheckpointed),
    /// A person allows changes of tests in the work on the task.
    AllowTests(AllowedFindings),
}
