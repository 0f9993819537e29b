//! A log on servers as an event log.

use hookloop_core::id::Subject;

use super::client::JetStreamLog;
use super::error::JetStreamError;
use super::follow::StreamFollower;
use super::message;
use crate::chain::ChainHash;
use crate::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
};

impl EventLog for JetStreamLog {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        self.run(self.0.append(batch))
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        self.run(self.0.last_event(&self.0.layout.subject(subject)))
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let subject = self.0.layout.subject(subject);
        self.run(async {
            let Some(last) = self.0.last_event(&subject).await? else { return Ok(vec![]) };
            let mut events = self.0.scan(subject, (1, last.seq), usize::MAX).await?;
            Ok(events.split_off(events.len().saturating_sub(limit)))
        })
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let from = from.max(1);
        self.run(async {
            match self.0.read_directly(from, limit).await {
                Err(LogError::Engine(error)) if is_denied(&*error) => {
                    let head = self.0.head().await?;
                    self.0.scan(self.0.layout.all(), (from, head), limit).await
                }
                read => read,
            }
        })
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        let filter = self.0.layout.all();
        let follower = self.run(StreamFollower::start(self.clone(), filter, from.max(1)))?;
        Ok(Box::new(follower))
    }

    fn follow_subject(
        &self,
        subject: &Subject,
        from: Seq,
    ) -> Result<Box<dyn EventFollower>, LogError> {
        let filter = self.0.layout.subject(subject);
        let follower = self.run(StreamFollower::start(self.clone(), filter, from.max(1)))?;
        Ok(Box::new(follower))
    }

    fn head(&self) -> Result<Seq, LogError> {
        let ahead = self.ahead().take();
        ahead.map_or_else(|| self.run(self.0.head()), Ok)
    }

    fn check_has(&self, seen: Seq) -> Result<(), LogError> {
        match self.end_before(seen)? {
            Some(found) => Err(JetStreamError::Lost { found, seen }.into()),
            None => Ok(()),
        }
    }

    fn end_before(&self, seen: Seq) -> Result<Option<Seq>, LogError> {
        let last = self.run(self.0.last_by_leader_of_all())?;
        Ok(last.filter(|found| *found < seen))
    }

    fn removed(&self) -> Result<u64, LogError> {
        Ok(self.run(self.0.removed_from_stream())?)
    }

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<ChainHash>, LogError> {
        let messages = message::encode(batch, &self.0.layout)?;
        Ok(messages.iter().map(|m| message::digest(&m.subject, &m.payload)).collect())
    }
}

fn is_denied(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(JetStreamError::Denied { .. }))
}
