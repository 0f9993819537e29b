//! A place that one process at a time has, on one of many machines.
//!
//! It is a matter of economy: whoever has it, the log decides what takes effect. So it is held by signs of life
//! alone, and taken when an observer has seen none for a while.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::LogError;
use hookloop_store::store::Store;

use crate::error::EngineError;
use crate::lease::{Sight, Sign, Watch};

/// Who shows no life for so long has lost its place.
pub const SEAT_LEASE: Duration = Duration::from_secs(5);
/// How often who has it shows life.
pub const BEAT: Duration = Duration::from_secs(1);
/// How often who does not have it looks. While its holder is seen alive, those who want a place in reserve look less
/// often: they may be many. Who sees it silent looks closely.
const LOOK: Duration = Duration::from_secs(2);
const LOOK_MAX: Duration = Duration::from_secs(4);
const LOOK_SILENT: Duration = BEAT;

#[derive(Debug)]
pub struct Seat {
    held: HeldResource,
    /// Unlike any other, on any machine.
    name: String,
    watch: Watch,
    state: State,
    /// The longest time between two looks.
    look_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Since when it is had, and when life was last shown.
    Had {
        epoch: u64,
        beaten: Instant,
    },
    Wanted(Option<Look>),
}

/// A look at a place that another has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: Instant,
    /// How long it is enough.
    pause: Duration,
    /// The other has shown life since it is looked at.
    has_life: bool,
}

/// How things are with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is had, and life was shown just now.
    Beaten,
    Had,
    /// Another has it.
    Not,
}

impl Seat {
    pub fn new(held: HeldResource, name: String) -> Seat {
        let (watch, state) = (Watch::default(), State::Wanted(None));
        Seat { held, name, watch, state, look_max: LOOK }
    }

    /// One that is not urgent, and that many want.
    pub(crate) fn in_reserve(self) -> Seat {
        Seat { look_max: LOOK_MAX, ..self }
    }

    pub(crate) fn is_had(&self) -> bool {
        matches!(self.state, State::Had { .. })
    }

    /// Keeps the place, or takes it if nobody has it; asks nobody more often than is needed.
    pub fn keep(&mut self, store: &Store) -> Result<Kept, EngineError> {
        let now = Instant::now();
        match self.state {
            State::Had { beaten, .. } if now.duration_since(beaten) < BEAT => return Ok(Kept::Had),
            State::Wanted(Some(Look { at, pause, .. })) if now.duration_since(at) < pause => {
                return Ok(Kept::Not);
            }
            _ => {}
        }
        let seen = store.last_beat(&self.held)?;
        let epoch = match (self.state, seen.clone()) {
            (State::Had { epoch, .. }, None) => epoch,
            (State::Had { epoch, .. }, Some(beat)) if beat.holder == self.name => epoch,
            (_, None) => 1,
            (_, Some(beat)) => {
                let epoch = beat.epoch;
                let sign = Sign { epoch, beat: Some(beat) };
                let sight = self.watch.look(&self.held, sign, now);
                if !sight.is_over(SEAT_LEASE) {
                    self.state = State::Wanted(Some(self.looked(now, sight)));
                    return Ok(Kept::Not);
                }
                epoch + 1
            }
        };
        if self.is_had() {
            store.beat(&self.held, &self.name, epoch)?;
        } else if !store.take(&self.held, &self.name, epoch, seen.as_ref())? {
            // Another one was quicker, and shows life from now on.
            return Ok(Kept::Not);
        }
        self.state = State::Had { epoch, beaten: now };
        Ok(Kept::Beaten)
    }

