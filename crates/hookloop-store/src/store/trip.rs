//! Units of threads that write to a log elsewhere at the same time, as one batch.
//!
//! Threads stage their units on the view one after the other, each on what those before it made. The
//! last to arrive undoes all of it and takes the batch to the log; nobody holds the view meanwhile.
//! When a batch is refused because others wrote first, all of its units are done again, and the next
//! ones travel with fewer: where rivals are many, each travels alone.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::elsewhere::{is_at, pause};
use super::group::{Inner, say};
use super::unit::Unit;
use super::{Engine, MAX_TRIES, Store, StoreError};
use crate::crash;
use crate::log::{AppendError, Appended, MAX_BATCH, NewEvent, Seq};
use crate::view::{Totals, View};

/// Units that travel together at most.
const TOGETHER_MAX: usize = 32;
/// Units that are under way at once, about: while some travel, the next are staged.
const UNDER_WAY_MAX: usize = 2 * TOGETHER_MAX;

/// How units travel from this process.
#[derive(Debug)]
pub(super) struct Traffic {
    boarding: Option<Boarding>,
    /// Batches that have left.
    under_way: usize,
    /// Units that travel together.
    together: usize,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic { boarding: None, under_way: 0, together: TOGETHER_MAX }
    }
}

impl Traffic {
    pub(super) fn is_boarding(&self) -> bool {
        self.boarding.is_some()
    }

    /// Whether another batch may be made before one of those under way has arrived.
    fn is_free(&self) -> bool {
        self.boarding.is_some() || self.under_way < UNDER_WAY_MAX / self.together
    }

    /// Fewer travel together after a refusal, more after each success.
    fn learn(&mut self, units: usize, end: &End) {
        match end {
            End::Overtaken(_) if units > 1 => self.together = units.div_ceil(2),
            End::Stored => self.together = TOGETHER_MAX.min(self.together + 1),
            _ => {}
        }
    }
}

/// Units that are staged on the view, one on the other.
#[derive(Debug)]
struct Boarding {
    trip: Arc<Trip>,
    totals: Totals,
    batch: Vec<NewEvent>,
    units: usize,
    is_full: bool,
}

impl Boarding {
    fn new(totals: Totals) -> Boarding {
        Boarding { trip: Arc::default(), totals, batch: Vec::new(), units: 0, is_full: false }
    }
}

/// A batch that left, or is about to, and what became of it.
#[derive(Debug, Default)]
struct Trip {
    end: Mutex<Option<End>>,
    ended: Condvar,
}

#[derive(Clone, Debug)]
enum End {
    /// Its events are in the log and in the view.
    Stored,
    /// None of them is: others wrote first, at this place at the latest.
    Overtaken(Seq),
    Failed(Arc<StoreError>),
}

impl End {
    fn failed(error: impl Into<StoreError>) -> End {
        End::Failed(Arc::new(error.into()))
    }
}

impl Trip {
    fn finish(&self, end: End) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.ended.notify_all();
    }

    fn wait(&self) -> End {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.ended.wait_while(end, |end| end.is_none());
        end.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(End::Overtaken(0))
    }
}

impl Store {
    pub(super) fn transact_elsewhere<T, E: From<StoreError>>(
        &self,
        engine: &dyn Engine,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut at_least = 0;
        for tried in 0..MAX_TRIES {
            pause(tried);
            let mut inner = self.board(at_least)?;
            let (done, trip) = match self.stage(&mut inner, at_least, work)? {
                Staged::Alone(refused) => return Err(refused),
                Staged::On(trip, done) => (Some(done), trip),
                Staged::NoRoom(trip) => (None, trip),
            };
            let is_last = self.0.arriving.load(Ordering::SeqCst) == 0;
            let end = match inner.depart(is_last) {
                Some(boarding) => self.travel(engine, inner, boarding),
                None => {
                    drop(inner);
                    trip.wait()
                }
            };
            match (end, done) {
                (End::Stored, Some(done)) => return done,
                (End::Stored, None) => {}
                (End::Overtaken(seq), _) => at_least = at_least.max(seq),
                (End::Failed(error), _) => return Err(StoreError::shared(error).into()),
            }
        }
        Err(StoreError::Contended.into())
    }

