//! The fleet: all workers that share a store, seen from one of them.
//!
//! The fleet has its own log beside those of its projects. It holds the directives of operators, the budget, and
//! the cost events of every worker session. So the sum over all projects is the sum of that log. An idle worker
//! follows only the directives; it follows the whole log while a budget is set. Heartbeats show which workers are
//! present.
//!
//! - `ledger`: a session's part of the fleet's log
//! - `departed`: names of workers that have ended

mod departed;
mod ledger;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hookloop_config::clock::now;
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::paths::ProjectPaths;
use hookloop_core::authority::ControlledAction;
use hookloop_core::event::EventBody;
use hookloop_core::fleet::{
    BudgetSet, FleetDirective, FleetDirectiveCleared, FleetDirectiveSet, FleetDirectives,
    FleetScope, RateLimitReported, WorkerName,
};
use hookloop_core::id::Subject;
use hookloop_core::shared_budget::{ReservationAnswer, SharedBudget};
use hookloop_core::time::Timestamp;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{self, AfterLoss, LaunchContext, LogLocation};
use hookloop_engine::project::Project;
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
pub(crate) use ledger::FleetLedger;
use serde::{Deserialize, Serialize};

/// Time without a heartbeat after which lists show a worker as lost.
///
/// Its tasks are not released by this: the workers that observed its heartbeats decide that.
pub const GONE_AFTER_MS: i64 = 30_000;

/// The log of a fleet. Clones share it.
#[derive(Clone, Debug)]
pub struct Fleet {
    log: Arc<Project>,
    /// The directives alone, for a worker on a shared store. Following the whole log would deliver every event of
    /// every worker to every worker.
    directives: Arc<OnceLock<Project>>,
}

/// The state that a worker publishes with its heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerPresence {
    pub name: WorkerName,
    pub machine: String,
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Version of the log format. A worker with a lower one does not know all events of the others.
    pub format: u32,
    pub state: WorkerState,
    /// Largest number of concurrent sessions.
    pub slots: u32,
    pub agent: String,
    pub projects: Vec<ServedProject>,
    pub running: Vec<ServedSession>,
    pub started: Timestamp,
    /// The time of the heartbeat, by the worker's own clock.
    pub seen: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    Working,
    Draining,
    Paused,
    Stopped,
    /// A state that only a newer version knows.
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

impl From<FleetDirective> for WorkerState {
    fn from(order: FleetDirective) -> WorkerState {
        match order {
            FleetDirective::Drain => WorkerState::Draining,
            FleetDirective::Pause => WorkerState::Paused,
            FleetDirective::Stop => WorkerState::Stopped,
        }
    }
}

/// A project that a worker serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedProject {
    pub project: String,
    /// The reason why the worker claims no task of the project, if there is one.
    #[serde(alias = "unfit", default, skip_serializing_if = "Option::is_none")]
    pub ineligible: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedSession {
    pub project: String,
    pub task: String,
    pub session: String,
    pub since: Timestamp,
}

impl Fleet {
    /// Opens the fleet that shares the store of a project.
    pub fn beside(
        project: &Project,
        state_home: &Path,
        surroundings: &LaunchContext,
    ) -> Result<Fleet, EngineError> {
        Fleet::open(project, state_home, surroundings, AfterLoss::Refuse)
    }

    /// Opens the fleet even if events of its log are missing, to check the log or to accept the
    /// loss.
    pub fn to_check(
        project: &Project,
        state_home: &Path,
        surroundings: &LaunchContext,
        after_loss: AfterLoss,
    ) -> Result<Fleet, EngineError> {
        Fleet::open(project, state_home, surroundings, after_loss)
    }

    fn open(
        project: &Project,
        state_home: &Path,
        surroundings: &LaunchContext,
        after_loss: AfterLoss,
    ) -> Result<Fleet, EngineError> {
        let store = match project.kept() {
            LogLocation::Here => "sqlite",
            LogLocation::Nats { urls, .. } => urls,
        };
        let place = ProjectPaths::of_fleet(state_home, store);
        let user = surroundings.user()?;
        let store =
            log_location::open_fleet(project.kept(), &place, &user, surroundings, after_loss)?;
        Ok(Fleet::over(Project::new(store, EffectiveConfig::default(), project.caller())))
    }

    /// Creates the fleet of a given log.
    pub fn over(log: Project) -> Fleet {
        Fleet { log: Arc::new(log), directives: Arc::default() }
    }

    pub fn log(&self) -> &Project {
        &self.log
    }

    /// Starts to follow the directives. The ledger is followed only while a budget needs it.
    pub fn go_live(&self) -> Result<(), EngineError> {
        if self.directives.get().is_some() {
            return Ok(());
        }
        let Some(store) = self.log.store().of_subject(&Subject::Fleet)? else {
            return Ok(self.log.store().go_live()?);
        };
        store.go_live()?;
        // Another thread may have set it first. One follower is enough.
        let _ =
            self.directives.set(Project::new(store, EffectiveConfig::default(), self.log.caller()));
        Ok(())
    }

