//! Checks a log and its view, and rebuilds the view from the log.

use hookloop_core::event::{Event, LossAccepted};

use super::error::StoreError;
use super::handle::Store;
use super::log_home::LogHome;
use super::remote_check;
use super::state::StoreState;
use crate::crash;
use crate::log::{NewEvent, Seq};
use crate::sqlite::{self, AcknowledgedHeads, LogDefect};
use crate::view::View;

/// Stands for the state hash of a view whose tables could not be read.
pub const UNREADABLE_VIEW: &str = "unreadable";

/// The result of rebuilding a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuiltView {
    /// The state hash before and after. An unreadable view has [`UNREADABLE_VIEW`] before.
    pub hashes: (String, String),
    /// The loss that this rebuild accepted.
    pub accepted: Option<LogDefect>,
}

impl Store {
    /// Rebuilds the view from the log. Returns the state hash before and after.
    ///
    /// Fails if acknowledged events are missing: a new view would not know of them.
    pub fn rebuild(&self, progress: &mut dyn FnMut(Seq)) -> Result<(String, String), StoreError> {
        let mut inner = self.lock();
        // A log that lost events cannot update the view.
        let settled = inner.settle_for_reader();
        if let Some(broken) = inner.check_events()? {
            return Err(StoreError::Broken(broken));
        }
        settled?;
        inner.remake(None, progress)
    }

