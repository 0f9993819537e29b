//! The fleet: all workers that share a store, seen from one of them.
//!
//! It has a log of its own beside those of its projects. In it are the orders of those who run it and what it may
//! spend, and for every session of a worker the part of its events that is about money: the sum over all projects is
//! the sum of that log. Who is there is told by signs of life.
//!
//! - `books`: a session's part of the fleet's log
//! - `departed`: names of workers that have ended

mod books;
mod departed;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hookloop_core::authority::ControlledAction;
use hookloop_core::event::EventBody;
use hookloop_core::fleet::{
    BudgetSet, FleetOrder, FleetOrderLifted, FleetOrdered, FleetOrders, FleetScope,
    RateLimitReported, WorkerName,
};
use hookloop_core::id::Subject;
use hookloop_core::purse::{Purse, ReservationAnswer};
use hookloop_core::time::Timestamp;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use serde::{Deserialize, Serialize};

pub use books::Books;

use hookloop_config::clock::now;
use hookloop_config::effective::Rules;
use hookloop_config::paths::Place;
use hookloop_engine::error::EngineError;
use hookloop_engine::kept::{self, AfterLoss, Kept, Surroundings};
use hookloop_engine::project::Project;

/// A worker that has shown no life for so long is gone, as far as a list is concerned. Whether its tasks are taken
/// is decided by those who watched it.
pub const GONE_AFTER_MS: i64 = 30_000;

/// The log of a fleet. Clones share it.
#[derive(Clone, Debug)]
pub struct Fleet {
    log: Arc<Project>,
    /// The directives alone, for a worker on a shared store. Following the whole log would deliver every event of
    /// every worker to every worker.
    directives: Arc<OnceLock<Project>>,
}

/// What a worker tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    pub name: WorkerName,
    pub machine: String,
    pub pid: u32,
    /// Of the program.
    pub version: String,
    /// Of the log's format: who has a lower one does not know all that others write.
    pub format: u32,
    pub state: WorkerState,
    /// Sessions that it performs at once, at most.
    pub slots: u32,
    pub agent: String,
    pub projects: Vec<Served>,
    pub running: Vec<Running>,
    pub started: Timestamp,
    /// By its own clock.
    pub seen: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    Working,
    Draining,
    Paused,
    Stopped,
    /// One that a newer version has.
    #[serde(other)]
    Other,
}

impl WorkerState {
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Working => "working",
            WorkerState::Draining => "draining",
            WorkerState::Paused => "paused",
            WorkerState::Stopped => "stopped",
            WorkerState::Other => "other",
        }
    }
}

impl From<FleetOrder> for WorkerState {
    fn from(order: FleetOrder) -> WorkerState {
        match order {
            FleetOrder::Drain => WorkerState::Draining,
            FleetOrder::Pause => WorkerState::Paused,
            FleetOrder::Stop => WorkerState::Stopped,
        }
    }
}

/// A project of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    pub project: String,
    /// Why nothing is taken of it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub project: String,
    pub task: String,
    pub session: String,
    pub since: Timestamp,
}

impl Fleet {
    /// The fleet that shares the store of a project.
    pub fn beside(
        project: &Project,
        state_home: &Path,
        surroundings: &Surroundings,
    ) -> Result<Fleet, EngineError> {
        Fleet::open(project, state_home, surroundings, AfterLoss::Refuse)
    }

    /// The same fleet, also if events of its log are gone: to check its log, and to accept that.
    pub fn to_check(
        project: &Project,
        state_home: &Path,
        surroundings: &Surroundings,
        after_loss: AfterLoss,
    ) -> Result<Fleet, EngineError> {
        Fleet::open(project, state_home, surroundings, after_loss)
    }

    fn open(
        project: &Project,
        state_home: &Path,
        surroundings: &Surroundings,
        after_loss: AfterLoss,
    ) -> Result<Fleet, EngineError> {
        let store = match project.kept() {
            Kept::Here => "sqlite",
            Kept::Nats { urls, .. } => urls,
        };
        let place = Place::of_fleet(state_home, store);
        let user = surroundings.user()?;
        let store = kept::open_fleet(project.kept(), &place, &user, surroundings, after_loss)?;
        Ok(Fleet::over(Project::new(store, Rules::default(), project.caller())))
    }

    /// The fleet whose log this is.
    pub fn over(log: Project) -> Fleet {
        Fleet { log: Arc::new(log), directives: Arc::default() }
    }

    pub fn log(&self) -> &Project {
        &self.log
    }

