//! A leader lease: one process at a time holds it, on one of many machines.
//!
//! A leader lease only saves work, because the log decides which actions take effect. So heartbeats
//! alone hold it, and another process takes it after it has seen none for [`SEAT_LEASE`].

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::LogError;
use hookloop_store::store::Store;

use crate::error::EngineError;
use crate::lease::{Liveness, Observation, SilenceDetector};

/// Time without a heartbeat after which the holder loses the lease.
pub const SEAT_LEASE: Duration = Duration::from_secs(5);
/// Interval of the holder's heartbeats.
pub const BEAT: Duration = Duration::from_secs(1);
/// Intervals at which other processes observe the lease.
///
/// While the holder is alive, candidates for a reserve lease observe less often, because there may
/// be many. A silent holder is observed more often.
const LOOK: Duration = Duration::from_secs(2);
const LOOK_MAX: Duration = Duration::from_secs(4);
const LOOK_SILENT: Duration = BEAT;

#[derive(Debug)]
pub struct LeaderLease {
    held: HeldResource,
    /// A name that is unique on all machines.
    name: String,
    watch: SilenceDetector,
    state: LeaseState,
    /// The longest interval between two observations.
    look_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseState {
    /// The process holds the lease with this epoch, and sent its last heartbeat at `beaten`.
    Had {
        epoch: u64,
        beaten: Instant,
    },
    Wanted(Option<LeaseLook>),
}

/// An observation of a lease that another process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LeaseLook {
    at: Instant,
    /// The time until the next observation.
    pause: Duration,
    /// Whether a heartbeat was seen since the first observation.
    has_life: bool,
}

/// The result of keeping a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStanding {
    /// The process holds the lease, and sent a heartbeat just now.
    Beaten,
    Had,
    /// Another process holds the lease.
    Not,
}

impl LeaderLease {
    pub fn new(held: HeldResource, name: String) -> LeaderLease {
        let (watch, state) = (SilenceDetector::default(), LeaseState::Wanted(None));
        LeaderLease { held, name, watch, state, look_max: LOOK }
    }

    /// Returns a lease that is not urgent, and for which there are many candidates.
    pub(crate) fn in_reserve(self) -> LeaderLease {
        LeaderLease { look_max: LOOK_MAX, ..self }
    }

    pub(crate) fn is_had(&self) -> bool {
        matches!(self.state, LeaseState::Had { .. })
    }

    /// Renews the lease, or takes it if it is free. Asks the store only when a request is due.
    pub fn keep(&mut self, store: &Store) -> Result<LeaseStanding, EngineError> {
        let now = Instant::now();
        match self.state {
            LeaseState::Had { beaten, .. } if now.duration_since(beaten) < BEAT => {
                return Ok(LeaseStanding::Had);
            }
            LeaseState::Wanted(Some(LeaseLook { at, pause, .. }))
                if now.duration_since(at) < pause =>
            {
                return Ok(LeaseStanding::Not);
            }
            _ => {}
        }
        let seen = store.last_beat(&self.held)?;
        let epoch = match (self.state, seen.clone()) {
            (LeaseState::Had { epoch, .. }, None) => epoch,
            (LeaseState::Had { epoch, .. }, Some(beat)) if beat.holder == self.name => epoch,
            (_, None) => 1,
            (_, Some(beat)) => {
                let epoch = beat.epoch;
                let sign = Observation { epoch, beat: Some(beat) };
                let sight = self.watch.look(&self.held, sign, now);
                if !sight.is_over(SEAT_LEASE) {
                    self.state = LeaseState::Wanted(Some(self.looked(now, sight)));
                    return Ok(LeaseStanding::Not);
                }
                epoch + 1
            }
        };
        if self.is_had() {
            store.beat(&self.held, &self.name, epoch)?;
        } else if !store.take(&self.held, &self.name, epoch, seen.as_ref())? {
            // Another process was first, and sends heartbeats from now on.
            return Ok(LeaseStanding::Not);
        }
        self.state = LeaseState::Had { epoch, beaten: now };
        Ok(LeaseStanding::Beaten)
    }

