//! One dispatcher at a time for a project that many machines share.
//!
//! The cursor's version makes each action take effect once, whichever process dispatches. A single
//! dispatcher only saves work: two would waste each other's batches. So its leader lease consists
//! of heartbeats alone, and another process takes it after it has seen none for the whole lease.
//!
//! An observer has to watch a whole lease itself. Therefore a second process watches the
//! dispatcher, a third watches the second, and all others watch the third.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::Seq;
use rustix::time::ClockId;

use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;
use crate::leader_lease::{BEAT, LeaderLease, LeaseHold, LeaseStanding, SEAT_LEASE};
use crate::lease::{ExpiredClaim, SilenceDetector};
use crate::log_location;
use crate::project::Project;

/// Events between two snapshots.
const SNAPSHOT_EVERY: Seq = 50_000;
/// The key under which a machine remembers the dispatcher's last heartbeat and when it saw it.
const SEEN: &str = "dispatcher";
/// Prefix of holder names of commands that have the leader lease. No machine has this name.
const COMMAND: &str = "_command";

/// The role of a dispatcher in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchRound {
    /// The process is the leader, and has run everything that was due.
    Leading,
    /// Another process is the leader.
    Standby,
}

/// A process that stays to dispatch, as leader or in standby.
#[derive(Debug)]
pub struct Dispatcher {
    project: Project,
    /// The leader leases, from that of the dispatcher to the last one in reserve.
    leases: [LeaderLease; 3],
    watch: SilenceDetector,
    expired: Vec<ExpiredClaim>,
    known: Seq,
    snapshot: Option<Seq>,
}

impl Dispatcher {
    /// Creates a dispatcher that follows the log.
    pub fn new(project: &Project, machine: &str) -> Result<Dispatcher, EngineError> {
        let project = project.clone();
        project.store.go_live()?;
        let name = format!("{machine} {}", fresh_id());
        let leases = [
            LeaderLease::new(HeldResource::Dispatcher, name.clone()),
            LeaderLease::new(HeldResource::Second, name.clone()),
            LeaderLease::new(HeldResource::Third, name).in_reserve(),
        ];
        let (watch, expired) = (SilenceDetector::default(), Vec::new());
        Ok(Dispatcher { project, leases, watch, expired, known: 0, snapshot: None })
    }

    /// Runs due work if this process is the leader, then waits briefly for events.
    pub fn round(&mut self) -> Result<DispatchRound, EngineError> {
        let round = self.look()?;
        self.known = self.project.store.wait_for_news(self.known, BEAT)?;
        Ok(round)
    }

    fn look(&mut self) -> Result<DispatchRound, EngineError> {
        let round = self.keep_place()?;
        if round == DispatchRound::Leading {
            self.project.fire_schedules(now())?;
            if self.project.has_pending()? {
                let project = &self.project;
                // A hook may run for longer than the leader lease.
                self.leases[0].keep_while(&project.store, || project.lead_reactions())?;
            }
        }
        Ok(round)
    }

    /// Applies the current configuration of the project from now on.
    pub fn renew(&mut self, project: Project) {
        self.project = project;
    }

    /// Releases all leader leases of this process.
    pub fn leave(&mut self) -> Result<(), EngineError> {
        self.leases.iter_mut().try_for_each(|lease| lease.leave(&self.project.store))
    }

    /// Keeps the leader leases while the project has claims, open sessions or pending work.
    ///
    /// Otherwise it releases them, so that an idle project causes no traffic.
    pub fn stand_by(&mut self) -> Result<DispatchRound, EngineError> {
        let is_quiet = self
            .project
            .read(|view| Ok(view.count_claimed()? == 0 && view.open_sessions(1)?.is_empty()))?
            && !self.project.has_pending()?;
        match is_quiet {
            true => self.leave().map(|()| DispatchRound::Standby),
            false => self.keep_place(),
        }
    }

    /// Renews the leader lease, and once per heartbeat does work that is not urgent.
    ///
    /// The two processes in reserve expire silent claims too. Only a process that watched a holder
    /// knows how long it was silent, so a successor must already be watching. There are two,
    /// because the first may fail, too, before it has taken over.
    fn keep_place(&mut self) -> Result<DispatchRound, EngineError> {
        let is_beaten = self.keep_seat()?;
        if is_beaten {
            let expired = self.project.expire_silent(&mut self.watch)?;
            self.expired.extend(expired);
        }
        if !self.leases[0].is_had() {
            return Ok(DispatchRound::Standby);
        }
        if is_beaten {
            self.save_snapshot()?;
        }
        Ok(DispatchRound::Leading)
    }

    /// Renews the leader lease of this process, or takes a better one that is free.
    ///
    /// Returns whether it sent a heartbeat just now. A process with a lease watches the lease
    /// before its own. All other processes watch the last lease, and need to know only that it has
    /// a holder.
    fn keep_seat(&mut self) -> Result<bool, EngineError> {
        let store = &self.project.store;
        let last = self.leases.len() - 1;
        let from = self.leases.iter().position(LeaderLease::is_had).unwrap_or(last);
        let (mut had, mut is_beaten) = (None, false);
        for place in (0..=from).rev() {
            let lease = &mut self.leases[place];
            match lease.keep(store)? {
                LeaseStanding::Not if had.is_some() || place == last && lease.is_taken() => break,
                // It is not known yet whether the lease has a holder, or this process lost it.
                LeaseStanding::Not => {}
                kept => {
                    is_beaten = kept == LeaseStanding::Beaten;
                    if let Some(after) = had.replace(place) {
                        self.leases[after].leave(store)?;
                    }
                }
            }
        }
        Ok(is_beaten)
    }

