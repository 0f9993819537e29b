//! Compares a log on servers with the events that this machine has acknowledged.

use std::time::{Duration, Instant};

use hookloop_core::event::EventBody;
use hookloop_core::id::Subject;
use rusqlite::Connection;

use super::engine::LogEngine;
use super::error::StoreError;
use super::intake::{EventIntake, IntakeError};
use crate::log::{LogError, Seq, StoredEvent};
use crate::sqlite::{self, LogDefect};
use crate::view::{self, View, ViewTotals};

/// Length of one wait for events.
pub(super) const STEP: Duration = Duration::from_millis(500);
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a failure of a view's follower.
pub(super) const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

/// The events that the log must have, as far as this machine knows.
#[derive(Debug)]
pub(super) struct AcknowledgedHead {
    /// The last event that this machine has seen or written.
    pub(super) seen: Seq,
    /// The last event of a stream that was recreated since.
    pub(super) replaced: Seq,
    /// Number of messages that were removed before the view began.
    pub(super) removed: u64,
    /// The place of the last loss that a person accepted.
    pub(super) tolerated: Seq,
    /// The head and the chain value of the view.
    pub(super) totals: ViewTotals,
}

/// Returns the place of the last loss that a person accepted, or 0 if there is none.
pub(super) fn last_acceptance(engine: &dyn LogEngine) -> Result<Seq, LogError> {
    let events = engine.history(&Subject::Project, usize::MAX)?;
    let is_acceptance =
        |stored: &&StoredEvent| matches!(stored.event.body, EventBody::LossAccepted(_));
    Ok(events.iter().rev().find(is_acceptance).map_or(0, |stored| stored.seq))
}

/// Waits until the log has event `seen`, as replicas may lag behind.
fn wait_for_seen(engine: &dyn LogEngine, seen: Seq) -> Result<Result<Seq, LogDefect>, LogError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = engine.head()?;
        if found >= seen {
            return Ok(Ok(found));
        }
        if engine.end_before(seen)?.is_some() {
            return Ok(Err(LogDefect::Short { found, expected: seen }));
        }
        if Instant::now() > end {
            return Err(behind(seen));
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

/// A log that was read, and the view derived from it.
pub(super) struct RemoteLogCheck {
    /// Number of events in the log.
    pub(super) events: Seq,
    /// The derived view, up to the head of the stored one.
    pub(super) derived: Connection,
}

/// Reads the whole log, and compares it with the events that this machine has acknowledged.
pub(super) fn verify(
    engine: &dyn LogEngine,
    acknowledged: &AcknowledgedHead,
    progress: &mut dyn FnMut(Seq),
) -> Result<Result<RemoteLogCheck, LogDefect>, StoreError> {
    if acknowledged.replaced > 0 {
        return Ok(Err(LogDefect::Replaced { expected: acknowledged.replaced }));
    }
    let head = match wait_for_seen(engine, acknowledged.seen)? {
        Ok(head) => head,
        Err(broken) => return Ok(Err(broken)),
    };
    let mut reading = LogReading::new(acknowledged)?;
    let mut follower = if head > 0 { Some(engine.follow(1)?) } else { None };
    let mut end = Instant::now() + PATIENCE;
    while let Some(follower) = follower.as_mut().filter(|_| reading.read < head) {
        let events = match follower.next(STEP) {
            Ok(events) => events,
            Err(LogError::Damaged { seq, reason }) => {
                return Ok(Err(LogDefect::Unreadable { seq, reason }));
            }
            Err(error) => return Err(error.into()),
        };
        if events.is_empty() && Instant::now() > end {
            return Err(behind(head).into());
        }
        if let Err(broken) = reading.take(engine, &events)? {
            return Ok(Err(broken));
        }
        if let Some(last) = events.last() {
            progress(last.seq);
            end = Instant::now() + PATIENCE;
        }
    }
    reading.finish(acknowledged)
}

/// The part of the log that was read so far, and the view derived from it.
struct LogReading {
    derived: Connection,
    /// The last event of the derived view, which is the head of the stored one.
    until: Seq,
    tolerated: Seq,
    events: Seq,
    read: Seq,
    last: std::collections::HashMap<Subject, Seq>,
}

impl LogReading {
    fn new(acknowledged: &AcknowledgedHead) -> Result<LogReading, LogError> {
        Ok(LogReading {
            derived: sqlite::scratch_view()?,
            until: acknowledged.totals.head,
            tolerated: acknowledged.tolerated,
            events: 0,
            read: 0,
            last: std::collections::HashMap::new(),
        })
    }

    fn take(
        &mut self,
        engine: &dyn LogEngine,
        events: &[StoredEvent],
    ) -> Result<Result<(), LogDefect>, StoreError> {
        let known = events.partition_point(|stored| stored.seq <= self.until);
        let (shown, news) = events.split_at(known);
        if !shown.is_empty()
            && let Err(broken) = self.take_shown(engine, shown)?
        {
            return Ok(Err(broken));
        }
        for stored in news {
            let prev = match self.last.insert(stored.event.subject.clone(), stored.seq) {
                Some(prev) => prev,
                None => View::new(&self.derived).version(&stored.event.subject)?,
            };
            if let Some(after) = stored.after.filter(|after| *after != prev)
                && stored.seq >= self.tolerated
            {
                return Ok(Err(LogDefect::Missing { seq: after }));
            }
        }
        self.events += events.len() as Seq;
        self.read = events.last().map_or(self.read, |last| last.seq);
        Ok(Ok(()))
    }

    /// Applies events to the derived view.
    fn take_shown(
        &mut self,
        engine: &dyn LogEngine,
        events: &[StoredEvent],
    ) -> Result<Result<(), LogDefect>, StoreError> {
        for _ in 0..2 {
            let intake = EventIntake { tolerated: self.tolerated, keeps_due: false };
            match intake.take(&self.derived, events) {
                Ok(()) => return Ok(Ok(())),
                Err(IntakeError::Gap { seq, after, .. }) => {
                    let accepted = last_acceptance(engine)?;
                    if accepted <= seq || accepted <= self.tolerated {
                        return Ok(Err(LogDefect::Missing { seq: after }));
                    }
                    self.tolerated = accepted;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(LogError::damaged(self.read, "its gaps are not those of the accepted loss").into())
    }

    /// Compares the events that were read with the acknowledged ones.
    fn finish(
        self,
        acknowledged: &AcknowledgedHead,
    ) -> Result<Result<RemoteLogCheck, LogDefect>, StoreError> {
        let found = View::new(&self.derived).totals()?;
        let stored = &acknowledged.totals;
        if found.head != stored.head {
            return Ok(Err(LogDefect::Short { found: found.head, expected: stored.head }));
        }
        if found.hash != stored.hash {
            return Ok(Err(LogDefect::Rewritten { seq: stored.head }));
        }
        // Messages that were removed before this machine's first read may belong to this project.
        if acknowledged.removed > found.removed_accepted {
            return Ok(Err(LogDefect::Removed { messages: acknowledged.removed }));
        }
        let events = self.events.saturating_sub(found.quarantined);
        Ok(Ok(RemoteLogCheck { events, derived: self.derived }))
    }
}

/// Compares the view in `stored` with the derived one.
pub(super) fn compare_view(
    stored: &Connection,
    checked: &RemoteLogCheck,
) -> Result<Option<LogDefect>, LogError> {
    Ok(LogDefect::of_view(view::differences(stored, &checked.derived)?))
}

pub(super) fn behind(target: Seq) -> LogError {
    let reason = format!("event {target} did not arrive within {} s", PATIENCE.as_secs());
    LogError::Engine(reason.into())
}
