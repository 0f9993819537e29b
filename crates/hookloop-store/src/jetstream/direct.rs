//! A few events out of the stream, in one question: what a short command needs to catch up.
//!
//! A consumer would be a replicated write. This is not, but its subject does not name the project:
//! a user who may not ask it gets a consumer.

use async_nats::Message;
use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::written::CatchUp;
use super::{Inner, JetStreamError, Patience, REQUEST_TIMEOUT, event_of};
use crate::log::{LogError, Seq, StoredEvent};

/// Events that a server answers with at once.
const AT_ONCE: usize = 1_000;

/// What came of one question.
enum Part {
    /// The events, and how many there are after them.
    Events(Vec<StoredEvent>, u64),
    Nobody(String),
}

/// Messages that were asked for at once, and how many there are after them.
enum Many {
    Messages(Vec<Message>, u64),
    Nobody(String),
}

impl Inner {
    /// Up to `limit` events of the project from place `from` on.
    pub(super) async fn read_directly(
        &self,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, LogError> {
        let (mut events, mut next) = (Vec::new(), from);
        let all = self.layout.all();
        let mut patience = Patience::new();
        let mut replica = CatchUp::to(self.written.last());
        while events.len() < limit {
            match self.read_part(next, AT_ONCE.min(limit - events.len())).await? {
                Part::Events(part, left) => {
                    next = part.last().map_or(next, |last| last.seq + 1);
                    let is_end = part.is_empty() || left == 0;
                    events.extend(part);
                    if is_end && events.len() < limit && replica.is_over(&all, next - 1).await {
                        break;
                    }
                }
                Part::Nobody(reason) => patience.pause(&all, reason).await?,
            }
        }
        Ok(events)
    }

    async fn read_part(&self, from: Seq, limit: usize) -> Result<Part, LogError> {
        let subject = format!("$JS.API.DIRECT.GET.{}", self.layout.stream());
        let asked = self.ask_part(&subject, from, limit);
        self.denials.or_denied(&subject, asked).await?
    }

    async fn ask_part(&self, subject: &str, from: Seq, limit: usize) -> Result<Part, LogError> {
        let ask = json!({ "seq": from, "batch": limit, "next_by_subj": self.layout.all() });
        match self.ask_for_many(subject, &ask).await {
            Many::Messages(messages, left) => {
                let events = messages.iter().map(event_of).collect::<Result<_, _>>()?;
                Ok(Part::Events(events, left))
            }
            Many::Nobody(reason) => Ok(Part::Nobody(reason)),
        }
    }

    /// The last message on each subject that `subjects`, with wildcards, means; at most [`AT_ONCE`] of them.
    pub(super) async fn last_of_each(
        &self,
        stream: &str,
        subjects: &str,
    ) -> Result<Vec<Message>, JetStreamError> {
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let ask = json!({ "multi_last": [subjects], "batch": AT_ONCE });
        let mut patience = Patience::new();
        loop {
            let asked = self.ask_for_many(&subject, &ask);
            match self.denials.or_denied(&subject, asked).await? {
                Many::Messages(messages, _) => return Ok(messages),
                Many::Nobody(reason) => patience.pause(&subject, reason).await?,
            }
        }
    }

    async fn ask_for_many(&self, subject: &str, ask: &serde_json::Value) -> Many {
        let unsent = |error: &dyn std::fmt::Display| Many::Nobody(error.to_string());
        let inbox = self.client.new_inbox();
        let mut answers = match self.client.subscribe(inbox.clone()).await {
            Ok(answers) => answers,
            Err(error) => return unsent(&error),
        };
        let ask = ask.to_string().into();
        if let Err(error) = self.client.publish_with_reply(subject.to_owned(), inbox, ask).await {
            return unsent(&error);
        }
        let mut messages = Vec::new();
        let end = Instant::now() + REQUEST_TIMEOUT;
        loop {
            let Ok(Some(answer)) = tokio::time::timeout_at(end, answers.next()).await else {
                return unsent(&"no answer");
            };
            match answer.status.map(|status| status.as_u16()) {
                None => messages.push(answer),
                Some(404) => return Many::Messages(messages, 0),
                Some(204) => {
                    let left = answer.headers.as_ref().and_then(|headers| {
                        headers.get_last("Nats-Num-Pending")?.as_str().parse().ok()
                    });
                    return Many::Messages(messages, left.unwrap_or(0));
                }
                Some(status) => return unsent(&status),
            }
        }
    }
}
