//! Applies events of a log on servers to a view: this machine's, or one to compare it with.
//!
//! An event that cannot be applied is quarantined: its place counts, its content does not. This
//! depends only on the events before it, so every machine quarantines the same events.

use rusqlite::{Connection, ErrorCode};

use super::error::StoreError;
use super::transaction::run_statement;
use crate::log::{LogError, Seq, StoredEvent};
use crate::view::{View, ViewFold};
use crate::{chain, sqlite};

/// The reason why events could not be applied.
#[derive(Debug)]
pub(super) enum IntakeError {
    /// The event at `seq` follows version `after` of its subject, but the view has version `found`.
    Gap {
        seq: Seq,
        subject: String,
        after: Seq,
        found: Seq,
    },
    Store(StoreError),
}

impl From<StoreError> for IntakeError {
    fn from(error: StoreError) -> IntakeError {
        IntakeError::Store(error)
    }
}

impl From<LogError> for IntakeError {
    fn from(error: LogError) -> IntakeError {
        IntakeError::Store(error.into())
    }
}

impl From<rusqlite::Error> for IntakeError {
    fn from(error: rusqlite::Error) -> IntakeError {
        IntakeError::Store(error.into())
    }
}

impl From<IntakeError> for StoreError {
    fn from(error: IntakeError) -> StoreError {
        match error {
            IntakeError::Gap { seq, subject, after, found } => {
                let reason = format!(
                    "it follows version {after} of `{subject}`, but the view has {found}: something is missing"
                );
                LogError::damaged(seq, reason).into()
            }
            IntakeError::Store(error) => error,
        }
    }
}

/// The options for applying events.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventIntake {
    /// Gaps before this place belong to a loss that a person accepted.
    pub(super) tolerated: Seq,
    /// Whether due events are copied into the event table beside the view.
    pub(super) keeps_due: bool,
}

impl EventIntake {
    /// Applies the events that the view in `conn` lacks, inside the open transaction.
    pub(super) fn take(self, conn: &Connection, events: &[StoredEvent]) -> Result<(), IntakeError> {
        run_statement(conn, "SAVEPOINT intake")?;
        let taken = match self.take_all(conn, events) {
            Err(error) if is_of_an_event(&error) => {
                run_statement(conn, "ROLLBACK TO intake")?;
                self.take_each(conn, events)
            }
            taken => taken,
        };
        if taken.is_err() {
            run_statement(conn, "ROLLBACK TO intake")?;
        }
        run_statement(conn, "RELEASE intake")?;
        taken
    }

    /// Applies events of which all can be applied, which is the usual case.
    fn take_all(self, conn: &Connection, events: &[StoredEvent]) -> Result<(), IntakeError> {
        let mut fold = ViewFold::new(conn, View::new(conn).totals()?);
        let had = fold.totals.head;
        let mut keeps_books = false;
        for stored in events.iter().filter(|stored| stored.seq > had) {
            let prev = fold.apply(stored.seq, &stored.event)?;
            self.check_gap(stored, prev)?;
            fold.owe(stored.seq, &stored.event)?;
            self.finish(&mut fold, stored, prev)?;
            keeps_books |= stored.event.body.is_bookkeeping();
        }
        self.write(conn, &fold, keeps_books)
    }

    /// Applies events one by one, and quarantines those that cannot be applied.
    fn take_each(self, conn: &Connection, events: &[StoredEvent]) -> Result<(), IntakeError> {
        let mut fold = ViewFold::new(conn, View::new(conn).totals()?);
        let had = fold.totals.head;
        let mut keeps_books = false;
        for stored in events.iter().filter(|stored| stored.seq > had) {
            let subject = &stored.event.subject;
            let prev = fold.view()?.version(subject)?;
            self.check_gap(stored, prev)?;
            let before = fold.totals.clone();
            run_statement(conn, "SAVEPOINT one")?;
            let applied = fold
                .apply(stored.seq, &stored.event)
                .and_then(|_| fold.owe(stored.seq, &stored.event))
                .and_then(|()| fold.view().map(drop))
                .map_err(IntakeError::from);
            match applied {
                Ok(()) => {
                    self.finish(&mut fold, stored, prev)?;
                    keeps_books |= stored.event.body.is_bookkeeping();
                }
                Err(error) if is_of_an_event(&error) => {
                    run_statement(conn, "ROLLBACK TO one")?;
                    fold = ViewFold::new(conn, before);
                    let reason = StoreError::from(error).to_string();
                    fold.quarantine(stored.seq, subject, &subject.to_string(), &reason)?;
                    fold.totals.hash = chain::extend(&fold.totals.hash, stored.seq, &stored.digest);
                }
                Err(error) => return Err(error),
            }
            run_statement(conn, "RELEASE one")?;
        }
        self.write(conn, &fold, keeps_books)
    }

    fn check_gap(self, stored: &StoredEvent, found: Seq) -> Result<(), IntakeError> {
        match stored.after {
            Some(after) if after != found && stored.seq >= self.tolerated => {
                let (seq, subject) = (stored.seq, stored.event.subject.to_string());
                Err(IntakeError::Gap { seq, subject, after, found })
            }
            _ => Ok(()),
        }
    }

    fn finish(
        self,
        fold: &mut ViewFold<'_>,
        stored: &StoredEvent,
        prev: Seq,
    ) -> Result<(), IntakeError> {
        fold.totals.hash = chain::extend(&fold.totals.hash, stored.seq, &stored.digest);
        if self.keeps_due && stored.event.due {
            let conn = fold.connection();
            sqlite::insert(conn, stored.seq, prev, &stored.event, &chain::START)?;
        }
        Ok(())
    }

    fn write(
        self,
        conn: &Connection,
        fold: &ViewFold<'_>,
        keeps_books: bool,
    ) -> Result<(), IntakeError> {
        if keeps_books && self.keeps_due {
            let done = "DELETE FROM event WHERE seq NOT IN (SELECT seq FROM due)";
            conn.prepare_cached(done)?.execute([])?;
        }
        Ok(fold.view()?.write_totals(&fold.totals)?)
    }
}

/// Whether an event itself causes the error: it refers to a missing row, or adds an existing one.
fn is_of_an_event(error: &IntakeError) -> bool {
    match error {
        // Applying the events one by one shows which event it is.
        IntakeError::Gap { .. } => true,
        IntakeError::Store(StoreError::Log(LogError::Damaged { .. })) => true,
        IntakeError::Store(StoreError::Log(LogError::Engine(error))) => {
            let error = error.downcast_ref::<rusqlite::Error>();
            error.and_then(rusqlite::Error::sqlite_error_code)
                == Some(ErrorCode::ConstraintViolation)
        }
        IntakeError::Store(_) => false,
    }
}
