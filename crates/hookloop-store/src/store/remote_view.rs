//! Updates the view of a log on servers from the log.

use std::path::Path;
use std::time::Instant;

use hookloop_core::event::EventBody;

use super::engine::LogEngine;
use super::error::StoreError;
use super::intake::{EventIntake, IntakeError};
use super::log_home::{CatchUpPace, LogHome};
use super::origin::{self, ACKNOWLEDGED, LOSS_ACCEPTED, NOTE, REMOVED, REPLACED, WRITTEN};
use super::remote_check::{AcknowledgedHead, PATIENCE, STEP, behind, last_acceptance};
use super::state::StoreState;
use super::transaction::run_statement;
use crate::log::{LogError, Seq, StoredEvent};
use crate::sqlite::AcknowledgedHeads;
use crate::view::View;

/// Largest number of events in one request. A view that lacks more follows the log until it is
/// current.
const CATCH_UP: usize = 1_000;

impl StoreState {
    /// Returns a copy of the view as a file's bytes. The copy is made where only this user can read
    /// it.
    pub(super) fn serialized(&self) -> Result<Vec<u8>, StoreError> {
        let view =
            self.home.path().map_or_else(|| std::env::temp_dir().join("view"), Path::to_owned);
        let copy = view.with_extension(format!("{}.copy", std::process::id()));
        let made = self
            .conn
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .map_err(StoreError::from)
            .and_then(|_| std::fs::read(&copy).map_err(|e| LogError::Engine(Box::new(e)).into()));
        // The copy does not exist if it could not be made.
        if let Err(error) = std::fs::remove_file(&copy)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %copy.display(), %error, "a copy of the view is not removed");
        }
        made
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(&self.home, LogHome::Remote(remote) if remote.pace == CatchUpPace::Live)
    }

    /// Returns the end of the log. Fails if the log lost events of the view, or no server answers.
    ///
    /// The next process that opens the view then checks the log again.
    pub(super) fn check_log(&self) -> Result<Seq, StoreError> {
        let LogHome::Remote(remote) = &self.home else { return Ok(0) };
        if remote.pace == CatchUpPace::Live {
            return Ok(0);
        }
        let seen = View::new(&self.conn).totals()?.head.max(remote.acknowledged);
        let checked = remote.engine.head().and_then(|head| {
            if head < seen { remote.engine.check_has(seen).map(|()| head) } else { Ok(head) }
        });
        if checked.is_err() && remote.path.is_some() {
            origin::set(&self.conn, NOTE, "")?;
        }
        Ok(checked?)
    }

    /// Updates the view to the end of the log, and at least to `at_least`.
    ///
    /// Does nothing for a view that follows the log continuously.
    pub(super) fn catch_up(&mut self, at_least: Seq) -> Result<(), StoreError> {
        let LogHome::Remote(remote) = &self.home else { return Ok(()) };
        if !self.conn.is_autocommit() {
            run_statement(&self.conn, "ROLLBACK")?;
        }
        let engine = remote.engine.clone();
        let at_least = at_least.max(remote.written);
        let head = View::new(&self.conn).totals()?.head;
        let target = match remote.pace {
            CatchUpPace::Live => return Ok(()),
            CatchUpPace::Once => at_least,
            CatchUpPace::EachTime => engine.head()?.max(at_least),
        };
        if target <= head {
            return Ok(());
        }
        let events = engine.read(head + 1, CATCH_UP)?;
        self.take_in(&events)?;
        self.take_until(&*engine, target, &mut |_| ())
    }

    fn take_until(
        &mut self,
        engine: &dyn LogEngine,
        target: Seq,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(), StoreError> {
        let mut head = View::new(&self.conn).totals()?.head;
        if head >= target {
            return Ok(());
        }
        let mut follower = engine.follow(head + 1)?;
        let mut end = Instant::now() + PATIENCE;
        while head < target {
            let events = follower.next(STEP)?;
            match events.last() {
                Some(last) => {
                    self.take_in(&events)?;
                    (head, end) = (last.seq, Instant::now() + PATIENCE);
                    progress(head);
                }
                None if Instant::now() > end => return Err(behind(target).into()),
                None => {}
            }
        }
        Ok(())
    }

    /// Applies the events that the view lacks. Another process of this machine may have been
    /// faster.
    pub(super) fn take_in(&mut self, events: &[StoredEvent]) -> Result<(), StoreError> {
        let head = View::new(&self.conn).totals()?.head;
        if events.last().is_none_or(|last| last.seq <= head) {
            return Ok(());
        }
        if self.begins_anew(events, head)? {
            return self.read_again();
        }
        match self.take_in_once(events) {
            // A person may have accepted the loss of the missing events, later in the log.
            Err(IntakeError::Gap { seq, .. }) if self.accepted_after(seq)? => {
                Ok(self.take_in_once(events)?)
            }
            taken => Ok(taken?),
        }
    }

    fn take_in_once(&mut self, events: &[StoredEvent]) -> Result<(), IntakeError> {
        let tolerated = self.tolerated()?;
        run_statement(&self.conn, "BEGIN IMMEDIATE")?;
        let taken = EventIntake { tolerated, keeps_due: true }.take(&self.conn, events);
        run_statement(&self.conn, if taken.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        taken
    }

    /// Returns the place before which gaps belong to a loss that a person accepted.
    fn tolerated(&self) -> Result<Seq, StoreError> {
        match self.home.path() {
            Some(_) => origin::number(&self.conn, LOSS_ACCEPTED),
            None => Ok(0),
        }
    }

    /// Whether a person accepted a loss after event `seq`. Stores the place.
    fn accepted_after(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let LogHome::Remote(remote) = &self.home else { return Ok(false) };
        let accepted = last_acceptance(&*remote.engine)?;
        if remote.path.is_some() && accepted > self.tolerated()? {
            origin::set(&self.conn, LOSS_ACCEPTED, &accepted.to_string())?;
        }
        Ok(remote.path.is_some() && accepted > seq)
    }

    /// Whether the events record a loss that a person accepted. Stores the place.
    ///
    /// A view that has some of the lost events must be rebuilt.
    fn begins_anew(&self, events: &[StoredEvent], head: Seq) -> Result<bool, StoreError> {
        let is_acceptance = |stored: &&StoredEvent| {
            stored.seq > head && matches!(stored.event.body, EventBody::LossAccepted(_))
        };
        let Some(accepted) = events.iter().rev().find(is_acceptance) else { return Ok(false) };
        if self.home.path().is_none() || accepted.seq <= self.tolerated()? {
            return Ok(false);
        }
        origin::set(&self.conn, LOSS_ACCEPTED, &accepted.seq.to_string())?;
        Ok(head > 0)
    }

    /// Empties the view and applies the whole log.
    fn read_again(&mut self) -> Result<(), StoreError> {
        run_statement(&self.conn, "BEGIN IMMEDIATE")?;
        let emptied = self.replay(&mut |_| ());
        run_statement(&self.conn, if emptied.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        emptied?;
        self.forget_written()?;
        self.read_all(&mut |_| ())
    }

    /// Returns the last event that this machine has seen or written, which the log may have lost.
    pub(super) fn seen(&self) -> Result<Seq, StoreError> {
        let remote = match &self.home {
            LogHome::Remote(remote) => remote,
            LogHome::File(file) => {
                return Ok(AcknowledgedHeads::read(&self.conn, &file.path).last().unwrap_or(0));
            }
        };
        let head = View::new(&self.conn).totals()?.head;
        Ok(head.max(remote.written).max(remote.acknowledged))
    }

    /// Records a written event that the view lacks, also for the next process with this view.
    pub(super) fn note_written(&mut self, seq: Seq) -> Result<(), StoreError> {
        let LogHome::Remote(remote) = &mut self.home else { return Ok(()) };
        remote.written = remote.written.max(seq);
        match &remote.path {
            Some(_) => origin::set(&self.conn, WRITTEN, &seq.to_string()),
            None => Ok(()),
        }
    }

    /// Deletes the acknowledged places of a view that is rebuilt from the log.
    pub(super) fn forget_written(&mut self) -> Result<(), StoreError> {
        let LogHome::Remote(remote) = &mut self.home else { return Ok(()) };
        remote.written = 0;
        remote.acknowledged = 0;
        match &remote.path {
            Some(_) => {
                origin::set(&self.conn, WRITTEN, "0")?;
                origin::set(&self.conn, ACKNOWLEDGED, "0")
            }
            None => Ok(()),
        }
    }

    /// Records that a person accepted a loss at place `accepted`.
    pub(super) fn forget_loss(&mut self, accepted: Seq) -> Result<(), StoreError> {
        if self.home.path().is_some() {
            origin::set(&self.conn, LOSS_ACCEPTED, &accepted.to_string())?;
            origin::set(&self.conn, REPLACED, "0")?;
            // The next process checks the server again.
            origin::set(&self.conn, NOTE, "")?;
        }
        Ok(())
    }

    /// Returns the events that the log must have, as far as this machine knows.
    pub(super) fn acknowledged(&self) -> Result<AcknowledgedHead, StoreError> {
        let totals = View::new(&self.conn).totals()?;
        let has_file = self.home.path().is_some();
        let number = |key| if has_file { origin::number(&self.conn, key) } else { Ok(0) };
        Ok(AcknowledgedHead {
            seen: self.seen()?,
            replaced: number(REPLACED)?,
            removed: number(REMOVED)?,
            tolerated: number(LOSS_ACCEPTED)?,
            totals,
        })
    }

    /// Applies the whole log to an emptied view.
    pub(super) fn read_all(&mut self, progress: &mut dyn FnMut(Seq)) -> Result<(), StoreError> {
        let LogHome::Remote(remote) = &self.home else { return Ok(()) };
        let engine = remote.engine.clone();
        let target = engine.head()?.max(remote.written);
        self.take_until(&*engine, target, progress)
    }

    pub(super) fn settle_for_reader(&mut self) -> Result<(), StoreError> {
        self.commit();
        match &self.home {
            LogHome::Remote(_) => self.catch_up(0),
            LogHome::File(_) => Ok(()),
        }
    }
}