    /// The view for one who wants to add a unit, with what others have staged.
    fn board(&self, at_least: Seq) -> Result<MutexGuard<'_, Inner>, StoreError> {
        if at_least > 0 {
            self.wait_if_live(at_least)?;
        }
        self.0.arriving.fetch_add(1, Ordering::SeqCst);
        let inner = self.lock_with_staged();
        let inner = self.0.landed.wait_while(inner, |inner| !inner.traffic.is_free());
        self.0.arriving.fetch_sub(1, Ordering::SeqCst);
        Ok(inner.unwrap_or_else(PoisonError::into_inner))
    }

    /// Does `work` on the view and on what others have staged there.
    fn stage<T, E: From<StoreError>>(
        &self,
        inner: &mut Inner,
        at_least: Seq,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<Staged<T, E>, StoreError> {
        if !inner.traffic.is_boarding() {
            inner.catch_up(at_least)?;
            say(&inner.conn, "BEGIN IMMEDIATE")?;
        }
        let staged = catch_unwind(AssertUnwindSafe(|| inner.stage_next(work)));
        if let Ok(Ok(staged)) = staged {
            return Ok(staged);
        }
        let error = match &staged {
            Ok(Err(error)) => error.to_string(),
            _ => "another write of the same batch panicked".to_owned(),
        };
        inner.abandon(End::failed(StoreError::Commit(error)));
        self.0.boarded.notify_all();
        staged.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Takes a batch to the log, and what was stored into the view.
    fn travel(&self, engine: &dyn Engine, inner: MutexGuard<'_, Inner>, boarding: Boarding) -> End {
        let Boarding { trip, batch, units, .. } = boarding;
        let undone = say(&inner.conn, "ROLLBACK");
        drop(inner);
        self.0.boarded.notify_all();
        let mut journey = Journey { store: self, trip: &trip, units, end: None };
        let end = match undone {
            Ok(()) if batch.is_empty() => End::Stored,
            Ok(()) => self.append_all(engine, batch),
            Err(error) => End::failed(error),
        };
        journey.end = Some(end.clone());
        end
    }

    fn append_all(&self, engine: &dyn Engine, batch: Vec<NewEvent>) -> End {
        let seen = match (engine.append(&batch), &batch[..]) {
            (Ok(Appended::At(first)), _) => {
                crash::point("appended");
                self.see_own(first, batch)
            }
            (Ok(Appended::Before(first)), [only]) => match is_at(engine, first, &only.event) {
                Ok(true) => self.note_seen(first),
                Ok(false) => return End::Overtaken(first),
                Err(error) => Err(error),
            },
            // Another came to the same, and may have had more or less to say.
            (Ok(Appended::Before(first)), _) => return End::Overtaken(first),
            (Err(AppendError::Conflict { actual, .. }), _) => return End::Overtaken(actual),
            (Err(error), _) => Err(error.into()),
        };
        match seen {
            Ok(()) => End::Stored,
            Err(error) => End::failed(error),
        }
    }
}

/// A batch under way. However that ends, those who wait for it hear of it.
struct Journey<'a> {
    store: &'a Store,
    trip: &'a Trip,
    units: usize,
    end: Option<End>,
}

impl Drop for Journey<'_> {
    fn drop(&mut self) {
        let panicked = || End::failed(StoreError::Commit("its writer panicked".to_owned()));
        let end = self.end.take().unwrap_or_else(panicked);
        let mut inner = self.store.lock_with_staged();
        inner.traffic.under_way -= 1;
        inner.traffic.learn(self.units, &end);
        drop(inner);
        if self.units > 1 {
            self.trip.finish(end);
        }
        self.store.0.landed.notify_all();
    }
}

/// A unit on the view.
enum Staged<T, E> {
    /// It failed, and there is no other.
    Alone(E),
    On(Arc<Trip>, Result<T, E>),
    /// The batch is too large for one more: it is to be done again when that has left.
    NoRoom(Arc<Trip>),
}

