//! Signs of life, in a stream that keeps the last one of each.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{JetStream, JetStreamError, place};
use crate::log::LogError;
use crate::pulse::{Beat, Held, Pulse};

/// The holder of a sign of life that can't be read.
const UNREADABLE: &str = "(unreadable)";

#[derive(Serialize, Deserialize)]
struct Message {
    holder: String,
    epoch: u64,
}

impl Pulse for JetStream {
    fn beat(&self, held: &Held, holder: &str, epoch: u64) -> Result<(), LogError> {
        let message = Message { holder: holder.to_owned(), epoch };
        let payload = serde_json::to_vec(&message).map_err(|e| LogError::Engine(Box::new(e)))?;
        let subject = self.0.layout.pulse(held);
        Ok(self.run(self.0.put(&subject, &Bytes::from(payload)))?)
    }

    fn take(
        &self,
        held: &Held,
        holder: &str,
        epoch: u64,
        seen: Option<&Beat>,
    ) -> Result<bool, LogError> {
        let message = Message { holder: holder.to_owned(), epoch };
        let payload = serde_json::to_vec(&message).map_err(|e| LogError::Engine(Box::new(e)))?;
        let (stream, subject) = (self.0.layout.pulse_stream(), self.0.layout.pulse(held));
        self.run(async {
            let last = self.0.last_on(stream, &subject).await?;
            let last_beat = last.as_ref().map(beat).transpose()?.flatten();
            if last_beat.as_ref() != seen {
                return Ok(false);
            }
            let after = last.as_ref().map(place).transpose()?.map_or(0, |(seq, _)| seq);
            if self.0.put_after(&subject, &Bytes::from(payload), after).await? {
                return Ok(true);
            }
            // The answer to the first of two tries may have been lost.
            let last = self.0.last_on(stream, &subject).await?;
            let last_beat = last.as_ref().map(beat).transpose()?.flatten();
            Ok(last_beat.is_some_and(|beat| beat.holder == holder))
        })
    }

    fn last_beat(&self, held: &Held) -> Result<Option<Beat>, LogError> {
        let (stream, subject) = (self.0.layout.pulse_stream(), self.0.layout.pulse(held));
        self.run(async {
            match self.0.last_on(stream, &subject).await? {
                Some(found) => Ok(beat(&found)?),
                None => Ok(None),
            }
        })
    }

    fn workers(&self) -> Result<Vec<Beat>, LogError> {
        let (stream, subjects) = (self.0.layout.pulse_stream(), self.0.layout.pulses_of_workers());
        self.run(async {
            let found = self.0.last_of_each(stream, &subjects).await?;
            let beats = found.iter().map(beat).collect::<Result<Vec<_>, _>>()?;
            Ok(beats.into_iter().flatten().collect())
        })
    }

    fn forget(&self, held: &Held) -> Result<(), LogError> {
        // What is empty says nothing: who may show a sign of life may take it back without a further right.
        let subject = self.0.layout.pulse(held);
        Ok(self.run(self.0.put(&subject, &Bytes::new()))?)
    }
}

/// A foreign message in place of a sign of life: the sign of a holder that nobody is. The true holder writes over it
/// with its next one; if there is none, the place falls free as if its holder were silent.
fn unreadable() -> Message {
    Message { holder: UNREADABLE.to_owned(), epoch: 0 }
}

/// What a sign of life says; none if it was taken back.
fn beat(found: &async_nats::Message) -> Result<Option<Beat>, JetStreamError> {
    if found.payload.is_empty() {
        return Ok(None);
    }
    let (count, _) = place(found)?;
    let message = serde_json::from_slice(&found.payload).unwrap_or_else(|_| unreadable());
    Ok(Some(Beat { holder: message.holder, epoch: message.epoch, count }))
}
