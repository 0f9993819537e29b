//! A few events out of the stream, in one question: what a short command needs to catch up.
//!
//! A consumer would be a replicated write. This is not, but its subject does not name the project:
//! a user who may not ask it gets a consumer.

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::{Inner, Patience, REQUEST_TIMEOUT, message, place};
use crate::log::{LogError, Seq, StoredEvent};

/// Events that a server answers with at once.
const AT_ONCE: usize = 1_000;

/// What came of one question.
enum Part {
    /// The events, and how many there are after them.
    Events(Vec<StoredEvent>, u64),
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
        let mut patience = Patience::new();
        while events.len() < limit {
            match self.read_part(next, AT_ONCE.min(limit - events.len())).await? {
                Part::Events(part, left) => {
                    let Some(last) = part.last() else { break };
                    next = last.seq + 1;
                    events.extend(part);
                    if left == 0 {
                        break;
                    }
                }
                Part::Nobody(reason) => patience.pause(&self.layout.all(), reason).await?,
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
        let unsent = |error: &dyn std::fmt::Display| Ok(Part::Nobody(error.to_string()));
        let inbox = self.client.new_inbox();
        let mut answers = match self.client.subscribe(inbox.clone()).await {
            Ok(answers) => answers,
            Err(error) => return unsent(&error),
        };
        let ask = json!({ "seq": from, "batch": limit, "next_by_subj": self.layout.all() });
        let ask = ask.to_string().into();
        if let Err(error) = self.client.publish_with_reply(subject.to_owned(), inbox, ask).await {
            return unsent(&error);
        }
        let mut events = Vec::new();
        let end = Instant::now() + REQUEST_TIMEOUT;
        loop {
            let Ok(Some(answer)) = tokio::time::timeout_at(end, answers.next()).await else {
                return unsent(&"no answer");
            };
            match answer.status.map(|status| status.as_u16()) {
                None => {
                    let (seq, subject) = place(&answer)?;
                    events.push(message::decode(seq, subject, &answer.payload)?);
                }
                Some(404) => return Ok(Part::Events(events, 0)),
                Some(204) => {
                    let left = answer.headers.as_ref().and_then(|headers| {
                        headers.get_last("Nats-Num-Pending")?.as_str().parse().ok()
                    });
                    return Ok(Part::Events(events, left.unwrap_or(0)));
                }
                Some(status) => return unsent(&status),
            }
        }
    }
}
