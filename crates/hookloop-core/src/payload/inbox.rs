//! The data of events about problems and the messages about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dismissed {
    /// The problem's key.
    pub problem: String,
}

/// Who is about to send a message, by which channel, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeClaimed {
    pub channel: String,
    /// Tells channels of one name apart that lead elsewhere.
    pub to: String,
    pub machine: String,
    /// The keys of the problems.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeFailed {
    pub reason: String,
}
