//! A batch into the stream, whatever the server answers.
//!
//! | answer | meaning | so |
//! |---|---|---|
//! | place | stored | done |
//! | place, duplicate | stored by an earlier try | done |
//! | [`WRONG_LAST`] | someone wrote, or an earlier try got through | the event behind the expected version tells |
//! | [`DUPLICATE_IN_BATCH`] | an event of the batch is there; none was stored now | the same |
//! | [`IN_FLIGHT`] | another write to the subject, or an earlier try, is on its way | again, soon |
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
/// On its way through the cluster is a write to the same subject, or the same event.
const IN_FLIGHT: [u64; 2] = [10_164, 10_158];
/// An id of the batch was seen before.
const DUPLICATE_IN_BATCH: u64 = 10_201;
/// There is no message on the subject.
const NO_MESSAGE: u64 = 10_037;
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

/// The last message on a subject, if there is one.
#[derive(Deserialize)]
struct Found {
    message: Option<FoundMessage>,
    error: Option<AckError>,
}

#[derive(Deserialize)]
struct FoundMessage {
    seq: Seq,
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
    /// The server says so; why, the log tells.
    Overtaken,
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
        let messages = message::encode(batch, &self.layout)?;
        let first_of = |last: Seq| last + 1 - batch.len() as Seq;
        let mut patience = Patience::new();
        let mut is_retry = false;
        loop {
            let (reason, is_brief) = match self.publish(&messages).await? {
                Answer::Stored { last } => return Ok(Appended::At(first_of(last))),
                Answer::StoredBefore { last } if is_retry => {
                    return Ok(Appended::At(first_of(last)));
                }
                Answer::StoredBefore { last } => return Ok(Appended::Before(first_of(last))),
                Answer::Overtaken => match self.look(batch, is_retry).await? {
                    Some(appended) => return Ok(appended),
                    // What overtook it is not visible here yet, or nothing did.
                    None => ("overtaken".to_owned(), true),
                },
                Answer::InFlight => ("in flight".to_owned(), true),
                Answer::Nobody(reason) => {
                    is_retry = true;
                    (reason, false)
                }
            };
            if is_brief && tokio::time::Instant::now() < patience.end {
                tokio::time::sleep(jittered(IN_FLIGHT_PAUSE)).await;
                continue;
            }
            let paused = patience.pause(&messages[0].subject, reason).await;
            paused.map_err(|error| match is_retry {
                true => JetStreamError::Unknown(Box::new(error)),
                false => error,
            })?;
        }
    }

    /// One try.
    async fn publish(&self, messages: &[Outgoing]) -> Result<Answer, JetStreamError> {
        let mark = self.denials.mark();
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
            Reply::Message(message) => match read_ack(&message)? {
                // A message of the batch never arrived: was it one that may not be sent?
                Answer::Nobody(reason) => {
                    let is_ours = |subject: &str| messages.iter().any(|m| m.subject == subject);
                    match self.denials.after(mark, is_ours) {
                        Some(subject) => Err(JetStreamError::Denied { subject }),
                        None => Ok(Answer::Nobody(reason)),
                    }
                }
                answer => Ok(answer),
            },
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
    ) -> Result<Option<Appended>, AppendError> {
        let Some(first) = batch.first() else { return Ok(None) };
        if let Some(seq) = self.stored_before(first).await? {
            return Ok(Some(if is_retry { Appended::At(seq) } else { Appended::Before(seq) }));
        }
        let mut seen = std::collections::HashSet::new();
        for NewEvent { expected, event } in
            batch.iter().filter(|new| seen.insert(&new.event.subject))
        {
            let last = self.last_event(&self.layout.subject(&event.subject)).await?;
            let (expected, mut actual) = (*expected, last.map_or(0, |last| last.seq));
            // A copy may be behind: only the leader can say that a subject never got so far.
            if actual < expected {
                let subject = self.layout.subject(&event.subject);
                actual = self.last_by_leader(&subject).await?.unwrap_or(expected).min(expected);
            }
            if actual != expected {
                let subject = event.subject.clone();
                return Err(AppendError::Conflict { subject, expected, actual });
            }
        }
        Ok(None)
    }

    /// The last place on a subject by the leader's word; none if it can't be asked now, or not by this
    /// user.
    async fn last_by_leader(&self, subject: &str) -> Result<Option<Seq>, JetStreamError> {
        let get = format!("$JS.API.STREAM.MSG.GET.{}", self.layout.stream());
        let payload = serde_json::json!({ "last_by_subj": subject }).to_string();
        let reply = match self.ask(&get, Request::new().payload(payload.into())).await {
            Ok(Reply::Message(message)) => message,
            Ok(Reply::Nobody(_)) | Err(JetStreamError::Denied { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found: Found = serde_json::from_slice(&reply.payload)
            .map_err(|error| JetStreamError::Answer(error.to_string()))?;
        Ok(match (found.message, found.error) {
            (Some(message), _) => Some(message.seq),
            (None, Some(error)) if error.err_code == NO_MESSAGE => Some(0),
            _ => None,
        })
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

/// Refused, if the server says so.
pub(super) fn read_refusal(message: &Message) -> Result<(), JetStreamError> {
    let ack: Ack = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        Some(AckError { err_code: code, description }) => {
            Err(JetStreamError::Refused { code, description })
        }
        None => Ok(()),
    }
}

fn read_ack(message: &Message) -> Result<Answer, JetStreamError> {
    let ack: Ack = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        None if ack.duplicate => Ok(Answer::StoredBefore { last: ack.seq }),
        None => Ok(Answer::Stored { last: ack.seq }),
        Some(error) => match error.err_code {
            WRONG_LAST | DUPLICATE_IN_BATCH => Ok(Answer::Overtaken),
            code if IN_FLIGHT.contains(&code) => Ok(Answer::InFlight),
            code if NOT_NOW.contains(&code) => Ok(Answer::Nobody(error.description)),
            code => Err(JetStreamError::Refused { code, description: error.description }),
        },
    }
}