    /// Returns the log that holds the directives, as current as this process needs them.
    fn directives(&self) -> &Project {
        self.directives.get().unwrap_or(&self.log)
    }

    /// Returns the whole log, with the usage of all sessions.
    fn ledger(&self) -> Result<&Project, EngineError> {
        if self.directives.get().is_some() {
            self.log.store().go_live()?;
        }
        Ok(&self.log)
    }

    pub fn orders(&self) -> Result<FleetDirectives, EngineError> {
        self.directives().read(|view| view.orders())
    }

    pub fn order(&self, ordered: FleetDirectiveSet) -> Result<(), EngineError> {
        self.log.authorize(ControlledAction::DirectFleet)?;
        // A directive for a misspelt name would reach no worker, and the intended worker would
        // continue.
        if let FleetScope::Worker(name) = &ordered.scope {
            self.check_known(name)?;
        }
        self.say(EventBody::FleetDirectiveSet(ordered))
    }

    /// Clears the directive of a scope. Returns whether there was one.
    pub fn lift(&self, scope: FleetScope) -> Result<bool, EngineError> {
        self.log.authorize(ControlledAction::DirectFleet)?;
        self.clear(scope)
    }

    /// Clears a directive without a check of permissions.
    ///
    /// A worker clears the directive that it has carried out.
    pub fn clear(&self, scope: FleetScope) -> Result<bool, EngineError> {
        let is_there = self.orders()?.0.iter().any(|standing| standing.set.scope == scope);
        if is_there {
            self.say(EventBody::FleetDirectiveCleared(FleetDirectiveCleared { scope }))?;
        }
        Ok(is_there)
    }

    pub fn budget(&self) -> Result<SharedBudget, EngineError> {
        self.directives().read(|view| view.budget())
    }

    pub fn set_budget(&self, budget: SharedBudget) -> Result<(), EngineError> {
        self.log.authorize(ControlledAction::SetFleetBudget)?;
        self.say(EventBody::FleetBudgetSet(BudgetSet { budget }))
    }

    /// Returns whether the budget covers one more turn, with all reservations counted as spent.
    pub fn may_begin(&self) -> Result<ReservationAnswer, EngineError> {
        let budget = self.budget()?;
        if budget.is_none() {
            return Ok(ReservationAnswer::Granted);
        }
        let all = hookloop_core::shared_budget::Amount::ALL;
        self.ledger()?.read(|view| {
            Ok(budget.reserve(&view.budget_standing(now().into())?, budget.amount(all)))
        })
    }

    /// Records a rate limit of a provider or forge until `until`.
    pub fn slow_down(&self, what: &str, until: Timestamp) -> Result<(), EngineError> {
        let known = self.directives().read(|view| view.slowed())?;
        let is_known = |slowed: &RateLimitReported| slowed.source == what && slowed.until >= until;
        match known.iter().any(is_known) {
            true => Ok(()),
            false => self
                .say(EventBody::RateLimited(RateLimitReported { source: what.to_owned(), until })),
        }
    }

    /// Returns the rate limits that apply now.
    pub fn slowed(&self) -> Result<Vec<RateLimitReported>, EngineError> {
        let now = now();
        let mut slowed = self.directives().read(|view| view.slowed())?;
        slowed.retain(|slowed| slowed.until > now);
        Ok(slowed)
    }

    /// Publishes the state of a worker with a heartbeat.
    pub fn show(&self, presence: &WorkerPresence) -> Result<(), EngineError> {
        let told = serde_json::to_string(presence).unwrap_or_default();
        Ok(self.log.store().beat(&HeldResource::Worker(presence.name.clone()), &told, 0)?)
    }

    /// Returns the workers with a heartbeat, by name. Unreadable entries are left out.
    pub fn workers(&self) -> Result<Vec<WorkerPresence>, EngineError> {
        Ok(self.signs()?.into_iter().map(|(presence, _)| presence).collect())
    }

    /// Returns the workers by name, each with a counter that changes with every heartbeat.
    pub fn signs(&self) -> Result<Vec<(WorkerPresence, u64)>, EngineError> {
        let beats = self.log.store().workers()?;
        // Other signs are the notes of workers that have left.
        let read =
            |beat: &HeartbeatRecord| Some((serde_json::from_str(&beat.holder).ok()?, beat.count));
        let mut found: Vec<(WorkerPresence, u64)> = beats.iter().filter_map(read).collect();
        found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(found)
    }

    fn say(&self, body: EventBody) -> Result<(), EngineError> {
        self.directives().append(&Subject::Fleet, body)
    }
}
