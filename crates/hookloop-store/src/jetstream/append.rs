//! A batch into the stream, whatever the server answers.
//!
//! | answer | meaning | so |
//! |---|---|---|
//! | place | stored | done |
//! | place, duplicate | stored by an earlier try | done |
//! | [`WRONG_LAST`] | someone wrote, or an earlier try got through | the event behind the expected version tells |
//! | [`DUPLICATE_IN_BATCH`] | an event of the batch is there; none was stored now | the same |
//! | [`IN_FLIGHT`] | another write to the subject is on its way | again, soon |
//! | nobody, no answer | an election, a lost connection: unknown | again, the same ids and versions, for a while |
//!
//! Nothing is guessed: a batch that may have been stored is sent again unchanged, and the server
//! or the log itself says which it was.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Request};
use serde::Deserialize;

use super::message::{self, Outgoing};
use super::{Inner, JetStreamError, Patience, Reply, jittered};
use crate::log::{AppendError, Appended, LogError, MAX_BATCH, NewEvent, Seq};

/// The subject's last event is not the expected one.
const WRONG_LAST: u64 = 10_071;
/// A write to the same subject is on its way through the cluster.
const IN_FLIGHT: u64 = 10_164;
/// An id of the batch was seen before.
const DUPLICATE_IN_BATCH: u64 = 10_201;
/// The server can't do it now, and has not done it.
const NOT_NOW: [u64; 6] = [
    10_008, // JetStream is not available
    10_009, // the cluster has no leader
    10_010, // not the leader
    10_023, // short of resources
    10_077, // the stream's limits
    10_176, // the batch is incomplete: a message of it was lost
];
/// The pause before a write that met another one in flight.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(2);

#[derive(Deserialize)]
struct Ack {
    #[serde(default)]
    seq: Seq,
    #[serde(default)]
    duplicate: bool,
    error: Option<AckError>,
}

#[derive(Deserialize)]
struct AckError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// What one try came to.
enum Answer {
    /// The last event of the batch is here.
    Stored {
        last: Seq,
    },
    StoredBefore {
        last: Seq,
    },
    /// With the subject's last place, where the server says it.
    Overtaken(Option<Seq>),
    InFlight,
    Nobody(String),
}

impl Inner {
    pub(super) async fn append(
        self: &Arc<Self>,
        batch: &[NewEvent],
    ) -> Result<Appended, AppendError> {
        if batch.is_empty() || batch.len() > MAX_BATCH {
            return Err(AppendError::BatchSize(batch.len()));
        }
        let messages = message::encode(batch, |subject| self.layout.subject(subject))?;
        let first_of = |last: Seq| last + 1 - batch.len() as Seq;
        let mut patience = Patience::new();
        let mut is_retry = false;
        loop {
            match self.publish(&messages).await? {
                Answer::Stored { last } => return Ok(Appended::At(first_of(last))),
                Answer::StoredBefore { last } if is_retry => {
                    return Ok(Appended::At(first_of(last)));
                }
                Answer::StoredBefore { last } => return Ok(Appended::Before(first_of(last))),
                Answer::Overtaken(last) => match self.look(batch, is_retry, last).await? {
                    Some(appended) => return Ok(appended),
                    // What overtook it is not visible here yet, or is gone again.
                    None => self.pause(&mut patience, &messages, "overtaken").await?,
                },
                Answer::InFlight => {
                    self.pause(&mut patience, &messages, "in flight").await?;
                }
                Answer::Nobody(reason) => {
                    is_retry = true;
                    let paused = patience.pause(&messages[0].subject, reason).await;
                    paused.map_err(|error| JetStreamError::Unknown(Box::new(error)))?;
                }
            }
        }
    }

    /// A short pause, within the same patience.
    async fn pause(
        &self,
        patience: &mut Patience,
        messages: &[Outgoing],
        reason: &str,
    ) -> Result<(), LogError> {
        if tokio::time::Instant::now() < patience.end {
            tokio::time::sleep(jittered(IN_FLIGHT_PAUSE)).await;
            return Ok(());
        }
        Ok(patience.pause(&messages[0].subject, reason.to_owned()).await?)
    }