    /// Returns the claims that expired since the last call.
    pub fn take_expired(&mut self) -> Vec<ExpiredClaim> {
        std::mem::take(&mut self.expired)
    }

    /// Saves a snapshot when the log has grown enough since the last known one.
    fn save_snapshot(&mut self) -> Result<(), EngineError> {
        if matches!(self.project.kept, log_location::LogLocation::Here) {
            return Ok(());
        }
        let before = match self.snapshot {
            Some(before) => before,
            None => self.project.store.snapshot_head()?,
        };
        let head = self.project.store.glance(|view| Ok(view.totals()?.head))?;
        self.snapshot = Some(match head.saturating_sub(before) >= SNAPSHOT_EVERY {
            true => self.project.store.save_snapshot()?,
            false => before,
        });
        Ok(())
    }
}

impl Project {
    /// Creates tasks of due schedules, and runs pending reactions and workflows.
    ///
    /// It does nothing if another process dispatches, or below a hook or an agent of the project.
    pub fn tend(&self) -> Result<(), EngineError> {
        let is_due = self.has_schedule_due(now())?;
        let is_idle = !(is_due || self.has_pending()?);
        if is_idle || self.reactions_left().is_some() || self.has_dispatcher()? {
            return Ok(());
        }
        if is_due {
            self.fire_schedules(now())?;
        }
        self.dispatch()?;
        self.run_workflows()
    }

    /// Runs pending reactions, unless a dispatcher does, and adds their results to `done`.
    ///
    /// If another command runs them, it waits for that command.
    pub fn react_here(&self, done: &mut CommandOutcome) -> Result<(), EngineError> {
        if self.reactions_left().is_none() && self.has_dispatcher()? {
            return Ok(());
        }
        self.settle_reactions(done)
    }

    /// Whether a dispatcher is alive on any machine.
    ///
    /// It is alive until this machine has seen no new heartbeat for [`SEAT_LEASE`].
    pub fn has_dispatcher(&self) -> Result<bool, EngineError> {
        Ok(matches!(self.seat_holder()?, SeatHolder::Dispatcher))
    }

    /// Takes the leader lease for a command that runs hooks. Returns none if another process has
    /// it.
    pub(crate) fn take_seat(&self) -> Result<Option<LeaseHold>, EngineError> {
        let SeatHolder::Nobody(last) = self.seat_holder()? else { return Ok(None) };
        let mut lease =
            LeaderLease::new(HeldResource::Dispatcher, format!("{COMMAND} {}", fresh_id()));
        match lease.take(&self.store, last.as_ref())? {
            true => Ok(Some(LeaseHold::new(lease, self.store.clone())?)),
            false => Ok(None),
        }
    }

    /// Returns the holder of the dispatcher's leader lease, as far as this machine has seen.
    fn seat_holder(&self) -> Result<SeatHolder, EngineError> {
        if matches!(self.kept, log_location::LogLocation::Here) {
            return Ok(SeatHolder::Nobody(None));
        }
        let now = uptime_ms();
        let seen = self.store.recall(SEEN)?.and_then(|seen| {
            let (at, sign) = seen.split_once(' ')?;
            let at = at.parse::<u64>().ok()?;
            (at <= now).then(|| (now - at, sign.to_owned()))
        });
        // Short commands trust a recent observation, so that not each of them asks the store. A
        // command releases the lease as soon as its hooks have run, so its lease is checked each
        // time.
        let is_recent = |(age, sign): &(u64, String)| {
            *age < BEAT.as_millis() as u64 && !sign.starts_with(COMMAND)
        };
        if seen.as_ref().is_some_and(is_recent) {
            return Ok(SeatHolder::Dispatcher);
        }
        let Some(beat) = self.store.last_beat(&HeldResource::Dispatcher)? else {
            return Ok(SeatHolder::Nobody(None));
        };
        let HeartbeatRecord { holder, epoch, count } = &beat;
        let sign = format!("{holder} {epoch} {count}");
        match seen.filter(|(_, known)| *known == sign) {
            Some((age, _)) if age >= SEAT_LEASE.as_millis() as u64 => {
                return Ok(SeatHolder::Nobody(Some(beat)));
            }
            Some(_) => {}
            None => self.store.remember(SEEN, &format!("{now} {sign}"))?,
        }
        Ok(match sign.starts_with(COMMAND) {
            true => SeatHolder::Command,
            false => SeatHolder::Dispatcher,
        })
    }
}

/// The holder of the dispatcher's leader lease.
#[derive(Debug)]
enum SeatHolder {
    /// No live process. The record is the last heartbeat of a lost holder, if there was one.
    Nobody(Option<HeartbeatRecord>),
    /// A dispatcher process.
    Dispatcher,
    /// A command, while it runs hooks.
    Command,
}

/// A clock that also advances while the machine sleeps.
#[cfg(target_os = "linux")]
const SINCE_START: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_START: ClockId = ClockId::Monotonic;

/// Returns the milliseconds since the machine started.
///
/// All processes share this clock, and no user can set it.
fn uptime_ms() -> u64 {
    let time = rustix::time::clock_gettime(SINCE_START);
    time.tv_sec.unsigned_abs() * 1_000 + time.tv_nsec.unsigned_abs() / 1_000_000
}
