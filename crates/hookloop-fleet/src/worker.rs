//! A worker: claims ready tasks, runs their sessions, and does the housekeeping of its projects.
//!
//! One thread decides which tasks begin and end (`run`). Each session has a thread, and each project has a few more
//! for its housekeeping. They share only the log: no thread has to be alive for another's work to be safe.
//!
//! - `served_project`: a project that the worker serves, as its files are now
//! - `task_run`: one task from its claim to its end
//! - `housekeeping`: expired claims, reactions, merges
//! - `choose`: the next project

mod choose;
mod housekeeping;
mod served_project;
mod task_run;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::Scope as Threads;
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_core::event::FORMAT;
use hookloop_core::fleet::{
    FleetDirective, FleetDirectives, FleetScope, StandingDirective, WorkerName,
};
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::time::Timestamp;
use hookloop_engine::delivery::train::TrainReport;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_process::Cancel;

use crate::fleet::{Fleet, ServedSession, WorkerPresence, WorkerState};

pub use served_project::{WorkerProject, WorkerProjectParts, check_out};
pub use task_run::TaskRunEnd;

use housekeeping::Housekeeping;
use task_run::TaskRun;

/// Interval at which the worker checks its directives and looks for ready tasks.
const TICK: Duration = Duration::from_millis(200);
/// Interval of the worker's heartbeat while its state does not change.
///
/// It is several times shorter than [`GONE_AFTER_MS`](crate::fleet::GONE_AFTER_MS) and than the
/// interval at which other workers compare heartbeats.
const SHOW: Duration = Duration::from_secs(5);
/// Grace period of the processes that run while a session ends. Then they are killed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Pause after an error of the store.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Largest number of concurrent sessions of a worker.
pub const SLOTS_MAX: u32 = 256;

/// The settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    pub name: WorkerName,
    pub machine: String,
    pub version: String,
    /// Number of concurrent sessions.
    pub slots: u32,
    pub agent: String,
    pub model: Option<String>,
    pub permissions: Option<String>,
    /// Claims only tasks of these types. If the list is empty, the type does not matter.
    pub types: Vec<String>,
    /// Claims only tasks with one of these labels. If the list is empty, labels do not matter.
    pub labels: Vec<String>,
    /// Time without a heartbeat after which other workers may claim its tasks.
    pub lease: Duration,
    /// Time that running sessions have to finish when the worker drains.
    pub drain: Duration,
    /// Whether the worker merges submitted work.
    pub merges: bool,
    /// Whether the worker ends when no work is left.
    pub until_idle: bool,
}

/// An update that a running worker reports.
#[derive(Debug)]
pub enum WorkerUpdate<'a> {
    Claimed {
        project: &'a str,
        task: &'a TaskId,
        session: &'a SessionId,
        is_resumed: bool,
    },
    Ended {
        project: &'a str,
        task: &'a TaskId,
        session: &'a SessionId,
        end: &'a TaskRunEnd,
    },
    MergeResult {
        project: &'a str,
        arrival: &'a TrainReport,
    },
    /// A claim expired because its holder missed its heartbeats.
    Expired {
        project: &'a str,
        task: &'a TaskId,
        agent: &'a str,
    },
    State(WorkerState),
    /// A project became ineligible (`why` is set) or eligible again (`why` is `None`).
    Ineligible {
        project: &'a str,
        why: Option<&'a str>,
    },
    /// A step failed. The worker tries it again.
    Error {
        project: Option<&'a str>,
        why: String,
    },
}

