//! A place that one process at a time has, on one of many machines.
//!
//! It is a matter of economy: whoever has it, the log decides what takes effect. So it is held by signs of life
//! alone, and taken when an observer has seen none for a while.

use std::time::{Duration, Instant};

use hookloop_store::pulse::{Held, Pulse};
use hookloop_store::store::Store;

use crate::lease::{Sign, Watch};
use crate::project::EngineError;

/// Who shows no life for so long has lost its place.
pub const SEAT_LEASE: Duration = Duration::from_secs(5);
/// How often who has it shows life.
pub const BEAT: Duration = Duration::from_secs(1);
/// How often who does not have it looks.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Seat {
    held: Held,
    /// Unlike any other, on any machine.
    name: String,
    watch: Watch,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Since when it is had, and when life was last shown.
    Had {
        epoch: u64,
        beaten: Instant,
    },
    Wanted {
        looked: Option<Instant>,
    },
}

/// How things are with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is had, and life was shown just now.
    Beaten,
    Had,
    /// Another has it.
    Not,
}

impl Seat {
    pub(crate) fn new(held: Held, name: String) -> Seat {
        Seat { held, name, watch: Watch::default(), state: State::Wanted { looked: None } }
    }

    pub(crate) fn is_had(&self) -> bool {
        matches!(self.state, State::Had { .. })
    }

    /// Keeps the place, or takes it if nobody has it; asks nobody more often than is needed.
    pub(crate) fn keep(&mut self, store: &Store) -> Result<Kept, EngineError> {
        let now = Instant::now();
        match self.state {
            State::Had { beaten, .. } if now.duration_since(beaten) < BEAT => return Ok(Kept::Had),
            State::Wanted { looked: Some(looked) } if now.duration_since(looked) < LOOK => {
                return Ok(Kept::Not);
            }
            _ => {}
        }
        let last = store.last_beat(&self.held)?;
        let epoch = match (self.state, last) {
            (State::Had { epoch, .. }, None) => epoch,
            (State::Had { epoch, .. }, Some(beat)) if beat.holder == self.name => epoch,
            (_, None) => 1,
            (_, Some(beat)) => {
                let epoch = beat.epoch;
                let sign = Sign { epoch, beat: Some(beat) };
                let sight = self.watch.look(&self.held, sign, now);
                if !sight.is_over(SEAT_LEASE) {
                    self.state = State::Wanted { looked: Some(now) };
                    return Ok(Kept::Not);
                }
                epoch + 1
            }
        };
        store.beat(&self.held, &self.name, epoch)?;
        self.state = State::Had { epoch, beaten: now };
        Ok(Kept::Beaten)
    }

    /// Leaves the place to whoever wants it.
    pub(crate) fn leave(&mut self, store: &Store) -> Result<(), EngineError> {
        if self.is_had() {
            store.forget(&self.held)?;
            self.state = State::Wanted { looked: None };
        }
        Ok(())
    }
}
