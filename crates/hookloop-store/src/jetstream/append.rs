//! Appends a batch to the stream, for every answer of the server.
//!
//! | answer | meaning | next step |
//! |---|---|---|
//! | place | stored | done |
//! | `WRONG_LAST` | another process wrote, or an earlier try succeeded | read the event behind the expected version |
//! | place, duplicate; `DUPLICATE_IN_BATCH` | an event of the batch is stored; none was stored now | the same read |
//! | `IN_FLIGHT` | another write to the subject, or an earlier try, is on its way | try again soon |
//! | no responders, no answer | an election or a lost connection: unknown | try again with the same ids and versions |
//!
//! A batch that may have been stored is sent again unchanged, and the server or the log shows
//! whether it was.

use std::sync::Arc;
use std::time::Duration;

use async_nats::header::NATS_BATCH_ID;
use async_nats::{Message, Request};

use super::ack::{PublishAnswer, read_ack};
use super::client::{JetStreamLog, LogClient, ServerReply, place};
use super::error::JetStreamError;
use super::follow;
use super::message::{self, OutgoingMessage};
use super::retry::{RetryWindow, jittered};
use crate::log::{AppendError, AppendOutcome, LogError, MAX_BATCH, NewEvent, Seq};

/// The pause before a write that met another one in flight.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(2);

impl LogClient {
    pub(super) async fn append(
        self: &Arc<Self>,
        batch: &[NewEvent],
    ) -> Result<AppendOutcome, AppendError> {
        if batch.is_empty() || batch.len() > MAX_BATCH {
            return Err(AppendError::BatchSize(batch.len()));
        }
        let messages = message::encode(batch, &self.layout)?;
        let first_of = |last: Seq| last + 1 - batch.len() as Seq;
        let subjects = || messages.iter().map(|message| message.subject.as_str());
        let mut patience = RetryWindow::new();
        let (mut tries, mut is_retry) = (Vec::new(), false);
        loop {
            let name = self.fresh_name();
            tries.push(name.clone());
            let (reason, is_brief) = match self.publish(&messages, &name).await? {
                PublishAnswer::Stored { last } => {
                    self.written.note(first_of(last), subjects());
                    return Ok(AppendOutcome::At(first_of(last)));
                }
                PublishAnswer::Overtaken => {
                    let attempt =
                        AppendAttempt { batch, messages: &messages, tries: &tries, is_retry };
                    match self.look(&attempt).await? {
                        // Later reads must show the event, even from a replica that lags behind.
                        Some(appended) => {
                            let found = match appended {
                                AppendOutcome::At(_) => messages.len(),
                                AppendOutcome::Before(_) => 1,
                            };
                            self.written.note(appended.first(), subjects().take(found));
                            return Ok(appended);
                        }
                        // The event that came first is not visible here yet, or there is none.
                        None => ("overtaken".to_owned(), true),
                    }
                }
                PublishAnswer::InFlight => ("in flight".to_owned(), true),
                PublishAnswer::Nobody(reason) => {
                    is_retry = true;
                    (reason, false)
                }
            };
            if is_brief && tokio::time::Instant::now() < patience.end {
                tokio::time::sleep(jittered(IN_FLIGHT_PAUSE)).await;
                continue;
            }
            let paused = patience.pause(&messages[0].subject, reason).await;
            paused.map_err(|error| {
                if is_retry { JetStreamError::Unknown(Box::new(error)) } else { error }
            })?;
        }
    }