impl Inner {
    /// Adds a unit to those that are staged, in the open transaction.
    fn stage_next<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut Unit<'_>) -> Result<T, E>,
    ) -> Result<Staged<T, E>, StoreError> {
        let boarding = match &mut self.traffic.boarding {
            Some(boarding) => {
                say(&self.conn, "SAVEPOINT unit")?;
                boarding
            }
            none => none.insert(Boarding::new(View::new(&self.conn).totals()?)),
        };
        let is_first = boarding.units == 0;
        let trip = boarding.trip.clone();
        let mut unit = Unit::new(&self.conn, &self.home, boarding.totals.clone());
        let done = match work(&mut unit) {
            Err(refused) if is_first => {
                self.abandon(End::Stored);
                return Ok(Staged::Alone(refused));
            }
            done => done,
        };
        let has_room = boarding.batch.len() + unit.len() <= MAX_BATCH;
        boarding.units += 1;
        if done.is_ok() && has_room {
            unit.view()?;
            boarding.totals = unit.totals().clone();
            boarding.batch.extend(unit.batch());
        } else {
            self.conn.execute_batch("ROLLBACK TO unit")?;
        }
        if !is_first {
            say(&self.conn, "RELEASE unit")?;
        }
        boarding.is_full |= !has_room;
        Ok(if has_room { Staged::On(trip, done) } else { Staged::NoRoom(trip) })
    }

    /// The staged units, if they are to leave now: nobody else is coming, or they are enough.
    fn depart(&mut self, is_last: bool) -> Option<Boarding> {
        let is_live = self.is_live();
        let together = self.traffic.together;
        let leaves = |boarding: &mut Boarding| {
            is_last || !is_live || boarding.is_full || boarding.units >= together
        };
        let boarding = self.traffic.boarding.take_if(leaves)?;
        self.traffic.under_way += 1;
        Some(boarding)
    }

    /// Undoes what is staged and tells those who wait for it.
    fn abandon(&mut self, end: End) {
        // SQLite may have ended the transaction itself; what is told is what led here.
        let _ = say(&self.conn, "ROLLBACK");
        if let Some(boarding) = self.traffic.boarding.take() {
            boarding.trip.finish(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use hookloop_core::event::{Event, EventBody};
    use hookloop_core::id::{EventId, Subject};

    use super::super::tests::created;
    use super::*;
    use crate::log::EventLog;
    use crate::memory::MemoryLog;

    type Done = Result<(), StoreError>;

    fn live() -> (MemoryLog, Store) {
        let log = MemoryLog::default();
        let store = Store::over(Arc::new(log.clone())).unwrap();
        store.go_live().unwrap();
        (log, store)
    }

    fn names(log: &MemoryLog) -> Vec<String> {
        let mut names: Vec<String> =
            log.read(1, usize::MAX).unwrap().iter().map(|e| e.event.subject.to_string()).collect();
        names.sort();
        names
    }

    impl Store {
        /// Waits, while it holds the view, until so many others want to add a unit.
        fn wait_for_arrivals(&self, count: usize) {
            let end = Instant::now() + Duration::from_secs(20);
            while self.0.arriving.load(Ordering::SeqCst) < count {
                assert!(Instant::now() < end, "the others do not come");
                std::thread::yield_now();
            }
        }
    }

    /// One thread with `first`, which holds the view until those with `others` have come.
    fn together(
        store: &Store,
        others: usize,
        mut first: impl FnMut(&mut Unit<'_>) -> Done + Send,
        other: impl Fn(usize, &mut Unit<'_>) -> Done + Sync,
    ) -> (Done, Vec<std::thread::Result<Done>>) {
        let is_staging = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                store.transact(|unit| {
                    if is_staging.fetch_add(1, Ordering::SeqCst) == 0 {
                        store.wait_for_arrivals(others);
                    }
                    first(unit)
                })
            });
            while is_staging.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let other = &other;
            let others: Vec<_> =
                (0..others).map(|n| scope.spawn(move || store.transact(|u| other(n, u)))).collect();
            (first.join().unwrap(), others.into_iter().map(|other| other.join()).collect())
        })
    }

    #[test]
    fn units_of_many_threads_are_one_batch_and_conflict_as_one() {
        let (log, store) = live();
        let (tries, rival) = (AtomicUsize::new(0), log.clone());
        let (first, others) = together(
            &store,
            3,
            |unit| {
                tries.fetch_add(1, Ordering::SeqCst);
                unit.stage(created("first")).map(drop)
            },
            |n, unit| {
                // The last of the four to stage: another machine is quicker with one of the tasks.
                if tries.fetch_add(1, Ordering::SeqCst) == 3 {
                    let event = Event { id: EventId([9; 16]), ..created("other0") };
                    rival.append(&[NewEvent { expected: 0, event }])?;
                }
                let name = format!("other{n}");
                let subject = Subject::Task(name.parse().unwrap());
                match unit.view()?.version(&subject)? {
                    0 => unit.stage(created(&name)).map(drop),
                    _ => Ok(()),
                }
            },
        );
        first.unwrap();
        others.into_iter().for_each(|other| other.unwrap().unwrap());
        assert_eq!(names(&log), ["first", "other0", "other1", "other2"]);
        assert_eq!(tries.load(Ordering::SeqCst), 8, "all four travelled together, twice");
        assert!(store.lock().traffic.together < TOGETHER_MAX);
    }

    #[test]
    fn a_unit_sees_what_those_before_it_staged_and_its_refusal_waits_for_them() {
        let (log, store) = live();
        let stage = |unit: &mut Unit<'_>| match unit.view()?.version(&created("a").subject)? {
            0 => unit.stage(created("a")).map(drop),
            _ => Err(StoreError::Contended),
        };
        let (first, others) = together(&store, 2, stage, |_, unit| stage(unit));
        first.unwrap();
        for other in others {
            assert!(matches!(other.unwrap(), Err(StoreError::Contended)));
        }
        assert_eq!(names(&log), ["a"]);
        assert_eq!(store.glance(|view| Ok(view.totals()?.tasks())).unwrap(), 1);
    }

    #[test]
    fn a_panic_is_told_to_the_others_and_nothing_hangs() {
        let dir = tempfile::tempdir().unwrap();
        for store in [live().1, Store::open(&dir.path().join("log.db")).unwrap()] {
            let first = |unit: &mut Unit<'_>| unit.stage(created("a")).map(drop);
            let (first, others) = together(&store, 1, first, |_, _| panic!("half-way"));
            assert!(first.unwrap_err().to_string().contains("panicked"));
            assert!(others[0].is_err());
            store.transact(|unit| unit.stage(created("b")).map(drop)).unwrap();
            assert_eq!(EventLog::read(&store, 1, 9).unwrap().len(), 1);
        }
    }

    #[test]
    fn what_does_not_fit_travels_next() {
        const LARGE: usize = MAX_BATCH * 2 / 3;
        let (log, store) = live();
        let stage = |name: &str, unit: &mut Unit<'_>| {
            (0..LARGE).try_for_each(|n| unit.stage(created(&format!("{name}{n}"))).map(drop))
        };
        let first = |unit: &mut Unit<'_>| stage("a", unit);
        let (first, others) = together(&store, 1, first, |_, unit| stage("b", unit));
        first.unwrap();
        others.into_iter().for_each(|other| other.unwrap().unwrap());
        assert_eq!(names(&log).len(), 2 * LARGE);
        assert_eq!(store.glance(|view| Ok(view.totals()?.tasks())).unwrap(), 2 * LARGE as u64);
    }

    #[test]
    fn a_unit_that_the_view_refuses_is_undone_alone() {
        let (log, store) = live();
        let unknown = Event { body: EventBody::TaskSubmitted(Default::default()), ..created("x") };
        let first = |unit: &mut Unit<'_>| unit.stage(created("a")).map(drop);
        let (first, others) = together(&store, 1, first, |_, unit| {
            unit.stage(created("b"))?;
            unit.stage(unknown.clone()).map(drop)
        });
        first.unwrap();
        assert!(others.into_iter().all(|other| other.unwrap().is_err()));
        assert_eq!(names(&log), ["a"]);
    }
}