    /// Rebuilds the view from a log that lacks acknowledged events, and records that in the log.
    ///
    /// `record` creates the event. An intact log is rebuilt as by [`Store::rebuild`].
    pub fn rebuild_after_loss(
        &self,
        record: &dyn Fn(LossAccepted) -> Event,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<RebuiltView, StoreError> {
        let mut inner = self.lock();
        let settled = inner.settle_for_reader();
        let Some(broken) = inner.check_events()? else {
            settled?;
            let hashes = inner.remake(None, progress)?;
            return Ok(RebuiltView { hashes, accepted: None });
        };
        let is_remote = matches!(inner.home, LogHome::Remote(_));
        let is_gap = is_remote && matches!(broken, LogDefect::Missing { .. });
        if !broken.can_be_accepted() && !is_gap {
            return Err(StoreError::Broken(broken));
        }
        let loss = inner.loss(&broken)?;
        let hashes = inner.remake(Some(record(loss)), progress)?;
        Ok(RebuiltView { hashes, accepted: Some(broken) })
    }

    /// Checks that the log has all written events, that the view follows from them, and the file.
    pub fn verify(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Result<Seq, LogDefect>, StoreError> {
        let mut inner = self.lock();
        if let LogHome::File(_) = &inner.home {
            if let Some(broken) = sqlite::check_file(&inner.conn)? {
                return Ok(Err(broken));
            }
        } else {
            // The check reports the defect of a log better than the follower.
            if let Err(error) = inner.settle_for_reader() {
                tracing::debug!(%error, "the follower fails before a check");
            }
        }
        inner.in_one_state(|state| state.verify_in_transaction(progress))
    }
}

impl StoreState {
    /// Reads in one transaction: no commit of another process comes between two reads.
    fn in_one_state<T>(
        &self,
        read: impl FnOnce(&StoreState) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.conn.execute_batch("BEGIN")?;
        let done = read(self);
        self.conn.execute_batch("ROLLBACK")?;
        done
    }

    fn verify_in_transaction(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Result<Seq, LogDefect>, StoreError> {
        let broken = match &self.home {
            LogHome::Remote(remote) => {
                let acknowledged = self.acknowledged()?;
                match remote_check::verify(&*remote.engine, &acknowledged, progress)? {
                    Ok(checked) => match remote_check::compare_view(&self.conn, &checked)? {
                        Some(broken) => broken,
                        None => return Ok(Ok(checked.events)),
                    },
                    Err(broken) => broken,
                }
            }
            LogHome::File(_) => match self.verify_chain(progress)? {
                Ok(events) => match sqlite::verify_view(&self.conn)? {
                    Some(broken) => broken,
                    None => return Ok(Ok(events)),
                },
                Err(broken) => broken,
            },
        };
        Ok(Err(broken))
    }

    fn verify_chain(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<Result<Seq, LogDefect>, StoreError> {
        let LogHome::File(file) = &self.home else { return Ok(Ok(0)) };
        if let Some(loss) = &file.loss {
            return Ok(Err(LogDefect::Lost(loss.clone())));
        }
        let heads = AcknowledgedHeads::read(&self.conn, &file.path);
        Ok(sqlite::verify_chain(&self.conn, &heads, progress)?)
    }

    /// Returns the first defect of the events of the log, independent of the view.
    fn check_events(&self) -> Result<Option<LogDefect>, StoreError> {
        match &self.home {
            LogHome::File(_) => {
                Ok(self.in_one_state(|state| state.verify_chain(&mut |_| ()))?.err())
            }
            LogHome::Remote(remote) => {
                let acknowledged = self.acknowledged()?;
                Ok(remote_check::verify(&*remote.engine, &acknowledged, &mut |_| ())?.err())
            }
        }
    }

    /// Returns the record of a loss.
    fn loss(&self, broken: &LogDefect) -> Result<LossAccepted, StoreError> {
        let found = match &self.home {
            LogHome::File(_) if !sqlite::has_table(&self.conn, "event")? => 0,
            LogHome::File(_) => sqlite::last_place(&self.conn)?,
            LogHome::Remote(remote) => remote.engine.head()?,
        };
        let removed = match &self.home {
            LogHome::File(_) => 0,
            LogHome::Remote(remote) => remote.engine.removed()?,
        };
        let acknowledged = match broken {
            LogDefect::Replaced { expected } => *expected,
            LogDefect::Lost(loss) => loss.acknowledged.unwrap_or(0),
            _ => self.seen()?,
        };
        Ok(LossAccepted { problem: broken.to_string(), acknowledged, found, removed })
    }

    /// Rebuilds the view, with `record` after the remaining events.
    fn remake(
        &mut self,
        record: Option<Event>,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(String, String), StoreError> {
        // On servers the record comes first, so that a process that dies in between has recorded
        // the loss.
        if let (LogHome::Remote(remote), Some(event)) = (&self.home, &record) {
            let engine = remote.engine.clone();
            let last = engine.last(&event.subject)?.map_or(0, |stored| stored.seq);
            let event = event.clone();
            let accepted = engine.append(&[NewEvent { expected: last, event }])?.first();
            self.forget_loss(accepted)?;
        }
        self.forget_written()?;
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        match self.replay_between_hashes(record, progress) {
            Ok((before, mut after)) => {
                crash::point("rebuild");
                self.conn.execute_batch("COMMIT")?;
                if let LogHome::File(file) = &mut self.home {
                    file.loss = None;
                    let totals = View::new(&self.conn).totals()?;
                    self.record_head(&totals);
                }
                if let LogHome::Remote(_) = self.home {
                    self.read_all(progress)?;
                    after = View::new(&self.conn).state_hash()?;
                }
                Ok((before, after))
            }
            Err(error) => {
                self.conn.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    /// Rebuilds the view and returns the state hash before and after.
    ///
    /// Both hashes are computed inside the transaction, so that other processes do not change them.
    fn replay_between_hashes(
        &self,
        record: Option<Event>,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(String, String), StoreError> {
        // Unreadable tables are no obstacle: they are rebuilt.
        let before =
            View::new(&self.conn).state_hash().unwrap_or_else(|_| UNREADABLE_VIEW.to_owned());
        self.replay(progress)?;
        if let (LogHome::File(_), Some(event)) = (&self.home, record) {
            sqlite::append_one(&self.conn, &event)?;
        }
        Ok((before, View::new(&self.conn).state_hash()?))
    }
}
