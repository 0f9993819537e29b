//! Reads a few events of the stream in one request, so that a short command catches up.
//!
//! A consumer would be a replicated write. This request is not, but its subject does not name the
//! project. A user without permission for it gets a consumer.

use async_nats::Message;
use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::client::{LogClient, event_of};
use super::error::JetStreamError;
use super::retry::{REQUEST_TIMEOUT, RetryWindow};
use super::written::ReplicaCatchUp;
use crate::log::{LogError, Seq, StoredEvent};

/// Largest number of events in a server's answer.
const AT_ONCE: usize = 1_000;

/// The result of one request.
enum DirectPart {
    /// The events, and the number of events after them.
    Events(Vec<StoredEvent>, u64),
    Nobody(String),
}

/// The messages of one request, and the number of messages after them.
enum DirectMessages {
    Messages(Vec<Message>, u64),
    Nobody(String),
}

impl LogClient {
    /// Returns up to `limit` events of the project from place `from` on.
    pub(super) async fn read_directly(
        &self,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, LogError> {
        let (mut events, mut next) = (Vec::new(), from);
        let all = self.layout.all();
        let mut patience = RetryWindow::new();
        let mut replica = ReplicaCatchUp::to(self.written.last());
        while events.len() < limit {
            match self.read_part(next, AT_ONCE.min(limit - events.len())).await? {
                DirectPart::Events(part, left) => {
                    next = part.last().map_or(next, |last| last.seq + 1);
                    let is_end = part.is_empty() || left == 0;
                    events.extend(part);
                    if is_end && events.len() < limit && replica.is_over(&all, next - 1).await {
                        break;
                    }
                }
                DirectPart::Nobody(reason) => patience.pause(&all, reason).await?,
            }
        }
        Ok(events)
    }

    async fn read_part(&self, from: Seq, limit: usize) -> Result<DirectPart, LogError> {
        let subject = format!("$JS.API.DIRECT.GET.{}", self.layout.stream());
        let asked = self.ask_part(&subject, from, limit);
        self.denials.or_denied(&subject, asked).await?
    }

    async fn ask_part(
        &self,
        subject: &str,
        from: Seq,
        limit: usize,
    ) -> Result<DirectPart, LogError> {
        let ask = json!({ "seq": from, "batch": limit, "next_by_subj": self.layout.all() });
        match self.ask_for_many(subject, &ask).await {
            DirectMessages::Messages(messages, left) => {
                let events = messages.iter().map(event_of).collect::<Result<_, _>>()?;
                Ok(DirectPart::Events(events, left))
            }
            DirectMessages::Nobody(reason) => Ok(DirectPart::Nobody(reason)),
        }
    }

    /// Returns the last message on each subject that matches `subjects`, at most [`AT_ONCE`].
    pub(super) async fn last_of_each(
        &self,
        stream: &str,
        subjects: &str,
    ) -> Result<Vec<Message>, JetStreamError> {
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let ask = json!({ "multi_last": [subjects], "batch": AT_ONCE });
        let mut patience = RetryWindow::new();
        loop {
            let asked = self.ask_for_many(&subject, &ask);
            match self.denials.or_denied(&subject, asked).await? {
                DirectMessages::Messages(messages, _) => return Ok(messages),
                DirectMessages::Nobody(reason) => patience.pause(&subject, reason).await?,
            }
        }
    }

    async fn ask_for_many(&self, subject: &str, ask: &serde_json::Value) -> DirectMessages {
        let unsent = |error: &dyn std::fmt::Display| DirectMessages::Nobody(error.to_string());
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
                Some(404) => return DirectMessages::Messages(messages, 0),
                Some(204) => {
                    let left = answer.headers.as_ref().and_then(|headers| {
                        headers.get_last("Nats-Num-Pending")?.as_str().parse().ok()
                    });
                    // An unknown number of messages may be left: ask again.
                    return match left {
                        Some(left) => DirectMessages::Messages(messages, left),
                        None => unsent(&"an answer without the number of messages left"),
                    };
                }
                Some(status) => return unsent(&status),
            }
        }
    }
}
