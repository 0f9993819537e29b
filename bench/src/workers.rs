//! Light workers: the same load for the servers as real workers, without agents.
//!
//! Each has its own connections, followers and views, and makes the same product calls as a real
//! worker: it follows its project and the fleet, publishes its status, runs for the dispatcher's
//! leader lease, claims, sends heartbeats and completes. It runs no session: it holds a task for a
//! while and does nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::FORMAT;
use hookloop_core::id::{ProjectName, Subject, TaskId};
use hookloop_core::task::{TaskOutcome, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_engine::claim::{ClaimRequest, WantedTask};
use hookloop_engine::dispatcher::{DispatchRound, Dispatcher};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_fleet::fleet::{Fleet, ServedProject, ServedSession, WorkerPresence, WorkerState};
use hookloop_store::heartbeat::{HeartbeatRecord, HeartbeatStore, HeldResource};
use hookloop_store::jetstream::{JetStreamLog, NatsLinks, NatsOptions};
use hookloop_store::log::{
    AppendError, AppendOutcome, EventFollower, EventLog, LogError, NewEvent, Seq, StoredEvent,
};
use hookloop_store::snapshot::{SnapshotStore, ViewSnapshot};
use hookloop_store::store::Store;

/// Intervals of `hookloop worker`.
const TICK: Duration = Duration::from_millis(200);
const SHOW: Duration = Duration::from_secs(5);
const ROUND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(90);
const BEATS_PER_LEASE: u32 = 5;
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Number of workers that start at the same time.
const AT_ONCE: usize = 16;
/// Stack size of a worker's thread, which needs little.
const STACK: usize = 512 * 1024;

/// Value of `hold_ms` at which workers claim no task; other values are the hold time in
/// milliseconds.
const REST: u64 = u64::MAX;

/// State that all workers of a measurement share.
#[derive(Debug, Default)]
pub struct Floor {
    is_over: AtomicBool,
    hold_ms: AtomicU64,
    pub asked: Asked,
    claims: Mutex<Vec<Taken>>,
}

/// A claim that succeeded.
#[derive(Clone, Debug)]
pub struct Taken {
    pub task: TaskId,
    pub took: Duration,
    pub at: Instant,
}

/// Requests of the workers to the servers, by kind.
#[derive(Debug, Default)]
pub struct Asked {
    pub appends: AtomicU64,
    pub conflicts: AtomicU64,
    /// Events delivered to followers.
    pub delivered: AtomicU64,
    pub shown: AtomicU64,
    pub beats: AtomicU64,
    pub looks: AtomicU64,
    pub reads: AtomicU64,
    /// Errors, after which a worker waits and continues.
    pub troubles: AtomicU64,
}

impl Asked {
    pub fn now(&self) -> [u64; 8] {
        [
            &self.appends,
            &self.conflicts,
            &self.delivered,
            &self.shown,
            &self.beats,
            &self.looks,
            &self.reads,
            &self.troubles,
        ]
        .map(|count| count.load(Ordering::Relaxed))
    }
}

impl Floor {
    /// Makes the workers stop claiming tasks.
    pub fn rest(&self) {
        self.hold_ms.store(REST, Ordering::SeqCst);
    }

    /// Makes the workers claim tasks and hold each for `hold`.
    pub fn work(&self, hold: Duration) {
        self.hold_ms.store(hold.as_millis() as u64, Ordering::SeqCst);
    }

    /// Returns the claims since the last call.
    pub fn take_claims(&self) -> Vec<Taken> {
        std::mem::take(&mut self.claims.lock().unwrap())
    }
}

/// Workers that run until this value is dropped.
#[derive(Debug)]
pub struct Workers {
    access: NatsOptions,
    projects: Vec<ProjectName>,
    floor: Arc<Floor>,
    threads: Vec<JoinHandle<()>>,
    ready: (SyncSender<()>, Receiver<()>),
}

impl Workers {
    pub fn new(access: &NatsOptions, projects: &[ProjectName]) -> Workers {
        let (access, projects) = (access.clone(), projects.to_vec());
        let floor = Arc::new(Floor::default());
        floor.rest();
        let ready = sync_channel(AT_ONCE);
        Workers { access, projects, floor, threads: Vec::new(), ready }
    }

    pub fn floor(&self) -> &Floor {
        &self.floor
    }

    pub fn len(&self) -> usize {
        self.threads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Starts workers until there are `count`; returns when all of them follow their logs.
    pub fn grow(&mut self, count: usize) {
        let mut starting = 0;
        for number in self.threads.len()..count {
            if starting == AT_ONCE {
                self.ready.1.recv().unwrap();
                starting -= 1;
            }
            let (access, floor) = (self.access.clone(), self.floor.clone());
            let project = self.projects[number % self.projects.len()].clone();
            let ready = self.ready.0.clone();
            let thread = std::thread::Builder::new().stack_size(STACK);
            let work = move || {
                let mut worker = Light::start(number, &access, &project, &floor);
                ready.send(()).unwrap();
                drop(ready);
                worker.work();
            };
            self.threads.push(thread.spawn(work).unwrap());
            starting += 1;
        }
        for _ in 0..starting {
            self.ready.1.recv().unwrap();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.floor.is_over.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            // A thread that failed has already reported its error.
            let _ = thread.join();
        }
    }
}

/// A log that counts the requests to it.
struct Counted {
    log: JetStreamLog,
    floor: Arc<Floor>,
}

impl Counted {
    fn open(access: &NatsOptions, project: &ProjectName, floor: &Arc<Floor>) -> Store {
        let log = JetStreamLog::connect(access, project).unwrap();
        Store::over(Arc::new(Counted { log, floor: floor.clone() })).unwrap()
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl EventLog for Counted {
    fn append(&self, batch: &[NewEvent]) -> Result<AppendOutcome, AppendError> {
        count(&self.floor.asked.appends);
        let appended = self.log.append(batch);
        if matches!(appended, Err(AppendError::Conflict { .. }) | Ok(AppendOutcome::Before(_))) {
            count(&self.floor.asked.conflicts);
        }
        appended
    }

    fn digests(
        &self,
        batch: &[NewEvent],
    ) -> Result<Vec<hookloop_store::chain::ChainHash>, LogError> {
        self.log.digests(batch)
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        count(&self.floor.asked.reads);
        self.log.last(subject)
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        count(&self.floor.asked.reads);
        self.log.history(subject, limit)
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        count(&self.floor.asked.reads);
        self.log.read(from, limit)
    }

    fn head(&self) -> Result<Seq, LogError> {
        count(&self.floor.asked.reads);
        self.log.head()
    }

    fn follow_subject(
        &self,
        subject: &Subject,
        from: Seq,
    ) -> Result<Box<dyn EventFollower>, LogError> {
        let follow = self.log.follow_subject(subject, from)?;
        Ok(Box::new(CountedFollow { follow, floor: self.floor.clone() }))
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn EventFollower>, LogError> {
        let follow = self.log.follow(from)?;
        Ok(Box::new(CountedFollow { follow, floor: self.floor.clone() }))
    }
}

struct CountedFollow {
    follow: Box<dyn EventFollower>,
    floor: Arc<Floor>,
}

impl EventFollower for CountedFollow {
    fn next(&mut self, timeout: Duration) -> Result<Vec<StoredEvent>, LogError> {
        let events = self.follow.next(timeout)?;
        self.floor.asked.delivered.fetch_add(events.len() as u64, Ordering::Relaxed);
        Ok(events)
    }
}

impl HeartbeatStore for Counted {
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError> {
        count(match held {
            HeldResource::Worker(_) => &self.floor.asked.shown,
            _ => &self.floor.asked.beats,
        });
        self.log.beat(held, holder, epoch)
    }

    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError> {
        count(&self.floor.asked.beats);
        self.log.take(held, holder, epoch, seen)
    }

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError> {
        count(&self.floor.asked.looks);
        self.log.last_beat(held)
    }

    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError> {
        count(&self.floor.asked.looks);
        self.log.workers()
    }

    fn forget(&self, held: &HeldResource) -> Result<(), LogError> {
        count(&self.floor.asked.beats);
        self.log.forget(held)
    }
}

impl SnapshotStore for Counted {
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError> {
        self.log.latest(schema)
    }

    fn latest_head(&self, schema: i64) -> Result<Seq, LogError> {
        count(&self.floor.asked.reads);
        self.log.latest_head(schema)
    }

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError> {
        self.log.save(snapshot)
    }
}

/// A claimed task.
struct Holding {
    task: TaskId,
    epoch: u64,
    since: Timestamp,
    until: Instant,
    beaten: Instant,
}

struct Light {
    name: TaskId,
    served: String,
    project: Project,
    fleet: Fleet,
    floor: Arc<Floor>,
    held: Option<Holding>,
    shown: Option<Instant>,
    started: Timestamp,
}

impl Light {
    fn start(
        number: usize,
        access: &NatsOptions,
        project: &ProjectName,
        floor: &Arc<Floor>,
    ) -> Light {
        let name: TaskId = format!("light-{number}").parse().unwrap();
        // The logs of a worker share its connection.
        let access = &NatsOptions { links: Some(NatsLinks::default()), ..access.clone() };
        let store = Counted::open(access, project, floor);
        store.go_live().unwrap();
        let fleet = Counted::open(access, &ProjectName::of_fleet(), floor);
        let fleet = Fleet::over(Project::new(fleet, EffectiveConfig::default(), name.as_str()));
        fleet.go_live().unwrap();
        Light {
            served: project.to_string(),
            project: Project::new(store, EffectiveConfig::default(), name.as_str()),
            fleet,
            name,
            floor: floor.clone(),
            held: None,
            shown: None,
            started: now(),
        }
    }

    fn work(&mut self) {
        let project = self.project.clone();
        let mut dispatcher = Dispatcher::new(&project, self.name.as_str()).unwrap();
        // Desynchronizes the workers, because those of a real fleet do not start at the same
        // moment.
        std::thread::sleep(TICK.mul_f64(rand_share(&self.name)));
        let mut rounded = Instant::now();
        while !self.floor.is_over.load(Ordering::Relaxed) {
            let round = rounded.elapsed() >= ROUND;
            if round {
                rounded = Instant::now();
            }
            let worked = match round {
                true => attend(&project, &mut dispatcher),
                false => Ok(()),
            };
            let worked = worked.and_then(|()| self.beat());
            let worked = worked.and_then(|()| self.end_task());
            let worked = worked.and_then(|()| self.take_task());
            let worked = worked.and_then(|was_busy| self.show().map(|()| was_busy));
            let Ok(was_busy) = worked else {
                count(&self.floor.asked.troubles);
                self.held = None;
                std::thread::sleep(AFTER_ERROR);
                continue;
            };
            let hold = self.floor.hold_ms.load(Ordering::Relaxed);
            if !(was_busy && hold == 0) {
                let left = |held: &Holding| held.until.saturating_duration_since(Instant::now());
                std::thread::sleep(self.held.as_ref().map_or(TICK, left).min(TICK));
            }
        }
    }

    /// Claims a task if one is ready; returns whether it did.
    fn take_task(&mut self) -> Result<bool, EngineError> {
        let hold = self.floor.hold_ms.load(Ordering::Relaxed);
        if hold == REST || self.held.is_some() {
            return Ok(false);
        }
        let ready = self.project.read(|view| Ok(view.totals()?.count(TaskState::Ready)))?;
        if ready == 0 {
            return Ok(false);
        }
        let request = ClaimRequest {
            agent: self.name.to_string(),
            worker: String::new(),
            lease: LEASE,
            wanted: WantedTask::Any,
            labels: Vec::new(),
        };
        let asked = Instant::now();
        let Some(claimed) = self.project.claim(&request)? else { return Ok(false) };
        let (task, at) = (claimed.task.id, Instant::now());
        let taken = Taken { task: task.clone(), took: at - asked, at };
        self.floor.claims.lock().unwrap().push(taken);
        let until = at + Duration::from_millis(hold);
        self.held = Some(Holding { task, epoch: claimed.epoch, since: now(), until, beaten: at });
        if hold > 0 {
            // Like a worker: sends the first heartbeat of a session and the list of claimed tasks.
            let held = self.held.as_ref().unwrap();
            self.project.heartbeat(&held.task, held.epoch)?;
            self.shown = None;
        } else {
            self.end_task()?;
        }
        Ok(true)
    }

    fn beat(&mut self) -> Result<(), EngineError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        if held.beaten.elapsed() < LEASE / BEATS_PER_LEASE {
            return Ok(());
        }
        held.beaten = Instant::now();
        self.project.heartbeat(&held.task, held.epoch)
    }

    fn end_task(&mut self) -> Result<(), EngineError> {
        let is_over = |held: &mut Holding| held.until <= Instant::now();
        let Some(held) = self.held.take_if(is_over) else { return Ok(()) };
        let (outcome, fence) = (TaskOutcome::default(), Fence::Epoch(held.epoch));
        self.project.execute(&Command::CompleteTask { id: held.task, outcome, fence })?;
        if self.floor.hold_ms.load(Ordering::Relaxed) > 0 {
            self.shown = None;
        }
        Ok(())
    }

    fn show(&mut self) -> Result<(), EngineError> {
        if self.shown.is_some_and(|shown| shown.elapsed() < SHOW) {
            return Ok(());
        }
        self.shown = Some(Instant::now());
        let running = self.held.iter().map(|held| ServedSession {
            project: self.served.clone(),
            task: held.task.to_string(),
            session: format!("session-of-{}", held.task),
            since: held.since,
        });
        let presence = WorkerPresence {
            name: self.name.clone(),
            machine: "bench".to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: FORMAT,
            state: WorkerState::Working,
            slots: 1,
            agent: "scripted".to_owned(),
            projects: vec![ServedProject { project: self.served.clone(), ineligible: None }],
            running: running.collect(),
            started: self.started,
            seen: now(),
        };
        self.fleet.show(&presence)
    }
}

/// Does the due work of a project other than its tasks.
fn attend(project: &Project, dispatcher: &mut Dispatcher) -> Result<(), EngineError> {
    match dispatcher.stand_by()? {
        DispatchRound::Leading => project.dispatch(),
        DispatchRound::Standby => Ok(()),
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp(since.as_millis() as i64)
}

/// Returns a number from 0 to 1 that differs for each name.
fn rand_share(name: &TaskId) -> f64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(name.as_str()) % 1_000) as f64 / 1_000.0
}
