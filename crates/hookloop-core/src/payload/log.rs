//! The data of events about the log itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Acknowledged events are missing, and a person accepted the loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossAccepted {
    /// The result of the check, in words.
    pub problem: String,
    /// The last event that was acknowledged.
    pub acknowledged: u64,
    /// The last event that was still there.
    pub found: u64,
    /// Messages that were removed from the stream of a shared log by then.
    #[serde(default)]
    pub removed: u64,
}

/// Foreign messages in a shared log, up to a place in it, are known to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignAccepted {
    /// The place of the last of these messages.
    pub through: u64,
    /// How many messages were quarantined by then.
    pub messages: u64,
}

/// The reason why a message in a shared log is no event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantinedMessage {
    /// The subject of the message on the server.
    pub subject: String,
    pub reason: String,
    pub bytes: u64,
}
