//! Texts that wait for a prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hook_status::RecordedStatus;
use crate::point::Point;

/// The point of a text that a person sent: no hook point has this name.
pub const MESSAGE: &str = "message";

/// The hooks of a point have run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookPointCompleted {
    pub point: String,
}

/// How far an agent may trust a text: each class has a section of its own in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptChannel {
    /// An instruction of hookloop, or of a hook whose trusted definition says `answers: json`.
    Instruction,
    /// A message or an answer of a person.
    User,
    /// The result of a check: data.
    CheckResult,
    /// The output of a hook, or a note: data.
    HookOutput,
}

/// Text that waits for a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipedOutput {
    /// The source of the text: a hook's name, `user`, or another word.
    pub from: String,
    pub point: String,
    /// The status of the run, if the source is a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RecordedStatus>,
    pub text: String,
    /// The class of the text; none in events of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<PromptChannel>,
    /// The command of the gate whose result the text is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The exit code of that command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The agent's question that the text answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

impl PipedOutput {
    /// Returns the class of the text. An older event is classed by its point.
    pub fn channel(&self) -> PromptChannel {
        let by_point = || match (self.point.as_str(), self.point.parse()) {
            (MESSAGE, _) => PromptChannel::User,
            (_, Ok(Point::Stop | Point::Validation | Point::BeforeSubmit)) => {
                PromptChannel::CheckResult
            }
            _ => PromptChannel::HookOutput,
        };
        self.channel.unwrap_or_else(by_point)
    }
}
