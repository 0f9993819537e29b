//! Follows the events of the stream, in order and without a gap.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::client::JetStreamLog;
use super::error::JetStreamError;
use super::message::StoredMessage;
use super::retry::{REQUEST_TIMEOUT, RetryWindow};
use crate::log::{EventFollower, LogError, Seq, StoredEvent};

/// Largest number of events that a follower returns at once.
const FOLLOW_BATCH: usize = 4_000;

/// An ordered consumer.
///
/// The client recreates it when deliveries are missing or the connection was lost. Events that were
/// returned before are skipped.
pub(super) struct StreamFollower {
    filter: String,
    next: Seq,
    consumer: OwnedConsumer,
    /// Earlier denials are not about this follower.
    mark: u64,
}

/// A consumer that is deleted when it is dropped. The server would keep it for half a minute, and
/// limits the number of all consumers.
struct OwnedConsumer {
    log: JetStreamLog,
    name: String,
    messages: Ordered,
}

impl Drop for OwnedConsumer {
    fn drop(&mut self) {
        let inner = &self.log.0;
        let Some(runtime) = &inner.runtime else { return };
        let subject = format!("$JS.API.CONSUMER.DELETE.{}.{}", inner.layout.stream(), self.name);
        let client = inner.client.clone();
        // No thread waits for the answer. If this request fails, the server deletes the consumer
        // later.
        runtime.spawn(async move {
            let inbox = client.new_inbox();
            if let Err(error) = client.publish_with_reply(subject, inbox, Bytes::new()).await {
                tracing::debug!(%error, "a consumer is left to the server");
            }
        });
    }
}

impl StreamFollower {
    pub(super) async fn start(
        log: JetStreamLog,
        filter: String,
        from: Seq,
    ) -> Result<StreamFollower, LogError> {
        let mark = log.0.denials.mark();
        let consumer = subscribe(&log, &filter, from).await?;
        Ok(StreamFollower { filter, next: from, consumer, mark })
    }

    /// Fails if no events arrive because the server denies the client's own requests.
    ///
    /// Such requests are for the next part of a long log, or for a new consumer.
    fn check_allowed(&self) -> Result<(), JetStreamError> {
        let stream = self.consumer.log.0.layout.stream();
        let own = [format!("$JS.FC.{stream}."), format!("$JS.API.CONSUMER.CREATE.{stream}.")];
        let is_own = |subject: &str| own.iter().any(|start| subject.starts_with(start));
        match self.consumer.log.0.denials.after(self.mark, is_own) {
            Some(subject) => Err(JetStreamError::Denied { subject }),
            None => Ok(()),
        }
    }

    /// Returns the next events, or none if none arrived within `timeout`.
    pub(super) async fn more(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let end = Instant::now() + timeout;
        let mut events = Vec::new();
        while events.is_empty() {
            let Ok(message) = tokio::time::timeout_at(end, self.consumer.messages.next()).await
            else {
                self.check_allowed()?;
                return Ok(events);
            };
            self.take(message, &mut events).await?;
            while events.len() < FOLLOW_BATCH
                && let Some(message) = self.consumer.messages.next().now_or_never()
            {
                self.take(message, &mut events).await?;
            }
        }
        Ok(events)
    }

    async fn take(
        &mut self,
        message: Option<Result<async_nats::jetstream::Message, impl std::error::Error>>,
        events: &mut Vec<StoredEvent>,
    ) -> Result<(), LogError> {
        match message {
            Some(Ok(message)) => {
                let seq = place(&message)?;
                if seq >= self.next {
                    let (subject, headers) = (message.subject.as_str(), message.headers.as_ref());
                    let stored = StoredMessage { seq, subject, headers, payload: &message.payload };
                    events.push(stored.event());
                    self.next = seq + 1;
                }
                Ok(())
            }
            // Heartbeats were missing: the client recreates the consumer by itself.
            Some(Err(_)) => Ok(()),
            None => {
                self.consumer = subscribe(&self.consumer.log, &self.filter, self.next).await?;
                Ok(())
            }
        }
    }
}

/// Returns the place of a delivered message in the stream.
///
/// It is the sixth word of the reply subject, in the form that servers use today. The client also
/// knows the other forms, but is slower.
fn place(message: &async_nats::jetstream::Message) -> Result<Seq, LogError> {
    let words =
        message.reply.as_ref().map(|reply| reply.split('.')).filter(|w| w.clone().count() == 9);
    match words.and_then(|mut words| words.nth(5)?.parse().ok()) {
        Some(seq) => Ok(seq),
        None => {
            let info = message.info().map_err(|e| JetStreamError::Answer(e.to_string()))?;
            Ok(info.stream_sequence)
        }
    }
}

/// Returns the first message on `filter` from place `from` on, which must exist.
///
/// A consumer that loses a delivery or its connection before its first message starts again from
/// the beginning of the subject. Older messages are skipped, as they do not follow the requested
/// version.
pub(super) async fn first_on(
    log: &JetStreamLog,
    filter: &str,
    from: Seq,
) -> Result<(Seq, async_nats::Message), LogError> {
    let mut consumer = subscribe(log, filter, from).await?;
    let mut patience = RetryWindow::new();
    loop {
        match tokio::time::timeout(REQUEST_TIMEOUT, consumer.messages.next()).await {
            Ok(Some(Ok(found))) => {
                let seq = place(&found)?;
                if seq >= from {
                    return Ok((seq, found.message));
                }
            }
            _ => patience.pause(filter, "no events came".to_owned()).await?,
        }
    }
}

async fn subscribe(log: &JetStreamLog, filter: &str, from: Seq) -> Result<OwnedConsumer, LogError> {
    let inner = &log.0;
    let stream = inner.layout.stream();
    let mut patience = RetryWindow::new();
    loop {
        let inbox = inner.client.new_inbox();
        // With a name, the filter is part of the request's subject, so permissions can match it.
        let name = format!("hl-{}", inbox.rsplit('.').next().unwrap_or_default());
        let config = OrderedConfig {
            name: Some(name.clone()),
            deliver_subject: inbox,
            filter_subject: filter.to_owned(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ..OrderedConfig::default()
        };
        let subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{name}.{filter}");
        let created = inner.context.create_consumer_on_stream(config, &stream);
        let reason = match inner.denials.or_denied(&subject, created).await? {
            Ok(consumer) => match consumer.messages().await {
                Ok(messages) => return Ok(OwnedConsumer { log: log.clone(), name, messages }),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        patience.pause(&subject, reason).await?;
    }
}

impl EventFollower for StreamFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let log = self.consumer.log.clone();
        log.run(self.more(timeout))
    }
}
