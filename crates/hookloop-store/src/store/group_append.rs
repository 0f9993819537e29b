//! Combines units of concurrent threads into one batch for a log on servers.
//!
//! Threads stage their units on the view one after another, each on top of those before it. The
//! last thread to arrive undoes all of them and sends the batch to the log. The view is not locked
//! meanwhile. If the log refuses a batch because other processes wrote first, all of its units run
//! again, and later batches take fewer units. With much contention, each unit is its own batch.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hookloop_core::event::Event;

use super::append_queue::{BatchEnd, OpenBatch, PendingBatch};
use super::engine::LogEngine;
use super::error::{MAX_TRIES, StoreError};
use super::handle::Store;
use super::remote_check::{PATIENCE, STEP, behind};
use super::state::StoreState;
use super::transaction::run_statement;
use super::unit::WorkUnit;
use crate::crash;
use crate::log::{AppendError, AppendOutcome, MAX_BATCH, NewEvent, Seq};
use crate::view::View;

/// Number of attempts without a pause after a conflict.
const EAGER_TRIES: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

impl Store {
    pub(super) fn transact_remote<T, E: From<StoreError>>(
        &self,
        engine: &dyn LogEngine,
        work: &mut impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut at_least = 0;
        for tried in 0..MAX_TRIES {
            pause(tried);
            let mut inner = self.lock_for_staging(at_least)?;
            let (done, pending) = match self.stage_in_batch(&mut inner, at_least, work)? {
                StagedUnit::Alone(refused) => return Err(refused),
                StagedUnit::On(pending, done) => (Some(done), pending),
                StagedUnit::NoRoom(pending) => (None, pending),
            };
            let is_last = self.0.arriving.load(Ordering::SeqCst) == 0;
            let end = match inner.take_batch(is_last) {
                Some(open) => self.send_batch(engine, inner, open),
                None => {
                    drop(inner);
                    pending.wait()
                }
            };
            match (end, done) {
                (BatchEnd::Stored, Some(done)) => return done,
                (BatchEnd::Stored, None) => {}
                (BatchEnd::Overtaken(seq), _) => at_least = at_least.max(seq),
                (BatchEnd::Failed(error), _) => return Err(StoreError::shared(error).into()),
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Locks the view for another unit, with the units that are staged on it.
    fn lock_for_staging(&self, at_least: Seq) -> Result<MutexGuard<'_, StoreState>, StoreError> {
        if at_least > 0 {
            self.wait_if_live(at_least)?;
        }
        self.0.arriving.fetch_add(1, Ordering::SeqCst);
        let inner = self.lock_with_staged();
        let inner = self.0.batch_ended.wait_while(inner, |inner| !inner.queue.has_capacity());
        self.0.arriving.fetch_sub(1, Ordering::SeqCst);
        Ok(inner.unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `work` on the view and on the units that are staged there.
    fn stage_in_batch<T, E: From<StoreError>>(
        &self,
        inner: &mut StoreState,
        at_least: Seq,
        work: &mut impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<StagedUnit<T, E>, StoreError> {
        if !inner.queue.has_open_batch() {
            inner.catch_up(at_least)?;
            run_statement(&inner.conn, "BEGIN IMMEDIATE")?;
        }
        let staged = catch_unwind(AssertUnwindSafe(|| inner.stage_next(work)));
        if let Ok(Ok(staged)) = staged {
            return Ok(staged);
        }
        let error = match &staged {
            Ok(Err(error)) => error.to_string(),
            _ => "another write of the same batch panicked".to_owned(),
        };
        inner.abandon_batch(BatchEnd::failed(StoreError::Commit(error)));
        self.0.staging_ended.notify_all();
        staged.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Appends a batch to the log, and applies the stored events to the view.
    fn send_batch(
        &self,
        engine: &dyn LogEngine,
        inner: MutexGuard<'_, StoreState>,
        open: OpenBatch,
    ) -> BatchEnd {
        let OpenBatch { pending, batch, units, .. } = open;
        let undone = run_statement(&inner.conn, "ROLLBACK");
        drop(inner);
        self.0.staging_ended.notify_all();
        let mut in_flight = InFlight { store: self, pending: &pending, units, end: None };
        let end = match undone {
            Ok(()) if batch.is_empty() => BatchEnd::Stored,
            Ok(()) => self.append_batch(engine, batch),
            Err(error) => BatchEnd::failed(error),
        };
        in_flight.end = Some(end.clone());
        end
    }

    fn append_batch(&self, engine: &dyn LogEngine, batch: Vec<NewEvent>) -> BatchEnd {
        let seen = match (engine.append(&batch), &batch[..]) {
            (Ok(AppendOutcome::At(first)), _) => {
                crash::point("appended");
                self.see_own(first, batch)
            }
            (Ok(AppendOutcome::Before(first)), [only]) => match is_at(engine, first, &only.event) {
                Ok(true) => self.note_seen(first),
                Ok(false) => return BatchEnd::Overtaken(first),
                Err(error) => Err(error),
            },
            // Another process reacted to the same cause, and its batch may differ.
            (Ok(AppendOutcome::Before(first)), _) => return BatchEnd::Overtaken(first),
            (Err(AppendError::Conflict { actual, .. }), _) => return BatchEnd::Overtaken(actual),
            (Err(error), _) => Err(error.into()),
        };
        match seen {
            Ok(()) => BatchEnd::Stored,
            Err(error) => BatchEnd::failed(error),
        }
    }
}

/// A batch that was sent. Dropping it gives the result to the waiting threads.
struct InFlight<'a> {
    store: &'a Store,
    pending: &'a PendingBatch,
    units: usize,
    end: Option<BatchEnd>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let panicked = || BatchEnd::failed(StoreError::Commit("its writer panicked".to_owned()));
        let end = self.end.take().unwrap_or_else(panicked);
        let mut inner = self.store.lock_with_staged();
        inner.queue.in_flight -= 1;
        inner.queue.adapt(self.units, &end);
        drop(inner);
        if self.units > 1 {
            self.pending.finish(end);
        }
        self.store.0.batch_ended.notify_all();
    }
}

/// The result of staging a unit.
enum StagedUnit<T, E> {
    /// The unit failed, and the batch has no other.
    Alone(E),
    On(Arc<PendingBatch>, Result<T, E>),
    /// The batch has no room for the unit, which runs again for the next batch.
    NoRoom(Arc<PendingBatch>),
}

impl StoreState {
    /// Adds a unit to those that are staged, in the open transaction.
    fn stage_next<T, E: From<StoreError>>(
        &mut self,
        work: &mut impl FnMut(&mut WorkUnit<'_>) -> Result<T, E>,
    ) -> Result<StagedUnit<T, E>, StoreError> {
        let open = match &mut self.queue.open {
            Some(open) => {
                run_statement(&self.conn, "SAVEPOINT unit")?;
                open
            }
            none => none.insert(OpenBatch::new(View::new(&self.conn).totals()?)),
        };
        let is_first = open.units == 0;
        let pending = open.pending.clone();
        let mut unit = WorkUnit::new(&self.conn, false, open.totals.clone());
        let done = match work(&mut unit) {
            Err(refused) if is_first => {
                self.abandon_batch(BatchEnd::Stored);
                return Ok(StagedUnit::Alone(refused));
            }
            done => done,
        };
        let has_room = open.batch.len() + unit.len() <= MAX_BATCH;
        open.units += 1;
        if done.is_ok() && has_room {
            unit.view()?;
            open.totals = unit.totals().clone();
            open.batch.extend(unit.batch());
        } else {
            self.conn.execute_batch("ROLLBACK TO unit")?;
        }
        if !is_first {
            run_statement(&self.conn, "RELEASE unit")?;
        }
        open.is_full |= !has_room;
        Ok(if has_room { StagedUnit::On(pending, done) } else { StagedUnit::NoRoom(pending) })
    }

    /// Takes the open batch if it must be sent now.
    ///
    /// That is so if no other thread is about to add a unit, or the batch is full.
    fn take_batch(&mut self, is_last: bool) -> Option<OpenBatch> {
        let is_live = self.is_live();
        let group_size = self.queue.group_size;
        let leaves =
            |open: &mut OpenBatch| is_last || !is_live || open.is_full || open.units >= group_size;
        let open = self.queue.open.take_if(leaves)?;
        self.queue.in_flight += 1;
        Some(open)
    }

    /// Undoes the staged units and reports `end` to the threads that wait for them.
    fn abandon_batch(&mut self, end: BatchEnd) {
        // SQLite may have ended the transaction itself; the caller reports the first error.
        if let Err(error) = run_statement(&self.conn, "ROLLBACK") {
            tracing::debug!(%error, "a batch is not rolled back");
        }
        if let Some(open) = self.queue.open.take() {
            open.pending.finish(end);
        }
    }
}

/// Whether the log has exactly this event at `seq`.
///
/// A network that recovers can deliver a batch twice. The answer is then that of the second
/// delivery, although this process stored the event.
fn is_at(engine: &dyn LogEngine, seq: Seq, event: &Event) -> Result<bool, StoreError> {
    let mut follower = engine.follow(seq)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match follower.next(STEP)?.first() {
            Some(stored) => return Ok(stored.seq == seq && stored.event == *event),
            None if Instant::now() > end => return Err(behind(seq).into()),
            None => {}
        }
    }
}

/// Pauses for a random time that grows with each attempt after the first few.
fn pause(tried: usize) {
    if tried <= EAGER_TRIES {
        return;
    }
    use std::hash::{BuildHasher, RandomState};
    let longest = LONGEST_PAUSE.min(Duration::from_millis(tried as u64));
    std::thread::sleep(longest / 64 * (RandomState::new().hash_one(tried) % 64) as u32);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use hookloop_core::event::{Event, EventBody};
    use hookloop_core::id::{EventId, Subject};

    use super::super::append_queue::GROUP_SIZE_MAX;
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
        /// Waits, while the view is locked, until `count` other threads want to add a unit.
        fn wait_for_arrivals(&self, count: usize) {
            let end = Instant::now() + Duration::from_secs(20);
            while self.0.arriving.load(Ordering::SeqCst) < count {
                assert!(Instant::now() < end, "the others do not come");
                std::thread::yield_now();
            }
        }
    }

    /// Runs `first` in one thread, which locks the view until the threads with `other` wait for it.
    fn together(
        store: &Store,
        others: usize,
        mut first: impl FnMut(&mut WorkUnit<'_>) -> Done + Send,
        other: impl Fn(usize, &mut WorkUnit<'_>) -> Done + Sync,
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
    fn units_of_several_threads_form_one_batch_and_are_retried_together() {
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
        assert!(store.lock().queue.group_size < GROUP_SIZE_MAX);
    }

    #[test]
    fn a_unit_sees_events_that_earlier_units_staged_in_the_batch() {
        let (log, store) = live();
        let stage = |unit: &mut WorkUnit<'_>| match unit.view()?.version(&created("a").subject)? {
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
    fn a_panic_in_a_unit_fails_the_batch_and_nothing_hangs() {
        let dir = tempfile::tempdir().unwrap();
        for store in [live().1, Store::open(&dir.path().join("log.db")).unwrap()] {
            let first = |unit: &mut WorkUnit<'_>| unit.stage(created("a")).map(drop);
            let (first, others) = together(&store, 1, first, |_, _| panic!("half-way"));
            assert!(first.unwrap_err().to_string().contains("panicked"));
            assert!(others[0].is_err());
            store.transact(|unit| unit.stage(created("b")).map(drop)).unwrap();
            assert_eq!(EventLog::read(&store, 1, 9).unwrap().len(), 1);
        }
    }

    #[test]
    fn units_over_the_batch_limit_go_into_the_next_batch() {
        const LARGE: usize = MAX_BATCH * 2 / 3;
        let (log, store) = live();
        let stage = |name: &str, unit: &mut WorkUnit<'_>| {
            (0..LARGE).try_for_each(|n| unit.stage(created(&format!("{name}{n}"))).map(drop))
        };
        let first = |unit: &mut WorkUnit<'_>| stage("a", unit);
        let (first, others) = together(&store, 1, first, |_, unit| stage("b", unit));
        first.unwrap();
        others.into_iter().for_each(|other| other.unwrap().unwrap());
        assert_eq!(names(&log).len(), 2 * LARGE);
        assert_eq!(store.glance(|view| Ok(view.totals()?.tasks())).unwrap(), 2 * LARGE as u64);
    }

    #[test]
    fn a_unit_refused_by_the_view_is_rolled_back_alone() {
        let (log, store) = live();
        let unknown = Event { body: EventBody::TaskSubmitted(Default::default()), ..created("x") };
        let first = |unit: &mut WorkUnit<'_>| unit.stage(created("a")).map(drop);
        let (first, others) = together(&store, 1, first, |_, unit| {
            unit.stage(created("b"))?;
            unit.stage(unknown.clone()).map(drop)
        });
        first.unwrap();
        assert!(others.into_iter().all(|other| other.unwrap().is_err()));
        assert_eq!(names(&log), ["a"]);
    }
}