    /// Takes the lease if its last heartbeat is still `seen`, and returns whether it did.
    pub(crate) fn take(
        &mut self,
        store: &Store,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, EngineError> {
        let epoch = seen.map_or(1, |beat| beat.epoch + 1);
        let is_taken = store.take(&self.held, &self.name, epoch, seen)?;
        tracing::debug!(held = %self.held, epoch, is_taken, "a lease is tried");
        if is_taken {
            self.state = LeaseState::Had { epoch, beaten: Instant::now() };
        }
        Ok(is_taken)
    }

    /// Renews the lease while `work` runs, however long that takes.
    pub(crate) fn keep_while<T>(&mut self, store: &Store, work: impl FnOnce() -> T) -> T {
        let (end, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // Without a thread, the place may be lost in a long hook: its actions still take effect once.
            let keeper = std::thread::Builder::new().name("lease".to_owned());
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

    fn looked(&self, at: Instant, sight: Liveness) -> LeaseLook {
        match (self.state, sight) {
            (LeaseState::Wanted(Some(before)), Liveness::Alive) => {
                let pause = (before.pause.max(LOOK) * 2).min(self.look_max);
                LeaseLook { at, pause, has_life: true }
            }
            (LeaseState::Wanted(Some(before)), Liveness::Silent(_)) => {
                LeaseLook { at, pause: LOOK_SILENT, ..before }
            }
            _ => LeaseLook { at, pause: LOOK, has_life: false },
        }
    }

    /// Whether another process holds the lease and was seen alive.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.state, LeaseState::Wanted(Some(LeaseLook { has_life: true, .. })))
    }

    /// Releases the lease.
    pub fn leave(&mut self, store: &Store) -> Result<(), EngineError> {
        if self.is_had() {
            store.forget(&self.held)?;
            self.state = LeaseState::Wanted(None);
        }
        Ok(())
    }
}

/// A lease that a thread renews until this is dropped.
#[derive(Debug)]
pub(crate) struct LeaseHold {
    end: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl LeaseHold {
    /// Renews a lease that was taken.
    pub(crate) fn new(lease: LeaderLease, store: Store) -> Result<LeaseHold, EngineError> {
        let (end, ended) = mpsc::channel::<()>();
        let mut lease = lease;
        let keep = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                lease.keep_or_report(&store);
            }
            // A place that can't be left now is free when its lease is over.
            if let Err(error) = lease.leave(&store) {
                tracing::warn!(held = %lease.held, %error, "a lease stays until it expires");
            }
        };
        let keeper = std::thread::Builder::new().name("lease".to_owned()).spawn(keep);
        let keeper = keeper.map_err(|error| LogError::Engine(Box::new(error)))?;
        Ok(LeaseHold { end: Some(end), keeper: Some(keeper) })
    }
}

impl Drop for LeaseHold {
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

    /// Checks the interval after each observation, and whether the lease counts as taken.
    fn check(lease: LeaderLease, looks: &[(Liveness, Duration, bool)]) {
        let (mut lease, now) = (lease, Instant::now());
        for (sight, pause, is_taken) in looks {
            let look = lease.looked(now, *sight);
            lease.state = LeaseState::Wanted(Some(look));
            assert_eq!((look.pause, lease.is_taken()), (*pause, *is_taken), "{sight:?}");
        }
    }

    #[test]
    fn reserve_candidates_observe_a_live_leader_less_often() {
        let lease = || LeaderLease::new(HeldResource::Second, "a".to_owned());
        let silent = Liveness::Silent(LOOK);
        check(lease(), &[(Liveness::First, LOOK, false), (Liveness::Alive, LOOK, true)]);
        check(
            lease().in_reserve(),
            &[
                (Liveness::First, LOOK, false),
                // The holder had crashed before: the candidate does not wait longer for it.
                (silent, LOOK_SILENT, false),
                (Liveness::Alive, LOOK_MAX, true),
                (Liveness::Alive, LOOK_MAX, true),
                (silent, LOOK_SILENT, true),
                (silent, LOOK_SILENT, true),
                (Liveness::Alive, LOOK_MAX, true),
            ],
        );
    }
}
