//! A batch into the stream, whatever the server answers.
//!
//! | answer | meaning | so |
//! |---|---|---|
//! | place | stored | done |
//! | [`WRONG_LAST`] | someone wrote, or an earlier try got through | what is behind the expected version tells |
//! | place, duplicate; [`DUPLICATE_IN_BATCH`] | an event of the batch is there; none was stored now | the same |
//! | [`IN_FLIGHT`] | another write to the subject, or an earlier try, is on its way | again, soon |
//! | nobody, no answer | an election, a lost connection: unknown | again, the same ids and versions, for a while |
//!
//! Nothing is guessed: a batch that may have been stored is sent again unchanged, and the server
//! or the log itself says which it was.

use std::sync::Arc;
use std::time::Duration;

use async_nats::header::NATS_BATCH_ID;
use async_nats::{Message, Request};
use serde::Deserialize;

use super::message::{self, Outgoing};
use super::{Inner, JetStream, JetStreamError, Patience, Reply, follow, jittered, place};
use crate::log::{AppendError, Appended, LogError, MAX_BATCH, NewEvent, Seq};

/// The subject's last event is not the expected one.
const WRONG_LAST: u64 = 10_071;
/// A write to the same subject, or with the same id, is on its way through the cluster.
const IN_FLIGHT: [u64; 2] = [10_164, 10_158];
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
/// There is no message on the subject.
const NO_MESSAGE: u64 = 10_037;
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
        let subjects = || messages.iter().map(|message| message.subject.as_str());
        let mut patience = Patience::new();
        let (mut tries, mut is_retry) = (Vec::new(), false);
        loop {
            let name = self.fresh_name();
            tries.push(name.clone());
            let (reason, is_brief) = match self.publish(&messages, &name).await? {
                Answer::Stored { last } => {
                    self.written.note(first_of(last), subjects());
                    return Ok(Appended::At(first_of(last)));
                }
                Answer::Overtaken => {
                    let attempt = Attempt { batch, messages: &messages, tries: &tries, is_retry };
                    match self.look(&attempt).await? {
                        // A copy that is behind must not hide the event from the reads that follow.
                        Some(appended) => {
                            let found = match appended {
                                Appended::At(_) => messages.len(),
                                Appended::Before(_) => 1,
                            };
                            self.written.note(appended.first(), subjects().take(found));
                            return Ok(appended);
                        }
                        // What overtook it is not visible here yet, or nothing did.
                        None => ("overtaken".to_owned(), true),
                    }
                }
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

    fn fresh_name(&self) -> String {
        let inbox = self.client.new_inbox();
        inbox.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// One try.
    async fn publish(&self, messages: &[Outgoing], name: &str) -> Result<Answer, JetStreamError> {
        let mark = self.denials.mark();
        let reply = match messages {
            [only] => self.send(only.clone()).await?,
            [before @ .., last] => {
                for (n, message) in before.iter().enumerate() {
                    let Outgoing { subject, headers, payload } =
                        message.in_batch(name, n + 1, false);
                    let sent = self.client.publish_with_headers(subject, headers, payload).await;
                    if let Err(error) = sent {
                        return Ok(Answer::Nobody(error.to_string()));
                    }
                }
                self.send(last.in_batch(name, messages.len(), true)).await?
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
    /// another is. None if the log does not show either. Each subject is looked at once: a second
    /// look may be answered by a copy that has more.
    async fn look(
        self: &Arc<Self>,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Appended>, AppendError> {
        let mut seen = std::collections::HashSet::new();
        let subjects = attempt.batch.iter().enumerate();
        for (index, new) in subjects.filter(|(_, new)| seen.insert(&new.event.subject)) {
            let conflict = |actual: Seq| {
                let (subject, expected) = (new.event.subject.clone(), new.expected);
                Err(AppendError::Conflict { subject, expected, actual })
            };
            let (message, seq, actual) = match self.behind(new).await? {
                Behind::Nothing => continue,
                Behind::Short { actual } => return conflict(actual),
                Behind::Message { message, seq, actual } => (message, seq, actual),
            };
            if attempt.is_in(&message) {
                return Ok(Some(Appended::At(seq - index as Seq)));
            }
            let subject = self.layout.subject(&new.event.subject);
            let stored = message::decode(seq, &subject, &message.payload);
            let is_same = stored.is_ok_and(|stored| stored.event.id == new.event.id);
            return match index {
                0 if is_same => Ok(Some(Appended::Before(seq))),
                // This copy had nothing of the first subject. If it is behind, another look tells.
                _ if is_same && self.is_behind(&attempt.batch[0]).await? => Ok(None),
                _ => conflict(actual),
            };
        }
        Ok(None)
    }

    /// What is right behind the version that `new` expects. To look at the last event alone would
    /// misjudge when someone wrote after it.
    async fn behind(self: &Arc<Self>, new: &NewEvent) -> Result<Behind, LogError> {
        let subject = self.layout.subject(&new.event.subject);
        let last = self.last_on(&self.layout.stream(), &subject).await?;
        let actual = last.as_ref().map(place).transpose()?.map_or(0, |(seq, _)| seq);
        let message = match last {
            Some(message) if actual > new.expected => message,
            // A copy may be behind: only the leader can say that a subject never got so far.
            _ if actual < new.expected => {
                let by_leader = self.last_by_leader(&subject).await?.unwrap_or(new.expected);
                return Ok(match by_leader < new.expected {
                    true => Behind::Short { actual: by_leader },
                    false => Behind::Nothing,
                });
            }
            _ => return Ok(Behind::Nothing),
        };
        // A message that is no event follows nothing that this program knows.
        let after = message::decode(actual, &subject, &message.payload).ok().and_then(|e| e.after);
        if after == Some(new.expected) {
            return Ok(Behind::Message { message, seq: actual, actual });
        }
        let log = JetStream(self.clone());
        let (seq, message) = follow::first_on(&log, &subject, new.expected + 1).await?;
        Ok(Behind::Message { message, seq, actual })
    }

    /// Whether a subject is beyond the version that `new` expects, by the leader's word.
    async fn is_behind(&self, new: &NewEvent) -> Result<bool, JetStreamError> {
        let last = self.last_by_leader(&self.layout.subject(&new.event.subject)).await?;
        Ok(last.is_some_and(|last| last > new.expected))
    }

    /// The last place on a subject by the leader's word; none if it can't be asked now, or not by this
    /// user.
    pub(super) async fn last_by_leader(
        &self,
        subject: &str,
    ) -> Result<Option<Seq>, JetStreamError> {
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
}

/// A batch on its way.
struct Attempt<'a> {
    batch: &'a [NewEvent],
    messages: &'a [Outgoing],
    /// The names that it was sent under.
    tries: &'a [String],
    /// One of them got no answer.
    is_retry: bool,
}

impl Attempt<'_> {
    /// Whether `stored` is of one of the tries. Its id does not tell: another who reacts to the same
    /// event gives the same ids to what may be a different batch.
    fn is_in(&self, stored: &Message) -> bool {
        let name = stored.headers.as_ref().and_then(|headers| headers.get_last(NATS_BATCH_ID));
        match (name, self.messages) {
            (Some(name), _) => self.tries.iter().any(|tried| tried == name.as_str()),
            (None, [only]) => self.is_retry && only.payload == stored.payload,
            (None, _) => false,
        }
    }
}

/// What follows a version of a subject.
enum Behind {
    /// The subject is at that version, as far as this copy knows.
    Nothing,
    /// It never was: it is here.
    Short { actual: Seq },
    /// This message, and where the subject is now.
    Message { message: Message, seq: Seq, actual: Seq },
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

/// Whether a message was stored after the one that it named.
pub(super) fn was_next(message: &Message) -> Result<bool, JetStreamError> {
    match read_refusal(message) {
        Ok(()) => Ok(true),
        Err(JetStreamError::Refused { code: WRONG_LAST, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_ack(message: &Message) -> Result<Answer, JetStreamError> {
    let ack: Ack = serde_json::from_slice(&message.payload)
        .map_err(|error| JetStreamError::Answer(error.to_string()))?;
    match ack.error {
        // Of an earlier try, or of another who came to the same.
        None if ack.duplicate => Ok(Answer::Overtaken),
        None => Ok(Answer::Stored { last: ack.seq }),
        Some(error) => match error.err_code {
            WRONG_LAST | DUPLICATE_IN_BATCH => Ok(Answer::Overtaken),
            code if IN_FLIGHT.contains(&code) => Ok(Answer::InFlight),
            code if NOT_NOW.contains(&code) => Ok(Answer::Nobody(error.description)),
            code => Err(JetStreamError::Refused { code, description: error.description }),
        },
    }
}
