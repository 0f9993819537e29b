//! The contract of a log, for every engine.
//!
//! A log is one project's events in one total order. A batch is stored whole or not at all. Each
//! event names the version that it expects of its subject: the sequence number of the last event on
//! it. This also makes appending idempotent, without a time limit. A stored batch cannot find its
//! subjects at the expected versions again, and its ids then identify it.

use std::time::Duration;

use hookloop_core::event::Event;
use hookloop_core::id::Subject;

use crate::chain::ChainHash;

pub use crate::seq::Seq;

/// Largest number of events in one batch. Every engine can store it atomically.
pub const MAX_BATCH: usize = 1_000;

/// An event to append. `expected` is the subject's version before this batch.
///
/// If a batch has several events on one subject, the first one's value is used.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub expected: Seq,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    pub seq: Seq,
    /// The version that its writer expected of the subject, if the log keeps it.
    ///
    /// A reader that knows the subject at another version has missed an event.
    pub after: Option<Seq>,
    /// The digest of the stored bytes, a link of the project's chain, for a log on servers.
    pub digest: ChainHash,
    pub event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The batch was stored now, with its first event at this place and the others right after it.
    At(Seq),
    /// The first event was stored before, at this place.
    ///
    /// The same batch stored it, or another process that reacted to the same cause.
    Before(Seq),
}

impl AppendOutcome {
    pub fn first(self) -> Seq {
        match self {
            AppendOutcome::At(seq) | AppendOutcome::Before(seq) => seq,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another process wrote first. The caller must read and decide again.
    #[error("`{subject}` is at version {actual}, not {expected}")]
    Conflict { subject: Subject, expected: Seq, actual: Seq },
    #[error("a batch holds 1 to {MAX_BATCH} events, not {0}")]
    BatchSize(usize),
    #[error(transparent)]
    Log(#[from] LogError),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("event {seq} can't be read: {reason}")]
    Damaged { seq: Seq, reason: String },
    #[error("{0}")]
    Engine(Box<dyn std::error::Error + Send + Sync>),
}

impl LogError {
    pub fn damaged(seq: Seq, reason: impl ToString) -> LogError {
        LogError::Damaged { seq, reason: reason.to_string() }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> LogError {
        LogError::Engine(Box::new(error))
    }
}

/// One project's events. When `append` returns, the batch is on disk.
pub trait EventLog: Send + Sync {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError>;

    /// Returns the last event on a subject.
    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError>;

    /// Returns the last `limit` events on a subject, oldest first.
    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError>;

    /// Returns up to `limit` events from place `from` on.
    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError>;

    /// Returns the place of the last event, or 0 if there is none.
    fn head(&self) -> Result<Seq, LogError>;

    /// Fails if the log is known to have lost event `seen`.
    ///
    /// Called if `head` is before `seen`. The replica that answered may only lag behind.
    fn check_has(&self, _seen: Seq) -> Result<(), LogError> {
        Ok(())
    }

    /// Returns the end of the log, if the log is known to end before event `seen`.
    ///
    /// An engine that cannot know now returns an error or `None`, which is not a loss.
    fn end_before(&self, _seen: Seq) -> Result<Option<Seq>, LogError> {
        Ok(None)
    }

    /// Returns the number of messages removed from the stream, of this project or of others in it.
    fn removed(&self) -> Result<u64, LogError> {
        Ok(0)
    }

    /// Returns the digests of the events of a batch, as readers of the log get them.
    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<ChainHash>, LogError>;

    /// Follows the events from place `from` on, and then new ones.
    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError>;

    /// Follows the events of one subject from place `from` on, and then new ones.
    fn follow_subject(
        &self,
        subject: &Subject,
        from: Seq,
    ) -> Result<Box<dyn EventFollower>, LogError> {
        let (follow, subject) = (self.follow(from)?, subject.clone());
        Ok(Box::new(SubjectFollower { follow, subject }))
    }
}

/// Follows one subject by filtering the events of another follower.
pub(crate) struct SubjectFollower {
    pub(crate) follow: Box<dyn EventFollower>,
    pub(crate) subject: Subject,
}

impl EventFollower for SubjectFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = self.follow.next(timeout)?;
        events.retain(|stored| stored.event.subject == self.subject);
        Ok(events)
    }
}

pub trait EventFollower: Send {
    /// Returns the next events, in order and without a gap, or none if none arrived within
    /// `timeout`.
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError>;
}
