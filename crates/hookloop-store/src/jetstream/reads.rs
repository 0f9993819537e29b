//! Reads of the stream: by any replica, or by its leader.

use std::sync::Arc;

use async_nats::Request;
use serde::Deserialize;

use super::ack::AckRefusal;
use super::client::{JetStreamLog, LogClient, ServerReply, event_of, place};
use super::error::JetStreamError;
use super::follow::StreamFollower;
use super::retry::{REQUEST_TIMEOUT, RetryWindow};
use super::written::ReplicaCatchUp;
use crate::log::{LogError, Seq, StoredEvent};

/// The error code for a subject without messages.
const NO_MESSAGE: u64 = 10_037;

#[derive(Deserialize)]
struct FoundReply {
    message: Option<FoundMessage>,
    error: Option<AckRefusal>,
}

#[derive(Deserialize)]
struct FoundMessage {
    seq: Seq,
}

impl LogClient {
    pub(super) async fn last_event(&self, subject: &str) -> Result<Option<StoredEvent>, LogError> {
        let mut replica = ReplicaCatchUp::to(self.written.last_of(subject));
        loop {
            let message = self.last_on(&self.layout.stream(), subject).await?;
            let event = message.as_ref().map(event_of).transpose()?;
            if replica.is_over(subject, event.as_ref().map_or(0, |event| event.seq)).await {
                return Ok(event);
            }
        }
    }

    pub(super) async fn head(&self) -> Result<Seq, LogError> {
        let all = self.layout.all();
        let mut replica = ReplicaCatchUp::to(self.written.last());
        loop {
            let message = self.last_on(&self.layout.stream(), &all).await?;
            let last = message.as_ref().map(place).transpose()?.map_or(0, |(seq, _)| seq);
            if replica.is_over(&all, last).await {
                return Ok(last);
            }
        }
    }

    /// Returns up to `limit` events on `filter` from place `from` to place `to`.
    pub(super) async fn scan(
        self: &Arc<Self>,
        filter: String,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = Vec::new();
        if from > to || limit == 0 {
            return Ok(events);
        }
        let mut follower = StreamFollower::start(JetStreamLog(self.clone()), filter, from).await?;
        let mut patience = RetryWindow::new();
        while events.len() < limit {
            let more = follower.more(REQUEST_TIMEOUT).await?;
            if more.is_empty() {
                patience.pause(&self.layout.all(), "no events came".to_owned()).await?;
            }
            events.extend(more);
            if events.last().is_some_and(|event| event.seq >= to) {
                break;
            }
        }
        events.truncate(limit);
        Ok(events)
    }

    /// Returns the last place on a subject according to the leader.
    ///
    /// Returns `None` if the leader does not answer now, or not to this user.
    pub(super) async fn last_by_leader(
        &self,
        subject: &str,
    ) -> Result<Option<Seq>, JetStreamError> {
        let get = format!("$JS.API.STREAM.MSG.GET.{}", self.layout.stream());
        let payload = serde_json::json!({ "last_by_subj": subject }).to_string();
        let reply = match self.ask(&get, Request::new().payload(payload.into())).await {
            Ok(ServerReply::Message(message)) => message,
            Ok(ServerReply::Nobody(_)) | Err(JetStreamError::Denied { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found: FoundReply = serde_json::from_slice(&reply.payload)
            .map_err(|error| JetStreamError::Answer(error.to_string()))?;
        Ok(match (found.message, found.error) {
            (Some(message), _) => Some(message.seq),
            (None, Some(error)) if error.err_code == NO_MESSAGE => Some(0),
            _ => None,
        })
    }
}