    /// Takes the place if the last heartbeat there is still `seen`; answers whether it did.
    pub(crate) fn take(
        &mut self,
        store: &Store,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, EngineError> {
        let epoch = seen.map_or(1, |beat| beat.epoch + 1);
        let is_taken = store.take(&self.held, &self.name, epoch, seen)?;
        tracing::debug!(held = %self.held, epoch, is_taken, "a lease is tried");
        if is_taken {
            self.state = State::Had { epoch, beaten: Instant::now() };
        }
        Ok(is_taken)
    }

    /// Keeps the place while `work` is done, however long that takes.
    pub(crate) fn keep_while<T>(&mut self, store: &Store, work: impl FnOnce() -> T) -> T {
        let (end, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // Without a thread, the place may be lost in a long hook: its actions still take effect once.
            let keeper = std::thread::Builder::new().name("seat".to_owned());
            let keeper = keeper.spawn_scoped(scope, move || {
                while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                    self.keep_or_report(store);
                }
            });
            if let Err(error) = keeper {
                tracing::warn!(%error, "a lease is not kept while its holder works");
            }
            let done = work();
            drop(end);
            done
        })
    }

    /// Sends a heartbeat. The next one may get through if this one does not.
    fn keep_or_report(&mut self, store: &Store) {
        if let Err(error) = self.keep(store) {
            tracing::warn!(held = %self.held, %error, "a heartbeat of a lease is not sent");
        }
    }

    fn looked(&self, at: Instant, sight: Sight) -> Look {
        match (self.state, sight) {
            (State::Wanted(Some(before)), Sight::Alive) => {
                let pause = (before.pause.max(LOOK) * 2).min(self.look_max);
                Look { at, pause, has_life: true }
            }
            (State::Wanted(Some(before)), Sight::Silent(_)) => {
                Look { at, pause: LOOK_SILENT, ..before }
            }
            _ => Look { at, pause: LOOK, has_life: false },
        }
    }

    /// Whether another has it who is there, as far as was seen.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.state, State::Wanted(Some(Look { has_life: true, .. })))
    }

    /// Leaves the place to whoever wants it.
    pub fn leave(&mut self, store: &Store) -> Result<(), EngineError> {
        if self.is_had() {
            store.forget(&self.held)?;
            self.state = State::Wanted(None);
        }
        Ok(())
    }
}

/// A place that is kept by a thread until this is dropped.
#[derive(Debug)]
pub(crate) struct SeatHold {
    end: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl SeatHold {
    /// Keeps a place that was taken.
    pub(crate) fn new(seat: Seat, store: Store) -> Result<SeatHold, EngineError> {
        let (end, ended) = mpsc::channel::<()>();
        let mut seat = seat;
        let keep = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                seat.keep_or_report(&store);
            }
            // A place that can't be left now is free when its lease is over.
            if let Err(error) = seat.leave(&store) {
                tracing::warn!(held = %seat.held, %error, "a lease stays until it expires");
            }
        };
        let keeper = std::thread::Builder::new().name("seat".to_owned()).spawn(keep);
        let keeper = keeper.map_err(|error| LogError::Engine(Box::new(error)))?;
        Ok(SeatHold { end: Some(end), keeper: Some(keeper) })
    }
}

impl Drop for SeatHold {
    fn drop(&mut self) {
        self.end.take();
        if self.keeper.take().is_some_and(|keeper| keeper.join().is_err()) {
            tracing::warn!("the thread that keeps a lease panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long each look is enough, and whether the place is taken after it.
    fn check(seat: Seat, looks: &[(Sight, Duration, bool)]) {
        let (mut seat, now) = (seat, Instant::now());
        for (sight, pause, is_taken) in looks {
            let look = seat.looked(now, *sight);
            seat.state = State::Wanted(Some(look));
            assert_eq!((look.pause, seat.is_taken()), (*pause, *is_taken), "{sight:?}");
        }
    }

    #[test]
    fn those_in_reserve_look_less_often_while_the_holder_lives() {
        let seat = || Seat::new(HeldResource::Second, "a".to_owned());
        let silent = Sight::Silent(LOOK);
        check(seat(), &[(Sight::First, LOOK, false), (Sight::Alive, LOOK, true)]);
        check(
            seat().in_reserve(),
            &[
                (Sight::First, LOOK, false),
                // Left by somebody who died: nobody waits longer for that.
                (silent, LOOK_SILENT, false),
                (Sight::Alive, LOOK_MAX, true),
                (Sight::Alive, LOOK_MAX, true),
                (silent, LOOK_SILENT, true),
                (silent, LOOK_SILENT, true),
                (Sight::Alive, LOOK_MAX, true),
            ],
        );
    }
}
