//! Applies events of a log on servers to a view: the view of this machine, or one to compare it
//! with.
//!
//! An event that can't be applied is quarantined: its place counts, its content does not. Whether it can be applied
//! depends on the events before it alone, so every machine quarantines the same ones.

use rusqlite::{Connection, ErrorCode};

use super::error::StoreError;
use super::transaction::run_statement;
use crate::log::{LogError, Seq, StoredEvent};
use crate::view::{View, ViewFold};
use crate::{chain, sqlite};

/// Why events could not be taken in.
#[derive(Debug)]
pub(super) enum IntakeError {
    /// The event at `seq` follows version `after` of its subject; the view has version `found`.
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

/// How events are taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventIntake {
    /// Gaps before this place are those of a loss that a person accepted.
    pub(super) tolerated: Seq,
    /// Events that are due are copied into the table of events beside the view.
    pub(super) keeps_due: bool,
}

impl EventIntake {
    /// Takes in the events that the view in `conn` does not have yet, inside the open transaction.
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

    /// Takes in events that can all be applied, as almost always.
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

    /// Takes in events one by one, and quarantines those that can't be applied.
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

/// Whether an event itself is the reason: it names something that is missing, or that exists
/// already.
fn is_of_an_event(error: &IntakeError) -> bool {
    match error {
        // The slow way finds out which event it is.
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