    /// One try.
    async fn publish(&self, messages: &[Outgoing]) -> Result<Answer, JetStreamError> {
        let reply = match messages {
            [only] => self.send(only.clone()).await?,
            [before @ .., last] => {
                let batch = self.client.new_inbox();
                let batch = batch.rsplit('.').next().unwrap_or_default();
                for (n, message) in before.iter().enumerate() {
                    let Outgoing { subject, headers, payload } =
                        message.in_batch(batch, n + 1, false);
                    let sent = self.client.publish_with_headers(subject, headers, payload).await;
                    if let Err(error) = sent {
                        return Ok(Answer::Nobody(error.to_string()));
                    }
                }
                self.send(last.in_batch(batch, messages.len(), true)).await?
            }
            [] => return Err(JetStreamError::Answer("nothing to publish".to_owned())),
        };
        match reply {
            Reply::Message(message) => read_ack(&message),
            Reply::Nobody(reason) => Ok(Answer::Nobody(reason)),
        }
    }

    async fn send(&self, message: Outgoing) -> Result<Reply, JetStreamError> {
        let Outgoing { subject, headers, payload } = message;
        self.ask(&subject, Request::new().headers(headers).payload(payload)).await
    }

    /// What became of a batch whose subjects are not at the versions it expects: it is there, or
    /// another is. None if the log does not show either.
    async fn look(
        self: &Arc<Self>,
        batch: &[NewEvent],
        is_retry: bool,
        last: Option<Seq>,
    ) -> Result<Option<Appended>, AppendError> {
        let Some(first) = batch.first() else { return Ok(None) };
        // The subject never was where the batch expects it: nothing can be behind that.
        if let ([new], Some(actual)) = (batch, last)
            && actual < new.expected
        {
            let (subject, expected) = (new.event.subject.clone(), new.expected);
            return Err(AppendError::Conflict { subject, expected, actual });
        }
        if let Some(seq) = self.stored_before(first).await? {
            return Ok(Some(if is_retry { Appended::At(seq) } else { Appended::Before(seq) }));
        }
        let mut seen = std::collections::HashSet::new();
        for NewEvent { expected, event } in
            batch.iter().filter(|new| seen.insert(&new.event.subject))
        {
            let last = self.last_event(&self.layout.subject(&event.subject)).await?;
            let (expected, actual) = (*expected, last.map_or(0, |last| last.seq));
            if actual > expected {
                let subject = event.subject.clone();
                return Err(AppendError::Conflict { subject, expected, actual });
            }
        }
        Ok(None)
    }

    /// Where `new` was stored before, if it was: right behind the version that it expects. To look
    /// at the last event alone would misjudge when someone wrote after it.
    async fn stored_before(self: &Arc<Self>, new: &NewEvent) -> Result<Option<Seq>, LogError> {
        let subject = self.layout.subject(&new.event.subject);
        let Some(last) = self.last_event(&subject).await? else { return Ok(None) };
        if last.seq <= new.expected {
            return Ok(None);
        }
        let behind = match last.after {
            Some(after) if after == new.expected => Some(last),
            _ => self.scan(subject, (new.expected + 1, last.seq), 1).await?.pop(),
        };
        Ok(behind.filter(|behind| behind.event.id == new.event.id).map(|behind| behind.seq))
    }
}

fn read_ack(message: &Message) -> Result<Answer, JetStreamError> {
    let ack: Ack = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        None if ack.duplicate => Ok(Answer::StoredBefore { last: ack.seq }),
        None => Ok(Answer::Stored { last: ack.seq }),
        Some(error) => match error.err_code {
            WRONG_LAST => {
                let last = error.description.rsplit(' ').next().and_then(|seq| seq.parse().ok());
                Ok(Answer::Overtaken(last))
            }
            DUPLICATE_IN_BATCH => Ok(Answer::Overtaken(None)),
            IN_FLIGHT => Ok(Answer::InFlight),
            code if NOT_NOW.contains(&code) => Ok(Answer::Nobody(error.description)),
            code => Err(JetStreamError::Refused { code, description: error.description }),
        },
    }
}
