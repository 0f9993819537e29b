//! Acknowledgements of published messages.

use async_nats::Message;
use serde::Deserialize;

use super::error::JetStreamError;
use crate::log::Seq;

/// The subject's last event is not the expected one.
const WRONG_LAST: u64 = 10_071;
/// A write to the same subject, or with the same id, is on its way through the cluster.
const IN_FLIGHT: [u64; 2] = [10_164, 10_158];
/// An id of the batch was seen before.
const DUPLICATE_IN_BATCH: u64 = 10_201;
/// The server cannot do it now and has not done it.
const NOT_NOW: [u64; 6] = [
    10_008, // JetStream is not available
    10_009, // the cluster has no leader
    10_010, // not the leader
    10_023, // short of resources
    10_077, // the stream's limits
    10_176, // the batch is incomplete: a message of it was lost
];

#[derive(Deserialize)]
struct PublishAck {
    #[serde(default)]
    seq: Seq,
    #[serde(default)]
    duplicate: bool,
    error: Option<AckRefusal>,
}

#[derive(Deserialize)]
pub(super) struct AckRefusal {
    #[serde(default)]
    pub(super) err_code: u64,
    #[serde(default)]
    description: String,
}

/// The result of one attempt.
pub(super) enum PublishAnswer {
    /// The batch is stored, with its last event at `last`.
    Stored {
        last: Seq,
    },
    /// The server refused because of a version or an id. The log shows the reason.
    Overtaken,
    InFlight,
    Nobody(String),
}

/// Fails if the server refused the message.
pub(super) fn read_refusal(message: &Message) -> Result<(), JetStreamError> {
    let ack: PublishAck = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        Some(AckRefusal { err_code: code, description }) => {
            Err(JetStreamError::Refused { code, description })
        }
        None => Ok(()),
    }
}

/// Whether a message was stored right after the message that it named.
pub(super) fn was_next(message: &Message) -> Result<bool, JetStreamError> {
    match read_refusal(message) {
        Ok(()) => Ok(true),
        Err(JetStreamError::Refused { code: WRONG_LAST, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn read_ack(message: &Message) -> Result<PublishAnswer, JetStreamError> {
    let ack: PublishAck = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        // Stored by an earlier try, or by another process that reacted to the same cause.
        None if ack.duplicate => Ok(PublishAnswer::Overtaken),
        None => Ok(PublishAnswer::Stored { last: ack.seq }),
        Some(error) => match error.err_code {
            WRONG_LAST | DUPLICATE_IN_BATCH => Ok(PublishAnswer::Overtaken),
            code if IN_FLIGHT.contains(&code) => Ok(PublishAnswer::InFlight),
            code if NOT_NOW.contains(&code) => Ok(PublishAnswer::Nobody(error.description)),
            code => Err(JetStreamError::Refused { code, description: error.description }),
        },
    }
}
