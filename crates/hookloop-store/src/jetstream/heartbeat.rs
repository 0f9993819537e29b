//! Heartbeats, in a stream that keeps the last one of each resource.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::client::{JetStreamLog, place};
use super::error::JetStreamError;
use crate::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use crate::log::LogError;

/// Stands for the holder of a heartbeat that cannot be read.
const UNREADABLE: &str = "(unreadable)";

#[derive(Serialize, Deserialize)]
struct HeartbeatMessage {
    holder: String,
    epoch: u64,
}

impl HeartbeatStore for JetStreamLog {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        let message = HeartbeatMessage { holder: holder.to_owned(), epoch };
        let payload = serde_json::to_vec(&message).map_err(|e| LogError::Engine(Box::new(e)))?;
        let subject = self.0.layout.pulse(held);
        Ok(self.run(self.0.put(&subject, &Bytes::from(payload)))?)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        let message = HeartbeatMessage { holder: holder.to_owned(), epoch };
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

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        let (stream, subject) = (self.0.layout.pulse_stream(), self.0.layout.pulse(held));
        self.run(async {
            match self.0.last_on(stream, &subject).await? {
                Some(found) => Ok(beat(&found)?),
                None => Ok(None),
            }
        })
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        let (stream, subjects) = (self.0.layout.pulse_stream(), self.0.layout.pulses_of_workers());
        self.run(async {
            let found = self.0.last_of_each(stream, &subjects).await?;
            let beats = found.iter().map(beat).collect::<Result<Vec<_>, _>>()?;
            Ok(beats.into_iter().flatten().collect())
        })
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        // An empty message is no heartbeat. So a user that may send heartbeats can also remove one.
        let subject = self.0.layout.pulse(held);
        Ok(self.run(self.0.put(&subject, &Bytes::new()))?)
    }
}

/// Returns the heartbeat of an unknown holder, for a foreign message in place of a heartbeat.
///
/// The true holder overwrites it with its next heartbeat. Without one, the lease expires as usual.
fn unreadable() -> HeartbeatMessage {
    HeartbeatMessage { holder: UNREADABLE.to_owned(), epoch: 0 }
}

/// Decodes a heartbeat. Returns `None` if it was removed.
fn beat(found: &async_nats::Message) -> Result<Option<HeartbeatRecord>, JetStreamError> {
    if found.payload.is_empty() {
        return Ok(None);
    }
    let (count, _) = place(found)?;
    let message = serde_json::from_slice(&found.payload).unwrap_or_else(|_| unreadable());
    Ok(Some(HeartbeatRecord { holder: message.holder, epoch: message.epoch, count }))
}
