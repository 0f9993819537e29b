//! Detects silent holders by observation.
//!
//! A lease is over if nothing changed between two observations that are a whole lease apart by this
//! process's own clock. Clocks of other machines are never read. The first observation proves
//! nothing.
//!
//! An observation takes time, and this process may be suspended in the middle of it. So silence
//! lasts from the end of the first observation to the beginning of the last.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use hookloop_core::claim::{Claim, Fence, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::decide::check_fence;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::task::{Task, TaskObstacle};
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};

use crate::error::EngineError;
use crate::project::Project;

/// Number of claims after which an expired claim blocks the task for a person.
///
/// Otherwise a task that crashes every worker would be claimed forever.
pub(crate) const CLAIMS_MAX: u64 = 20;

/// Longest pause between two sweeps. After a longer one, this process discards its observations.
const GAP_MAX: Duration = Duration::from_secs(20);
/// Observations of a claim per lease.
///
/// Each one is a request to the servers for every claimed task. One interval adds to the time until
/// an expired claim is detected.
const LOOKS_PER_LEASE: u32 = 10;

/// The epoch and last heartbeat of a holder. Any difference shows that the holder is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub epoch: u64,
    pub beat: Option<HeartbeatRecord>,
}

/// The result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The holder was not observed before.
    First,
    /// A heartbeat arrived since the last observation.
    Alive,
    /// No heartbeat arrived for this time.
    Silent(Duration),
}

impl Liveness {
    /// Whether the holder was silent for a whole lease.
    pub fn is_over(self, lease: Duration) -> bool {
        matches!(self, Liveness::Silent(silence) if silence >= lease)
    }
}

/// The observations of one holder.
#[derive(Debug)]
struct LastObservation {
    sign: Observation,
    /// The end of the first observation of this sign.
    since: Instant,
    /// The start of the last observation.
    looked: Instant,
}

/// The observations that this process made of holders of claims and leases.
#[derive(Debug, Default)]
pub struct SilenceDetector {
    seen: HashMap<HeldResource, LastObservation>,
    /// The time of this process's last sweep.
    swept: Option<Instant>,
}

impl SilenceDetector {
    /// Compares `sign` with the last observation. The request for `sign` started at `asked`.
    pub fn look(&mut self, held: &HeldResource, sign: Observation, asked: Instant) -> Liveness {
        self.look_until(held, sign, asked, Instant::now())
    }

    fn look_until(
        &mut self,
        held: &HeldResource,
        sign: Observation,
        asked: Instant,
        ended: Instant,
    ) -> Liveness {
        let sight = match self.seen.get_mut(held) {
            Some(seen) if seen.sign == sign => {
                seen.looked = asked;
                return Liveness::Silent(asked.saturating_duration_since(seen.since));
            }
            Some(_) => Liveness::Alive,
            None => Liveness::First,
        };
        self.seen.insert(held.clone(), LastObservation { sign, since: ended, looked: asked });
        sight
    }

    /// Whether to observe a claim again.
    ///
    /// That is the case for a new claim, after a part of its lease, and after its whole lease.
    fn is_due(&self, held: &HeldResource, claim: &Claim, now: Instant) -> bool {
        let lease = Duration::from_millis(claim.lease_ms);
        let known = self.seen.get(held).filter(|seen| seen.sign.epoch == claim.epoch);
        known.is_none_or(|seen| {
            let silent = now.saturating_duration_since(seen.since);
            let unseen = now.saturating_duration_since(seen.looked);
            silent >= lease || unseen >= lease / LOOKS_PER_LEASE
        })
    }

    /// Starts a sweep. If this process was suspended since the last one, it discards its
    /// observations.
    fn attend(&mut self, now: Instant) {
        let was_away = |swept: Instant| now.saturating_duration_since(swept) > GAP_MAX;
        if self.swept.replace(now).is_some_and(was_away) {
            self.seen.clear();
        }
    }

    /// Discards the observations of resources that are no longer claimed.
    pub fn keep(&mut self, mut is_held: impl FnMut(&HeldResource) -> bool) {
        self.seen.retain(|held, _| is_held(held));
    }
}

/// A claim, and the observation of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedClaim {
    pub claim: Claim,
    pub sight: Liveness,
}

impl ObservedClaim {
    pub fn is_over(&self) -> bool {
        self.sight.is_over(Duration::from_millis(self.claim.lease_ms))
    }
}