    /// Follows the directives from now on. The ledger of sessions is followed only while a budget needs it.
    pub fn go_live(&self) -> Result<(), EngineError> {
        if self.directives.get().is_some() {
            return Ok(());
        }
        let Some(store) = self.log.store().of_subject(&Subject::Fleet)? else {
            return Ok(self.log.store().go_live()?);
        };
        store.go_live()?;
        // Another thread may have been first; one follower is enough.
        let _ = self.directives.set(Project::new(store, Rules::default(), self.log.caller()));
        Ok(())
    }

    /// The log that has the directives, as fresh as this process needs them.
    fn directives(&self) -> &Project {
        self.directives.get().unwrap_or(&self.log)
    }

    /// The whole log, for a process that has to know what all sessions use.
    fn ledger(&self) -> Result<&Project, EngineError> {
        if self.directives.get().is_some() {
            self.log.store().go_live()?;
        }
        Ok(&self.log)
    }

    pub fn orders(&self) -> Result<FleetOrders, EngineError> {
        self.directives().read(|view| view.orders())
    }

    pub fn order(&self, ordered: FleetOrdered) -> Result<(), EngineError> {
        self.log.authorize(ControlledAction::DirectFleet)?;
        // An order for a misspelt name would concern no worker, and the worker that is meant would go on.
        if let FleetScope::Worker(name) = &ordered.scope {
            self.check_known(name)?;
        }
        self.say(EventBody::FleetOrdered(ordered))
    }

    /// Takes back what was ordered of a scope; answers whether there was anything.
    pub fn lift(&self, scope: FleetScope) -> Result<bool, EngineError> {
        self.log.authorize(ControlledAction::DirectFleet)?;
        self.clear(scope)
    }

    /// A directive to a worker ends with the worker that has carried it out.
    pub fn clear(&self, scope: FleetScope) -> Result<bool, EngineError> {
        let is_there = self.orders()?.0.iter().any(|standing| standing.ordered.scope == scope);
        if is_there {
            self.say(EventBody::FleetOrderLifted(FleetOrderLifted { scope }))?;
        }
        Ok(is_there)
    }

    pub fn budget(&self) -> Result<Purse, EngineError> {
        self.directives().read(|view| view.budget())
    }

    pub fn set_budget(&self, purse: Purse) -> Result<(), EngineError> {
        self.log.authorize(ControlledAction::SetFleetBudget)?;
        self.say(EventBody::FleetBudgetSet(BudgetSet { purse }))
    }

    /// Whether there is enough for one more turn, if everybody used no more than is set aside.
    pub fn may_begin(&self) -> Result<ReservationAnswer, EngineError> {
        let purse = self.budget()?;
        if purse.is_none() {
            return Ok(ReservationAnswer::Granted);
        }
        let all = hookloop_core::purse::Amount::ALL;
        self.ledger()?.read(|view| Ok(purse.reserve(&view.purse(now().into())?, purse.wish(all))))
    }

    /// Somebody that many ask wants to be left alone until then.
    pub fn slow_down(&self, what: &str, until: Timestamp) -> Result<(), EngineError> {
        let known = self.directives().read(|view| view.slowed())?;
        let is_known = |slowed: &RateLimitReported| slowed.what == what && slowed.until >= until;
        match known.iter().any(is_known) {
            true => Ok(()),
            false => {
                self.say(EventBody::Slowed(RateLimitReported { what: what.to_owned(), until }))
            }
        }
    }

    /// Those who want to be left alone now.
    pub fn slowed(&self) -> Result<Vec<RateLimitReported>, EngineError> {
        let now = now();
        let mut slowed = self.directives().read(|view| view.slowed())?;
        slowed.retain(|slowed| slowed.until > now);
        Ok(slowed)
    }

    /// Shows that a worker is there, and what it does.
    pub fn show(&self, presence: &Presence) -> Result<(), EngineError> {
        let told = serde_json::to_string(presence).unwrap_or_default();
        Ok(self.log.store().beat(&HeldResource::Worker(presence.name.clone()), &told, 0)?)
    }

    /// The workers that were heard of, by name. One that says what this program does not understand is left out.
    pub fn workers(&self) -> Result<Vec<Presence>, EngineError> {
        Ok(self.signs()?.into_iter().map(|(presence, _)| presence).collect())
    }

    /// The same, each with a number that is another one after every sign of life.
    pub fn signs(&self) -> Result<Vec<(Presence, u64)>, EngineError> {
        let beats = self.log.store().workers()?;
        // Other signs are the notes of workers that have left.
        let read =
            |beat: &HeartbeatRecord| Some((serde_json::from_str(&beat.holder).ok()?, beat.count));
        let mut found: Vec<(Presence, u64)> = beats.iter().filter_map(read).collect();
        found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(found)
    }

    fn say(&self, body: EventBody) -> Result<(), EngineError> {
        self.directives().append(&Subject::Fleet, body)
    }
}
