//! One dispatcher at a time for a project that many machines share.
//!
//! The cursor's version makes each action take effect once, whichever process dispatches. A single dispatcher only
//! saves work: two would waste each other's batches. So its seat is held by heartbeats alone, and another process
//! takes it after it has seen none for the whole lease.
//!
//! An observer has to watch a whole lease itself. Therefore a second process watches the dispatcher, a third
//! watches the second, and all others watch the third.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::log::Seq;
use rustix::time::ClockId;

use crate::command_outcome::Done;
use crate::error::EngineError;
use crate::kept;
use crate::lease::{Expired, Watch};
use crate::project::Project;
use crate::seat::{BEAT, Kept, SEAT_LEASE, Seat, SeatHold};

/// Events after which a new snapshot is worth its bytes.
const SNAPSHOT_EVERY: Seq = 50_000;
/// Under this name a machine remembers the dispatcher's last sign of life, and when it saw it.
const SEEN: &str = "dispatcher";
/// How the names of commands begin that have the dispatcher's seat; no machine is called so.
const COMMAND: &str = "_command";

/// What one round of a dispatcher came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// It holds the place and has done what there was to do.
    Leading,
    /// Another one does.
    Standby,
}

/// A process that stays to dispatch.
#[derive(Debug)]
pub struct Dispatcher {
    project: Project,
    /// From that of the dispatcher itself to the last of those in reserve.
    seats: [Seat; 3],
    watch: Watch,
    expired: Vec<Expired>,
    known: Seq,
    snapshot: Option<Seq>,
}

impl Dispatcher {
    /// Starts to follow the log.
    pub fn new(project: &Project, machine: &str) -> Result<Dispatcher, EngineError> {
        let project = project.clone();
        project.store.go_live()?;
        let name = format!("{machine} {}", fresh_id());
        let seats = [
            Seat::new(HeldResource::Dispatcher, name.clone()),
            Seat::new(HeldResource::Second, name.clone()),
            Seat::new(HeldResource::Third, name).in_reserve(),
        ];
        let (watch, expired) = (Watch::default(), Vec::new());
        Ok(Dispatcher { project, seats, watch, expired, known: 0, snapshot: None })
    }

    /// Does what there is to do, or waits in case it becomes its turn; then waits for events, for a
    /// moment.
    pub fn round(&mut self) -> Result<Round, EngineError> {
        let round = self.look()?;
        self.known = self.project.store.wait_for_news(self.known, BEAT)?;
        Ok(round)
    }

    fn look(&mut self) -> Result<Round, EngineError> {
        let round = self.keep_place()?;
        if round == Round::Leading {
            self.project.fire_schedules(now())?;
            if self.project.has_pending()? {
                let project = &self.project;
                // A hook may run for longer than the seat's lease.
                self.seats[0].keep_while(&project.store, || project.lead_reactions())?;
            }
        }
        Ok(round)
    }

    /// From now on it goes by what the project's files say now.
    pub fn renew(&mut self, project: Project) {
        self.project = project;
    }

    /// Leaves its place to others.
    pub fn leave(&mut self) -> Result<(), EngineError> {
        self.seats.iter_mut().try_for_each(|seat| seat.leave(&self.project.store))
    }

    /// Keeps its place where something is under way; elsewhere it leaves it: a project in which nothing happens costs
    /// nobody anything.
    pub fn stand_by(&mut self) -> Result<Round, EngineError> {
        let is_quiet = self
            .project
            .read(|view| Ok(view.count_claimed()? == 0 && view.open_sessions(1)?.is_empty()))?
            && !self.project.has_pending()?;
        match is_quiet {
            true => self.leave().map(|()| Round::Standby),
            false => self.keep_place(),
        }
    }

    /// Whether the dispatcher's place is this one's; once a beat it does what is not urgent. Those who would be next
    /// watch already: how long a holder was silent is known to none but those who watched. They are two, because
    /// whatever befalls the first may befall another before its place is taken.
    fn keep_place(&mut self) -> Result<Round, EngineError> {
        let is_beaten = self.keep_seat()?;
        if is_beaten {
            let expired = self.project.expire_silent(&mut self.watch)?;
            self.expired.extend(expired);
        }
        if !self.seats[0].is_had() {
            return Ok(Round::Standby);
        }
        if is_beaten {
            self.save_snapshot()?;
        }
        Ok(Round::Leading)
    }

