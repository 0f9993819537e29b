//! An event as a message, and back.

use async_nats::header::{
    HeaderMap, NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID,
};
use bytes::Bytes;
use hookloop_core::cascade::Cause;
use hookloop_core::event::{Event, EventBody, FORMAT};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::layout::Layout;
use crate::log::{LogError, NewEvent, Seq, StoredEvent};

/// The payload. The subject is in the message's own, the id also in its header.
#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    id: EventId,
    at: i64,
    #[serde(rename = "type")]
    kind: &'a str,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a Cause>,
    #[serde(skip_serializing_if = "is_false")]
    due: bool,
    /// The version that the writer expected the subject to have: what lets a reader see a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Seq>,
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Read<'a> {
    format: u32,
    id: EventId,
    at: i64,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    actor: String,
    #[serde(default)]
    cause: Option<Cause>,
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

/// What is published for one event.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// The messages of a batch. Only the first on each subject expects a version; the server takes care
/// of the others, which no one can come between.
pub(crate) fn encode(batch: &[NewEvent], layout: &Layout) -> Result<Vec<Outgoing>, LogError> {
    let mut seen = std::collections::HashSet::new();
    batch
        .iter()
        .map(|NewEvent { expected, event }| {
            let after = seen.insert(&event.subject).then_some(*expected);
            let data = RawValue::from_string(event.body.encode()).map_err(unwritable)?;
            let written = Written {
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
            Ok(Outgoing { subject: layout.subject(&event.subject), headers, payload })
        })
        .collect()
}

fn unwritable(error: serde_json::Error) -> LogError {
    LogError::Engine(Box::new(error))
}

impl Outgoing {
    /// The same message as number `n` of an atomic batch.
    pub(crate) fn in_batch(&self, batch: &str, n: usize, is_last: bool) -> Outgoing {
        let mut message = self.clone();
        message.headers.insert(NATS_BATCH_ID, batch);
        message.headers.insert(NATS_BATCH_SEQUENCE, n.to_string());
        if is_last {
            message.headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
        }
        message
    }
}

/// Reads the event that the stream holds at `seq` on `subject`.
pub(crate) fn decode(seq: Seq, subject: &str, payload: &[u8]) -> Result<StoredEvent, LogError> {
    let damaged = |reason: &dyn std::fmt::Display| LogError::damaged(seq, reason);
    let name = subject.rsplit('.').next().unwrap_or_default();
    let read: Read<'_> = serde_json::from_slice(payload).map_err(|error| damaged(&error))?;
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
    Ok(StoredEvent { seq, after: read.after, event })
}