    fn fresh_name(&self) -> String {
        let inbox = self.client.new_inbox();
        inbox.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// Publishes the batch once.
    async fn publish(
        &self,
        messages: &[OutgoingMessage],
        name: &str,
    ) -> Result<PublishAnswer, JetStreamError> {
        let mark = self.denials.mark();
        let reply = match messages {
            [only] => self.send(only.clone()).await?,
            [before @ .., last] => {
                for (n, message) in before.iter().enumerate() {
                    let OutgoingMessage { subject, headers, payload } =
                        message.in_batch(name, n + 1, false);
                    let sent = self.client.publish_with_headers(subject, headers, payload).await;
                    if let Err(error) = sent {
                        return Ok(PublishAnswer::Nobody(error.to_string()));
                    }
                }
                self.send(last.in_batch(name, messages.len(), true)).await?
            }
            [] => return Err(JetStreamError::Answer("nothing to publish".to_owned())),
        };
        match reply {
            ServerReply::Message(message) => match read_ack(&message)? {
                // A message of the batch never arrived. The server may have denied it.
                PublishAnswer::Nobody(reason) => {
                    let is_ours = |subject: &str| messages.iter().any(|m| m.subject == subject);
                    match self.denials.after(mark, is_ours) {
                        Some(subject) => Err(JetStreamError::Denied { subject }),
                        None => Ok(PublishAnswer::Nobody(reason)),
                    }
                }
                answer => Ok(answer),
            },
            ServerReply::Nobody(reason) => Ok(PublishAnswer::Nobody(reason)),
        }
    }

    async fn send(&self, message: OutgoingMessage) -> Result<ServerReply, JetStreamError> {
        let OutgoingMessage { subject, headers, payload } = message;
        self.ask(&subject, Request::new().headers(headers).payload(payload)).await
    }

    /// Finds out whether a batch with outdated versions is stored, or a competing one.
    ///
    /// Returns `None` if the log shows neither. Each subject is read once: another replica that has
    /// more events may answer a second read.
    async fn look(
        self: &Arc<Self>,
        attempt: &AppendAttempt<'_>,
    ) -> Result<Option<AppendOutcome>, AppendError> {
        let mut seen = std::collections::HashSet::new();
        let subjects = attempt.batch.iter().enumerate();
        for (index, new) in subjects.filter(|(_, new)| seen.insert(&new.event.subject)) {
            let conflict = |actual: Seq| {
                let (subject, expected) = (new.event.subject.clone(), new.expected);
                Err(AppendError::Conflict { subject, expected, actual })
            };
            let (message, seq, actual) = match self.behind(new).await? {
                NextOnSubject::Nothing => continue,
                NextOnSubject::Short { actual } => return conflict(actual),
                NextOnSubject::Message { message, seq, actual } => (message, seq, actual),
            };
            if attempt.is_in(&message) {
                return Ok(Some(AppendOutcome::At(seq - index as Seq)));
            }
            let subject = self.layout.subject(&new.event.subject);
            let stored = message::decode(seq, &subject, &message.payload);
            let is_same = stored.is_ok_and(|stored| stored.event.id == new.event.id);
            return match index {
                0 if is_same => Ok(Some(AppendOutcome::Before(seq))),
                // This replica has nothing of the first subject. If it lags behind, another read
                // shows the event.
                _ if is_same && self.is_behind(&attempt.batch[0]).await? => Ok(None),
                _ => conflict(actual),
            };
        }
        Ok(None)
    }

    /// Returns the event right after the version that `new` expects.
    ///
    /// The last event is not enough: another process may have written after it.
    async fn behind(self: &Arc<Self>, new: &NewEvent) -> Result<NextOnSubject, LogError> {
        let subject = self.layout.subject(&new.event.subject);
        let last = self.last_on(&self.layout.stream(), &subject).await?;
        let actual = last.as_ref().map(place).transpose()?.map_or(0, |(seq, _)| seq);
        let message = match last {
            Some(message) if actual > new.expected => message,
            // A replica may lag behind. Only the leader knows that a subject never reached the
            // version.
            _ if actual < new.expected => {
                let by_leader = self.last_by_leader(&subject).await?.unwrap_or(new.expected);
                return Ok(if by_leader < new.expected {
                    NextOnSubject::Short { actual: by_leader }
                } else {
                    NextOnSubject::Nothing
                });
            }
            _ => return Ok(NextOnSubject::Nothing),
        };
        // A foreign message follows no version that this program knows.
        let after = message::decode(actual, &subject, &message.payload).ok().and_then(|e| e.after);
        if after == Some(new.expected) {
            return Ok(NextOnSubject::Message { message, seq: actual, actual });
        }
        let log = JetStreamLog(self.clone());
        let (seq, message) = follow::first_on(&log, &subject, new.expected + 1).await?;
        Ok(NextOnSubject::Message { message, seq, actual })
    }

    /// Whether a subject is beyond the version that `new` expects, according to the leader.
    async fn is_behind(&self, new: &NewEvent) -> Result<bool, JetStreamError> {
        let last = self.last_by_leader(&self.layout.subject(&new.event.subject)).await?;
        Ok(last.is_some_and(|last| last > new.expected))
    }
}

/// A batch that is being appended.
struct AppendAttempt<'a> {
    batch: &'a [NewEvent],
    messages: &'a [OutgoingMessage],
    /// The batch ids of all attempts.
    tries: &'a [String],
    /// Whether one of them got no answer.
    is_retry: bool,
}

impl AppendAttempt<'_> {
    /// Whether `stored` comes from one of the attempts.
    ///
    /// The event id does not show it. Another process that reacts to the same event uses the same
    /// ids for its batch, which may differ.
    fn is_in(&self, stored: &Message) -> bool {
        let name = stored.headers.as_ref().and_then(|headers| headers.get_last(NATS_BATCH_ID));
        match (name, self.messages) {
            (Some(name), _) => self.tries.iter().any(|tried| tried == name.as_str()),
            (None, [only]) => self.is_retry && only.payload == stored.payload,
            (None, _) => false,
        }
    }
}

/// The event that follows a version of a subject.
enum NextOnSubject {
    /// None: the subject is at that version, as far as this copy knows.
    Nothing,
    /// None: the subject has never reached that version. It is at `actual`.
    Short { actual: Seq },
    /// This message, and the subject's present version.
    Message { message: Message, seq: Seq, actual: Seq },
}