    /// Keeps the seat that it has, or takes one before it that nobody has; answers whether it showed life just now.
    /// Who has a seat looks at the one before it, and all who have none at the last: for them it is enough that
    /// somebody is there.
    fn keep_seat(&mut self) -> Result<bool, EngineError> {
        let store = &self.project.store;
        let last = self.seats.len() - 1;
        let from = self.seats.iter().position(Seat::is_had).unwrap_or(last);
        let (mut had, mut is_beaten) = (None, false);
        for place in (0..=from).rev() {
            let seat = &mut self.seats[place];
            match seat.keep(store)? {
                Kept::Not if had.is_some() || place == last && seat.is_taken() => break,
                // Whether somebody is there is not known yet, or the seat was lost.
                Kept::Not => {}
                kept => {
                    is_beaten = kept == Kept::Beaten;
                    if let Some(after) = had.replace(place) {
                        self.seats[after].leave(store)?;
                    }
                }
            }
        }
        Ok(is_beaten)
    }

    /// Claims that were ended since the last time that this was asked.
    pub fn take_expired(&mut self) -> Vec<Expired> {
        std::mem::take(&mut self.expired)
    }

    /// Saves a snapshot when the log has grown enough since the last one that this process knows of.
    fn save_snapshot(&mut self) -> Result<(), EngineError> {
        if matches!(self.project.kept, kept::Kept::Here) {
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
    /// Makes the tasks of schedules that are due, and does the reactions and workflows that are left, unless another
    /// process does. A process below a hook or an agent of the project does nothing.
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

    /// Does the reactions that are left, unless a dispatcher is there to do them, or waits for the command that does;
    /// adds to `done` what came of them.
    pub fn react_here(&self, done: &mut Done) -> Result<(), EngineError> {
        if self.reactions_left().is_none() && self.has_dispatcher()? {
            return Ok(());
        }
        self.settle_reactions(done)
    }

    /// Whether a dispatcher elsewhere was seen alive: its last sign of life is one that this machine
    /// has not known for longer than [`SEAT_LEASE`].
    pub fn has_dispatcher(&self) -> Result<bool, EngineError> {
        Ok(matches!(self.seat_holder()?, SeatHolder::Dispatcher))
    }

    /// Takes the dispatcher's seat for a command that runs hooks; none if it is taken.
    pub(crate) fn take_seat(&self) -> Result<Option<SeatHold>, EngineError> {
        let SeatHolder::Nobody(last) = self.seat_holder()? else { return Ok(None) };
        let mut seat = Seat::new(HeldResource::Dispatcher, format!("{COMMAND} {}", fresh_id()));
        match seat.take(&self.store, last.as_ref())? {
            true => Ok(Some(SeatHold::new(seat, self.store.clone())?)),
            false => Ok(None),
        }
    }

    /// What has the dispatcher's seat, as far as this machine has seen.
    fn seat_holder(&self) -> Result<SeatHolder, EngineError> {
        if matches!(self.kept, kept::Kept::Here) {
            return Ok(SeatHolder::Nobody(None));
        }
        let now = uptime_ms();
        let seen = self.store.recall(SEEN)?.and_then(|seen| {
            let (at, sign) = seen.split_once(' ')?;
            let at = at.parse::<u64>().ok()?;
            (at <= now).then(|| (now - at, sign.to_owned()))
        });
        // It is not asked for by every one of many short commands. A command leaves the seat as soon as its hooks
        // have run, so that is asked each time.
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

/// What has the dispatcher's seat.
#[derive(Debug)]
enum SeatHolder {
    /// Nothing that lives: the last heartbeat is that of a process that is gone, if there is one.
    Nobody(Option<HeartbeatRecord>),
    /// A process that stays.
    Dispatcher,
    /// A command, while it runs hooks.
    Command,
}

/// It goes on while the machine sleeps.
#[cfg(target_os = "linux")]
const SINCE_START: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_START: ClockId = ClockId::Monotonic;

/// Milliseconds since the machine was started: the one clock that its processes share and nobody sets.
fn uptime_ms() -> u64 {
    let time = rustix::time::clock_gettime(SINCE_START);
    time.tv_sec.unsigned_abs() * 1_000 + time.tv_nsec.unsigned_abs() / 1_000_000
}
