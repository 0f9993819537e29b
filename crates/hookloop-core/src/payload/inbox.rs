//! The data of events about problems and the messages about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDismissed {
    /// The problem's key.
    pub problem: String,
}

/// A notification that is about to be sent: its sender, channel and problems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationClaimed {
    pub channel: String,
    /// The target of the channel, which distinguishes channels of the same name.
    pub to: String,
    pub machine: String,
    /// The keys of the problems.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationFailed {
    pub reason: String,
}