/// The receiver of updates. Several threads call it concurrently.
pub type WorkerListener<'l> = &'l (dyn Fn(&WorkerUpdate<'_>) + Sync);

/// Switches that end a worker from outside.
#[derive(Clone, Debug)]
pub struct WorkerStop {
    /// The worker claims no more tasks and finishes its sessions.
    pub drain: Cancel,
    /// The worker ends its sessions and releases their tasks.
    pub now: Cancel,
}

/// An error that prevents a worker from starting.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(Debug)]
pub struct Worker {
    plan: WorkerPlan,
    served_projects: Vec<WorkerProject>,
    fleet: Fleet,
}

/// State that the threads of a running worker share.
struct WorkerLoop<'w> {
    worker: &'w Worker,
    listener: WorkerListener<'w>,
    quit: &'w WorkerStop,
    /// Triggered when all threads must end.
    over: Cancel,
    done: Sender<(SessionId, TaskId, usize, TaskRunEnd)>,
    started: Timestamp,
    /// One entry for each project.
    duties: Vec<Housekeeping>,
}

/// The state of the thread that decides which tasks begin and end.
struct DecisionQueue {
    task_runs: Vec<TaskRun>,
    orders: FleetDirectives,
    /// The time at which draining began.
    draining: Option<Instant>,
    state: WorkerState,
    shown: Option<Instant>,
    /// For each project: the number of the last claim from it.
    served: Vec<u64>,
    /// For each project: the end of its pause.
    rests: Vec<Option<Instant>>,
    /// For each project: the time at which a claim found no task.
    dry: Vec<Option<Instant>>,
    /// Whether the last check found too little budget for another turn.
    is_broke: bool,
    count: u64,
}

impl Worker {
    pub fn new(plan: WorkerPlan, served_projects: Vec<WorkerProject>, fleet: Fleet) -> Worker {
        Worker { plan, served_projects, fleet }
    }

    /// Runs the worker until it is ended, or with `until_idle` until no work is left.
    pub fn run(&self, quit: &WorkerStop, listener: WorkerListener<'_>) -> Result<(), WorkerError> {
        self.fleet.go_live()?;
        for place in &self.served_projects {
            place.project().store().go_live().map_err(EngineError::from)?;
        }
        let (done, ended) = mpsc::channel();
        let shift = WorkerLoop {
            worker: self,
            listener,
            quit,
            over: Cancel::new()?,
            done,
            started: now(),
            duties: self.served_projects.iter().map(|_| Housekeeping::default()).collect(),
        };
        std::thread::scope(|scope| {
            shift.begin_tending(scope);
            let worked = shift.work(scope, &ended);
            shift.over.trigger();
            worked
        })?;
        // Removes the worker from the list now, not when its heartbeat is overdue.
        self.fleet.leave(&self.plan.name)?;
        // The drain directive is carried out. It must not apply to a later worker with this name.
        let scope = FleetScope::Worker(self.plan.name.to_string());
        let orders = self.fleet.orders()?;
        let is_drain = |standing: &StandingDirective| {
            standing.set.scope == scope && standing.set.directive == FleetDirective::Drain
        };
        if orders.0.iter().any(is_drain) {
            self.fleet.clear(scope)?;
        }
        Ok(())
    }
}

impl<'w> WorkerLoop<'w> {
    fn tell(&self, told: &WorkerUpdate<'_>) {
        (self.listener)(told);
    }

    fn trouble(&self, place: usize, error: &dyn std::fmt::Display) {
        let project = Some(self.worker.served_projects[place].name());
        self.tell(&WorkerUpdate::Error { project, why: error.to_string() });
    }

    /// Returns the project with its current configuration, if the worker can run tasks of it.
    ///
    /// Reports when a project becomes eligible or ineligible.
    fn look(&self, place: usize) -> Option<Arc<Project>> {
        let served = &self.worker.served_projects[place];
        let (project, was_fit) = (served.name(), served.is_fit());
        match served.look(&self.worker.plan) {
            Ok(found) => {
                if !was_fit {
                    self.tell(&WorkerUpdate::Ineligible { project, why: None });
                }
                Some(found)
            }
            Err(news) => {
                if let Some(why) = &news {
                    self.tell(&WorkerUpdate::Ineligible { project, why: Some(why) });
                }
                None
            }
        }
    }

    fn work<'s, 'e>(
        &'e self,
        scope: &'s Threads<'s, 'e>,
        ended: &Receiver<(SessionId, TaskId, usize, TaskRunEnd)>,
    ) -> Result<(), WorkerError> {
        let served_projects = self.worker.served_projects.len();
        let mut queue = DecisionQueue {
            task_runs: Vec::new(),
            orders: FleetDirectives::default(),
            draining: None,
            state: WorkerState::Working,
            shown: None,
            served: vec![0; served_projects],
            rests: vec![None; served_projects],
            dry: vec![None; served_projects],
            is_broke: false,
            count: 0,
        };
        self.follow_directives(&mut queue);
        // A worker that is not on the list counts as lost.
        self.show(&mut queue);
        self.pick_up(scope, &mut queue);
        // Reports ineligible projects at the start, before the first task is ready.
        for place in 0..served_projects {
            self.look(place);
        }
        loop {
            self.follow_directives(&mut queue);
            let is_dry = queue.state == WorkerState::Working && self.fill(scope, &mut queue);
            self.show(&mut queue);
            let is_over = queue.draining.is_some()
                || self.worker.plan.until_idle && is_dry && self.is_idle(&queue);
            if is_over && queue.task_runs.is_empty() {
                return Ok(());
            }
            self.hear(&mut queue, ended);
        }
    }

    /// Waits until a session ends, at most for [`TICK`].
    fn hear(
        &self,
        queue: &mut DecisionQueue,
        ended: &Receiver<(SessionId, TaskId, usize, TaskRunEnd)>,
    ) {
        let mut next = ended.recv_timeout(TICK);
        while let Ok((session, task, place, end)) = next {
            queue.task_runs.retain(|run| run.session != session);
            queue.shown = None;
            let project = self.worker.served_projects[place].name();
            if let Some(rest) = end.rest() {
                queue.rests[place] = Some(Instant::now() + rest);
            }
            self.tell(&WorkerUpdate::Ended { project, task: &task, session: &session, end: &end });
            next = ended.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        }
    }

    /// Applies the directives of operators and the switches of this program.
    fn follow_directives(&self, queue: &mut DecisionQueue) {
        match self.worker.fleet.orders() {
            Ok(orders) => queue.orders = orders,
            // The directives that were read before stay in force.
            Err(error) => self.tell(&WorkerUpdate::Error { project: None, why: error.to_string() }),
        }
        let plan = &self.worker.plan;
        let name = plan.name.as_str();
        let order = queue.orders.of_worker(name).map(|standing| standing.set.directive);
        if queue.draining.is_none()
            && (self.quit.drain.is_triggered() || order == Some(FleetDirective::Drain))
        {
            queue.draining = Some(Instant::now());
        }
        let is_late = queue.draining.is_some_and(|since| since.elapsed() >= plan.drain);
        let ends_all = is_late || self.quit.now.is_triggered();
        if ends_all {
            queue.draining.get_or_insert_with(Instant::now);
        }
        for rest in &mut queue.rests {
            *rest = rest.filter(|until| Instant::now() < *until);
        }
        let directive_of = |place: &WorkerProject| {
            queue.orders.of(name, place.name()).map(|standing| standing.set.directive)
        };
        let directives: Vec<Option<FleetDirective>> =
            self.worker.served_projects.iter().map(directive_of).collect();
        for run in &mut queue.task_runs {
            let order = directives[run.place];
            run.rest.set(order == Some(FleetDirective::Pause));
            if ends_all
                || order == Some(FleetDirective::Stop)
                || run.is_lost(&self.worker.served_projects[run.place])
            {
                run.end();
            }
        }
        for (duty, order) in self.duties.iter().zip(directives) {
            duty.hold(order.is_some() || queue.draining.is_some());
            if ends_all || order == Some(FleetDirective::Stop) {
                duty.halt();
            }
        }
        let state = match (queue.draining, order) {
            (Some(_), _) => WorkerState::Draining,
            (None, Some(order)) => order.into(),
            (None, None) => WorkerState::Working,
        };
        if state != queue.state {
            queue.state = state;
            queue.shown = None;
            self.tell(&WorkerUpdate::State(state));
        }
    }

    fn show(&self, queue: &mut DecisionQueue) {
        if queue.shown.is_some_and(|shown| shown.elapsed() < SHOW) {
            return;
        }
        queue.shown = Some(Instant::now());
        let plan = &self.worker.plan;
        let running = queue.task_runs.iter().map(|run| ServedSession {
            project: self.worker.served_projects[run.place].name().to_owned(),
            task: run.task.to_string(),
            session: run.session.to_string(),
            since: run.since,
        });
        let presence = WorkerPresence {
            name: plan.name.clone(),
            machine: plan.machine.clone(),
            pid: std::process::id(),
            version: plan.version.clone(),
            format: FORMAT,
            state: queue.state,
            slots: plan.slots,
            agent: plan.agent.clone(),
            projects: self.worker.served_projects.iter().map(WorkerProject::served).collect(),
            running: running.collect(),
            started: self.started,
            seen: now(),
        };
        if let Err(error) = self.worker.fleet.show(&presence) {
            self.tell(&WorkerUpdate::Error { project: None, why: error.to_string() });
        }
    }

    /// Whether no session runs and no merge is pending.
    fn is_idle(&self, queue: &DecisionQueue) -> bool {
        let served_projects = 0..self.worker.served_projects.len();
        queue.task_runs.is_empty()
            && served_projects.into_iter().all(|place| !self.is_merging(place))
    }
}
