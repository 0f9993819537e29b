//! What a log promises, whichever engine holds it.
//!
//! A log is one project's events in one total order. A batch is stored whole or not at all. Each
//! event names the version that it expects its subject to have (the sequence number of the last
//! event on it), and that is also what makes appending idempotent for ever: a batch that was stored
//! can't find its subjects at the versions it expects again, and is then recognised by its ids.

use std::time::Duration;

use hookloop_core::event::Event;
use hookloop_core::id::Subject;

use crate::chain::Hash;

pub use crate::seq::Seq;

/// Events in one batch, at most: what every engine can store atomically.
pub const MAX_BATCH: usize = 1_000;

/// An event to append. `expected` is the subject's version before this batch; where a batch has
/// several events on one subject, the first decides.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub expected: Seq,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    pub seq: Seq,
    /// The version that its writer expected the subject to have, where the log keeps that: a reader
    /// that knows the subject at another version has missed something.
    pub after: Option<Seq>,
    /// The digest of the stored bytes, where the log is on servers: the project's chain is made of these.
    pub digest: Hash,
    pub event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Stored now, the first event at this place and the others right behind it.
    At(Seq),
    /// Its first event had been stored before, at this place: the same batch, or what another made of
    /// the same cause.
    Before(Seq),
}

impl Appended {
    pub fn first(self) -> Seq {
        match self {
            Appended::At(seq) | Appended::Before(seq) => seq,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Someone else wrote: read again, decide again.
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

/// One project's events. Returning from `append` means that the batch is on disk.
pub trait EventLog: Send + Sync {
    fn append(&self, batch: &[NewEvent]) -> Result<Appended, AppendError>;

    /// The last event on a subject.
    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError>;

    /// The last `limit` events on a subject, oldest first.
    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError>;

    /// Up to `limit` events from place `from` on.
    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError>;

    /// The place of the last event; 0 for none.
    fn head(&self) -> Result<Seq, LogError>;

    /// Fails if the log is known not to have event `seen` any more. Asked where `head` is before it: what
    /// answered may only have been a copy that is behind.
    fn check_has(&self, seen: Seq) -> Result<(), LogError> {
        let _ = seen;
        Ok(())
    }

    /// Messages that were removed from where the log is, of this project or of others beside it.
    fn removed(&self) -> Result<u64, LogError> {
        Ok(0)
    }

    /// The digests of the events of a batch, as readers of the log will have them.
    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<Hash>, LogError>;

    /// The events from place `from` on, and then those that come.
    fn follow(&self, from: Seq) -> Result<Box<dyn Follow>, LogError>;

    /// The events of one subject from place `from` on, and then those that come.
    fn follow_subject(&self, subject: &Subject, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        let (follow, subject) = (self.follow(from)?, subject.clone());
        Ok(Box::new(FollowOne { follow, subject }))
    }
}

/// The events of one subject among all that a follower has.
pub(crate) struct FollowOne {
    pub(crate) follow: Box<dyn Follow>,
    pub(crate) subject: Subject,
}

impl Follow for FollowOne {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = self.follow.next(timeout)?;
        events.retain(|stored| stored.event.subject == self.subject);
        Ok(events)
    }
}

pub trait Follow: Send {
    /// The next events, in order and without a gap; none if nothing came within `timeout`.
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError>;
}
