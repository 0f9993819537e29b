//! Events out of the stream, in order and without a gap.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::message::StoredMessage;
use super::{JetStream, JetStreamError, Patience, REQUEST_TIMEOUT};
use crate::log::{Follow, LogError, Seq, StoredEvent};

/// Events that a follower hands over at once.
const FOLLOW_BATCH: usize = 4_000;

/// An ordered consumer. The client makes it anew when deliveries are missing or the connection was
/// lost; whatever it then starts with, nothing is handed over twice.
pub(super) struct Follower {
    filter: String,
    next: Seq,
    consumer: Consumer,
    /// What was denied before is not about this follower.
    mark: u64,
}

/// A consumer of this client's own, which goes with it. The server would keep it for half a minute,
/// and has room for a thousand of all clients.
struct Consumer {
    log: JetStream,
    name: String,
    messages: Ordered,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let inner = &self.log.0;
        let Some(runtime) = &inner.runtime else { return };
        let subject = format!("$JS.API.CONSUMER.DELETE.{}.{}", inner.layout.stream(), self.name);
        let client = inner.client.clone();
        // Nobody waits for the answer: what is not deleted now goes later.
        runtime.spawn(async move {
            let inbox = client.new_inbox();
            let _ = client.publish_with_reply(subject, inbox, Bytes::new()).await;
        });
    }
}

impl Follower {
    pub(super) async fn start(
        log: JetStream,
        filter: String,
        from: Seq,
    ) -> Result<Follower, LogError> {
        let mark = log.0.denials.mark();
        let consumer = subscribe(&log, &filter, from).await?;
        Ok(Follower { filter, next: from, consumer, mark })
    }

    /// Fails if nothing comes because the server denies what the client does by itself: asking for the
    /// next portion of a long log, making the consumer anew.
    fn check_allowed(&self) -> Result<(), JetStreamError> {
        let stream = self.consumer.log.0.layout.stream();
        let own = [format!("$JS.FC.{stream}."), format!("$JS.API.CONSUMER.CREATE.{stream}.")];
        let is_own = |subject: &str| own.iter().any(|start| subject.starts_with(start));
        match self.consumer.log.0.denials.after(self.mark, is_own) {
            Some(subject) => Err(JetStreamError::Denied { subject }),
            None => Ok(()),
        }
    }

    /// The next events; none if nothing came within `timeout`.
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
            // Heartbeats were missing: it goes on by itself.
            Some(Err(_)) => Ok(()),
            None => {
                self.consumer = subscribe(&self.consumer.log, &self.filter, self.next).await?;
                Ok(())
            }
        }
    }
}

/// Where the stream holds a message that was delivered. It is in the reply's sixth word, in the form
/// that servers use today; the client knows the other ones too, but takes longer.
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

/// Returns the first message on `filter` from place `from` on, which is known to be there.
///
/// A consumer that loses a delivery or its connection before its first message starts again from the
/// beginning of the subject. Older messages are skipped: they do not follow the version that is asked for.
pub(super) async fn first_on(
    log: &JetStream,
    filter: &str,
    from: Seq,
) -> Result<(Seq, async_nats::Message), LogError> {
    let mut consumer = subscribe(log, filter, from).await?;
    let mut patience = Patience::new();
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

async fn subscribe(log: &JetStream, filter: &str, from: Seq) -> Result<Consumer, LogError> {
    let inner = &log.0;
    let stream = inner.layout.stream();
    let mut patience = Patience::new();
    loop {
        let inbox = inner.client.new_inbox();
        // A name puts the filter into the request's subject, where permissions see it.
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
                Ok(messages) => return Ok(Consumer { log: log.clone(), name, messages }),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        patience.pause(&subject, reason).await?;
    }
}

impl Follow for Follower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let log = self.consumer.log.clone();
        log.run(self.more(timeout))
    }
}
