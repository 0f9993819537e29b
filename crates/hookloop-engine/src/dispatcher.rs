//! One dispatcher at a time for a project that many machines share.
//!
//! Whoever dispatches, each action takes effect once: the cursor's version sees to that, not this.
//! That there is one is a matter of economy, since rivals would waste each other's batches. So its
//! place is held by signs of life alone, and taken over when an observer has seen none for a while.

use std::time::{Duration, Instant};

use hookloop_store::log::Seq;
use hookloop_store::pulse::{Beat, Held, Pulse};

use crate::kept::Kept;
use crate::lease::{Sign, Watch};
use crate::project::{Done, EngineError, Project, fresh_id, now};

/// A dispatcher that shows no life for so long has lost its place.
pub const DISPATCHER_LEASE: Duration = Duration::from_secs(5);
/// How often it shows life, and looks for claims whose holders show none.
const BEAT: Duration = Duration::from_secs(1);
/// Events after which a new snapshot is worth its bytes.
const SNAPSHOT_EVERY: Seq = 50_000;
/// Under this name a machine remembers the dispatcher's last sign of life, and when it saw it.
const SEEN: &str = "dispatcher";

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
pub struct Dispatcher<'p> {
    project: &'p Project,
    /// Unlike any other, on any machine.
    name: String,
    watch: Watch,
    /// Since when it has the place, and when it last showed life.
    leads: Option<(u64, Instant)>,
    known: Seq,
    snapshot: Option<Seq>,
}

impl<'p> Dispatcher<'p> {
    /// Starts to follow the log.
    pub fn new(project: &'p Project, machine: &str) -> Result<Dispatcher<'p>, EngineError> {
        project.store.go_live()?;
        let name = format!("{machine} {}", fresh_id());
        let watch = Watch::default();
        Ok(Dispatcher { project, name, watch, leads: None, known: 0, snapshot: None })
    }

    /// Does what there is to do, or waits in case it becomes its turn; then waits for events, for a
    /// moment.
    pub fn round(&mut self) -> Result<Round, EngineError> {
        let round = match self.keep_place()? {
            false => Round::Standby,
            true => {
                self.project.fire_schedules(now())?;
                self.project.dispatch()?;
                self.project.run_workflows()?;
                Round::Leading
            }
        };
        self.known = self.project.store.wait_for_news(self.known, BEAT)?;
        Ok(round)
    }

    /// Whether the place is this dispatcher's; once a beat it shows life and does what is not urgent.
    fn keep_place(&mut self) -> Result<bool, EngineError> {
        let now = Instant::now();
        if let Some((_, beaten)) = self.leads
            && now.duration_since(beaten) < BEAT
        {
            return Ok(true);
        }
        let last = self.project.store.last_beat(&Held::Dispatcher)?;
        let epoch = match (self.leads, last) {
            (Some((epoch, _)), Some(beat)) if beat.holder == self.name => epoch,
            (Some((epoch, _)), None) => epoch,
            (_, last) => {
                self.leads = None;
                let epoch = last.as_ref().map_or(0, |beat| beat.epoch);
                if last.is_some() {
                    let sign = Sign { epoch, beat: last };
                    let sight = self.watch.look(&Held::Dispatcher, sign, now);
                    if !sight.is_over(DISPATCHER_LEASE) {
                        return Ok(false);
                    }
                }
                epoch + 1
            }
        };
        self.project.store.beat(&Held::Dispatcher, &self.name, epoch)?;
        self.leads = Some((epoch, now));
        self.project.expire_silent(&mut self.watch)?;
        self.save_snapshot()?;
        Ok(true)
    }

    /// Saves a snapshot when the log has grown enough since the last one that this process knows of.
    fn save_snapshot(&mut self) -> Result<(), EngineError> {
        if matches!(self.project.kept, Kept::Here) {
            return Ok(());
        }
        let before = match self.snapshot {
            Some(before) => before,
            None => self.project.store.snapshot_head()?,
        };
        self.snapshot = Some(match self.known.saturating_sub(before) >= SNAPSHOT_EVERY {
            true => self.project.store.save_snapshot()?,
            false => before,
        });
        Ok(())
    }
}

impl Project {
    /// Makes the tasks of schedules that are due, and does the reactions and workflows that are left, unless a
    /// dispatcher is there to do that.
    pub fn tend(&self) -> Result<(), EngineError> {
        let is_due = self.has_schedule_due(now())?;
        if !(is_due || self.has_pending()?) || self.has_dispatcher()? {
            return Ok(());
        }
        if is_due {
            self.fire_schedules(now())?;
        }
        self.dispatch()?;
        self.run_workflows()
    }

    /// Does the reactions that are left, unless a dispatcher is there to do them; adds to `done` what
    /// came of them.
    pub fn react_here(&self, done: &mut Done) -> Result<(), EngineError> {
        match self.has_dispatcher()? {
            true => Ok(()),
            false => self.dispatch_noting(done),
        }
    }

    /// Whether a dispatcher elsewhere was seen alive: its last sign of life is one that this machine
    /// has not known for longer than [`DISPATCHER_LEASE`].
    pub fn has_dispatcher(&self) -> Result<bool, EngineError> {
        if matches!(self.kept, Kept::Here) {
            return Ok(false);
        }
        let now = uptime_ms();
        let seen = self.store.recall(SEEN)?.and_then(|seen| {
            let (at, sign) = seen.split_once(' ')?;
            let at = at.parse::<u64>().ok()?;
            (at <= now).then(|| (now - at, sign.to_owned()))
        });
        // It is not asked for by every one of many short commands.
        if seen.as_ref().is_some_and(|(age, _)| *age < BEAT.as_millis() as u64) {
            return Ok(true);
        }
        let Some(Beat { holder, epoch, count }) = self.store.last_beat(&Held::Dispatcher)? else {
            return Ok(false);
        };
        let sign = format!("{holder} {epoch} {count}");
        match seen.filter(|(_, known)| *known == sign) {
            Some((age, _)) => Ok(age < DISPATCHER_LEASE.as_millis() as u64),
            None => {
                self.store.remember(SEEN, &format!("{now} {sign}"))?;
                Ok(true)
            }
        }
    }
}

/// Milliseconds since the machine was started: the one clock that its processes share and nobody sets.
fn uptime_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000 + time.tv_nsec.unsigned_abs() / 1_000_000
}