/// A claim that a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredClaim {
    pub id: TaskId,
    pub claim: Claim,
}

impl Project {
    /// Sends a heartbeat for the claim `epoch`. Returns an error if the claim is over.
    pub fn heartbeat(&self, id: &TaskId, epoch: u64) -> Result<(), EngineError> {
        let task = self.task(id)?;
        check_fence(&task, Fence::Epoch(epoch), "heartbeat")?;
        let agent = task.claim.map_or(String::new(), |claim| claim.agent);
        Ok(self.store.beat(&HeldResource::Task(id.clone()), &agent, epoch)?)
    }

    /// Observes the holder of a claimed task.
    pub fn look_at(
        &self,
        id: &TaskId,
        watch: &mut SilenceDetector,
    ) -> Result<ObservedClaim, EngineError> {
        match self.task(id)?.claim {
            Some(claim) => self.sighting(id, claim, watch),
            None => Err(Refusal::NotClaimed(id.clone()).into()),
        }
    }

    /// Ends the claims whose holders `watch` has seen silent for their lease.
    ///
    /// Several processes may sweep at the same time, but each claim is ended once.
    pub fn expire_silent(
        &self,
        watch: &mut SilenceDetector,
    ) -> Result<Vec<ExpiredClaim>, EngineError> {
        watch.attend(Instant::now());
        let rows = self.read(|view| view.claimed())?;
        let ids: HashSet<&TaskId> = rows.iter().map(|row| &row.task.id).collect();
        watch.keep(|held| match held {
            HeldResource::Task(id) => ids.contains(id),
            _ => true,
        });
        let mut expired = Vec::new();
        for Task { id, claim, .. } in rows.into_iter().map(|row| row.task) {
            let Some(claim) = claim else { continue };
            if !watch.is_due(&HeldResource::Task(id.clone()), &claim, Instant::now()) {
                continue;
            }
            let sighting = self.sighting(&id, claim, watch)?;
            if !sighting.is_over() {
                continue;
            }
            let claim = sighting.claim;
            let fence = Fence::Epoch(claim.epoch);
            let command = match claim.epoch % CLAIMS_MAX {
                // The task itself seems to crash its workers.
                0 => {
                    let reason = format!(
                        "{} was silent for its lease, as the last of {} who had it",
                        claim.agent, claim.epoch
                    );
                    let obstacle = TaskObstacle { reason, required_knowledge: None };
                    Command::BlockTask { id: id.clone(), obstacle, fence }
                }
                _ => {
                    let reason = ReleaseReason::Expired;
                    Command::ReleaseTask { id: id.clone(), fence, reason, note: None }
                }
            };
            match self.carry_out(&command) {
                Ok(_) => {
                    let (agent, epoch) = (&claim.agent, claim.epoch);
                    tracing::info!(task = %id, %agent, epoch, "a silent claim is ended");
                    expired.push(ExpiredClaim { id, claim });
                }
                // The holder finished, or another process ended the claim first.
                Err(EngineError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(expired)
    }

    fn sighting(
        &self,
        id: &TaskId,
        claim: Claim,
        watch: &mut SilenceDetector,
    ) -> Result<ObservedClaim, EngineError> {
        let (held, asked) = (HeldResource::Task(id.clone()), Instant::now());
        let beat = self.store.last_beat(&held)?;
        let sight = watch.look(&held, Observation { epoch: claim.epoch, beat }, asked);
        Ok(ObservedClaim { claim, sight })
    }

    fn task(&self, id: &TaskId) -> Result<Task, EngineError> {
        let row = self.read(|view| view.task(id))?;
        Ok(row.map(|row| row.task).ok_or_else(|| Refusal::NoSuchTask(id.clone()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn beat(count: u64) -> Option<HeartbeatRecord> {
        Some(HeartbeatRecord { holder: "a".into(), epoch: 1, count })
    }

    /// Observes at the given seconds after the start, and compares each result.
    fn check(looks: &[(u64, u64, Option<HeartbeatRecord>, Liveness)]) {
        let (start, mut watch) = (Instant::now(), SilenceDetector::default());
        for (second, epoch, beat, expected) in looks {
            let sign = Observation { epoch: *epoch, beat: beat.clone() };
            let now = start + Duration::from_secs(*second);
            let sight = watch.look_until(&HeldResource::Dispatcher, sign, now, now);
            assert_eq!(sight, *expected, "at second {second}");
        }
    }

    fn silent(seconds: u64) -> Liveness {
        Liveness::Silent(Duration::from_secs(seconds))
    }

    #[test]
    fn silence_counts_from_the_first_observation() {
        check(&[
            (100, 1, None, Liveness::First),
            (109, 1, None, silent(9)),
            (110, 1, None, silent(10)),
        ]);

        check(&[(0, 1, beat(7), Liveness::First), (10, 1, beat(7), silent(10))]);
    }

    #[test]
    fn a_changed_epoch_or_heartbeat_is_alive() {
        check(&[
            (0, 1, None, Liveness::First),
            (9, 1, beat(1), Liveness::Alive),
            (18, 1, beat(1), silent(9)),
            (19, 1, beat(2), Liveness::Alive),
            (28, 2, beat(2), Liveness::Alive),
            (37, 2, beat(2), silent(9)),
            (38, 2, None, Liveness::Alive),
        ]);
    }

    #[test]
    fn a_lease_expires_after_a_full_lease_without_a_heartbeat() {
        for (sight, over) in [
            (Liveness::First, false),
            (Liveness::Alive, false),
            (silent(9), false),
            (silent(10), true),
            (silent(11), true),
        ] {
            assert_eq!(sight.is_over(LEASE), over, "{sight:?}");
        }
    }

    #[test]
    fn a_claim_is_observed_several_times_per_lease_and_at_its_expiry() {
        let (start, mut watch) = (Instant::now(), SilenceDetector::default());
        let held = HeldResource::Task("t".parse().unwrap());
        let at = |ms: u64| start + Duration::from_millis(ms);
        let claim = |epoch| Claim { agent: "a".to_owned(), epoch, lease_ms: 10_000 };
        let mut look = |ms, epoch, count| {
            let is_due = watch.is_due(&held, &claim(epoch), at(ms));
            let sign = Observation { epoch, beat: beat(count) };
            (is_due, watch.look_until(&held, sign, at(ms), at(ms)))
        };
        assert_eq!(look(0, 1, 7), (true, Liveness::First));
        assert!(!look(999, 1, 7).0);
        assert!(look(1_999, 1, 7).0);
        assert_eq!(look(2_000, 2, 7), (true, Liveness::Alive), "another claim");
        assert!(look(11_500, 2, 7).0);
        assert!(!look(11_999, 2, 7).0);
        assert_eq!(look(12_000, 2, 7), (true, silent(10)));
    }

    #[test]
    fn a_suspended_observer_starts_its_observation_over() {
        let (start, mut watch) = (Instant::now(), SilenceDetector::default());
        let mut look = |second: u64| {
            let now = start + Duration::from_secs(second);
            watch.attend(now);
            watch.look_until(
                &HeldResource::Dispatcher,
                Observation { epoch: 1, beat: beat(1) },
                now,
                now,
            )
        };
        assert_eq!(look(0), Liveness::First);
        assert_eq!(look(20), silent(20));
        assert_eq!(look(41), Liveness::First, "it was stopped");
        assert_eq!(look(51), silent(10));
    }

    #[test]
    fn resources_no_longer_claimed_are_forgotten() {
        let (now, mut watch) = (Instant::now(), SilenceDetector::default());
        let sign = || Observation { epoch: 1, beat: None };
        watch.look_until(&HeldResource::Dispatcher, sign(), now, now);
        watch.keep(|_| false);
        let sight = watch.look_until(&HeldResource::Dispatcher, sign(), now + LEASE, now + LEASE);
        assert_eq!(sight, Liveness::First);
    }

    /// A process that is suspended during an observation has an old answer and a new time.
    #[test]
    fn a_slow_observation_does_not_count_as_silence() {
        let (start, mut watch) = (Instant::now(), SilenceDetector::default());
        let at = |second| start + Duration::from_secs(second);
        let mut look = |asked, ended, count| {
            let sign = Observation { epoch: 1, beat: beat(count) };
            watch.look_until(&HeldResource::Dispatcher, sign, at(asked), at(ended))
        };
        assert_eq!(look(0, 0, 1), Liveness::First);
        assert_eq!(look(1, 20, 1), silent(1), "asked a second after");
        assert_eq!(look(21, 40, 2), Liveness::Alive);
        assert_eq!(look(41, 41, 2), silent(1), "known since it was heard");
        assert_eq!(look(50, 50, 2), silent(10));
    }
}
