//! An event as a message, and back.

use async_nats::header::{
    HeaderMap, NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID,
};
use bytes::Bytes;
use hookloop_core::cascade::EventCause;
use hookloop_core::event::{Event, EventBody, FORMAT, QuarantinedMessage};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::layout::{SUBJECT_WORDS, StreamLayout};
use crate::chain::ChainHash;
use crate::log::{LogError, NewEvent, Seq, StoredEvent};

/// The payload of a message. The subject of the event is the message's subject.
#[derive(Serialize)]
struct EncodedEvent<'a> {
    format: u32,
    id: EventId,
    at: i64,
    #[serde(rename = "type")]
    kind: &'a str,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a EventCause>,
    #[serde(skip_serializing_if = "is_false")]
    due: bool,
    /// The version that the writer expected of the subject. A reader finds gaps by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Seq>,
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct DecodedEvent<'a> {
    format: u32,
    id: EventId,
    at: i64,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    actor: String,
    #[serde(default)]
    cause: Option<EventCause>,
    #[serde(default)]
    due: bool,
    #[serde(default)]
    after: Option<Seq>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The message that is published for one event.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingMessage {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// Encodes a batch.
///
/// Only the first message on each subject expects a version. The batch is atomic, so no other event
/// can come between the others.
pub(crate) fn encode(
    batch: &[NewEvent],
    layout: &StreamLayout,
) -> Result<Vec<OutgoingMessage>, LogError> {
    let mut seen = std::collections::HashSet::new();
    batch
        .iter()
        .map(|NewEvent { expected, event }| {
            let after = seen.insert(&event.subject).then_some(*expected);
            let data = RawValue::from_string(event.body.encode()).map_err(unwritable)?;
            let written = EncodedEvent {
                format: FORMAT,
                id: event.id,
                at: event.at.0,
                kind: event.body.kind(),
                actor: &event.actor,
                cause: event.cause.as_ref(),
                due: event.due,
                after,
                data: &data,
            };
            let payload = serde_json::to_vec(&written).map_err(unwritable)?.into();
            let mut headers = HeaderMap::new();
            headers.insert(NATS_MESSAGE_ID, layout.message_id(event.id));
            if let Some(after) = after {
                headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
            }
            Ok(OutgoingMessage { subject: layout.subject(&event.subject), headers, payload })
        })
        .collect()
}

fn unwritable(error: serde_json::Error) -> LogError {
    LogError::Engine(Box::new(error))
}

impl OutgoingMessage {
    /// Returns the message with the headers of number `n` of an atomic batch.
    pub(crate) fn in_batch(&self, batch: &str, n: usize, is_last: bool) -> OutgoingMessage {
        let mut message = self.clone();
        message.headers.insert(NATS_BATCH_ID, batch);
        message.headers.insert(NATS_BATCH_SEQUENCE, n.to_string());
        if is_last {
            message.headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
        }
        message
    }
}

/// Returns the digest of a message, a link of its project's chain.
pub(crate) fn digest(subject: &str, payload: &[u8]) -> ChainHash {
    let mut hash = Sha256::new();
    hash.update(subject.as_bytes());
    hash.update([0]);
    hash.update(payload);
    hash.finalize().into()
}

/// A message from the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredMessage<'a> {
    pub(crate) seq: Seq,
    pub(crate) subject: &'a str,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) payload: &'a [u8],
}

impl StoredMessage<'_> {
    /// Returns the event of the message. A foreign message becomes an event that records it.
    ///
    /// That record depends only on the message, so every reader has the same record.
    pub(crate) fn event(&self) -> StoredEvent {
        match self.decode() {
            Ok(stored) => stored,
            Err(reason) => self.quarantined(&reason),
        }
    }

    fn decode(&self) -> Result<StoredEvent, String> {
        if self.subject.split('.').count() != SUBJECT_WORDS {
            return Err("its subject is none of hookloop".to_owned());
        }
        let stored = decode(self.seq, self.subject, self.payload).map_err(|error| match error {
            LogError::Damaged { reason, .. } => reason,
            other => other.to_string(),
        })?;
        match stored.after {
            Some(after) if self.expected() != Some(after) => {
                Err(format!("it claims to follow version {after}, which no server has checked"))
            }
            _ => Ok(stored),
        }
    }

    /// Returns the version that the server compared when it stored the message.
    fn expected(&self) -> Option<Seq> {
        let value = self.headers?.get_last(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)?;
        // If the version is unreadable, no server checked it, and the event is quarantined.
        value.as_str().parse().ok()
    }

    fn quarantined(&self, reason: &str) -> StoredEvent {
        let digest = digest(self.subject, self.payload);
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        let is_ours = self.subject.split('.').count() == SUBJECT_WORDS;
        let name = self.subject.rsplit('.').next().filter(|_| is_ours).unwrap_or_default();
        let subject = name.parse().unwrap_or_else(|_| foreign());
        let body = EventBody::MessageQuarantined(QuarantinedMessage {
            subject: self.subject.to_owned(),
            reason: reason.to_owned(),
            bytes: self.payload.len() as u64,
        });
        let (at, actor) = (Timestamp(0), String::new());
        let event = Event { id: EventId(id), at, subject, actor, cause: None, due: false, body };
        StoredEvent { seq: self.seq, after: None, digest, event }
    }
}

/// Returns the subject that stands for subjects that are not hookloop's.
fn foreign() -> Subject {
    "_foreign".parse().unwrap_or(Subject::Project)
}

/// Reads the event that the stream holds at `seq` on `subject`.
pub(crate) fn decode(seq: Seq, subject: &str, payload: &[u8]) -> Result<StoredEvent, LogError> {
    let damaged = |reason: &dyn std::fmt::Display| LogError::damaged(seq, reason);
    let name = subject.rsplit('.').next().unwrap_or_default();
    let read: DecodedEvent<'_> =
        serde_json::from_slice(payload).map_err(|error| damaged(&error))?;
    let event = Event {
        id: read.id,
        at: Timestamp(read.at),
        subject: name.parse::<Subject>().map_err(|error| damaged(&error))?,
        actor: read.actor,
        cause: read.cause,
        due: read.due,
        body: EventBody::decode(&read.kind, read.format, read.data.get())
            .map_err(|error| damaged(&error))?,
    };
    Ok(StoredEvent { seq, after: read.after, digest: digest(subject, payload), event })
}
