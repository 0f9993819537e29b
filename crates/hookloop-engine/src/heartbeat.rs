//! Heartbeats for the tasks that this process has claimed.
//!
//! One thread sends all of them. It does nothing else and waits for no other thread, so that a busy
//! machine does not look dead: see [`start`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hookloop_core::id::TaskId;
use tracing::warn;

use crate::project::Project;

/// Heartbeats per lease. All but one may be lost.
const PER_LEASE: u32 = 5;
/// Minimum time between two heartbeats, and the pause after a failed one.
const SHORTEST: Duration = Duration::from_millis(250);
const AGAIN: Duration = Duration::from_secs(1);
/// Longest sleep of the thread.
const IDLE: Duration = Duration::from_secs(60);

static LIFELINE: OnceLock<HeartbeatTarget> = OnceLock::new();

#[derive(Debug)]
struct HeartbeatTarget {
    shown: Arc<Mutex<Vec<HeartbeatState>>>,
    thread: Option<Thread>,
}

#[derive(Clone, Debug)]
struct HeartbeatState {
    project: Arc<Project>,
    task: TaskId,
    epoch: u64,
    every: Duration,
    next: Instant,
    /// The time at which the heartbeats end by themselves, if they do.
    until: Option<Instant>,
    /// Shared with the [`Heartbeater`] of the claim. The heartbeats end when all of them are dropped.
    alive: Arc<()>,
}

impl HeartbeatState {
    fn is_of(&self, project: &Project, task: &TaskId, epoch: u64) -> bool {
        self.task == *task && self.epoch == epoch && self.project.store.is(&project.store)
    }
}

/// Heartbeats for a claimed task. They are sent until this is dropped.
#[derive(Debug)]
pub struct Heartbeater {
    _alive: Arc<()>,
}

/// Starts the heartbeat thread, if it does not run yet.
///
/// The thread inherits the priority of its caller. A process that lowers its own priority must call
/// this first.
pub fn start() {
    lifeline();
}

fn lifeline() -> &'static HeartbeatTarget {
    LIFELINE.get_or_init(|| {
        let shown: Arc<Mutex<Vec<HeartbeatState>>> = Arc::default();
        let of_thread = Arc::clone(&shown);
        let thread = std::thread::Builder::new().name("lifeline".to_owned());
        let thread = thread.spawn(move || show(&of_thread));
        // Without a thread a claim ends when its lease does, and the log knows.
        let thread = thread.inspect_err(|error| warn!(%error, "no heartbeats are sent")).ok();
        HeartbeatTarget { shown, thread: thread.map(|handle| handle.thread().clone()) }
    })
}

impl Heartbeater {
    /// Sends heartbeats for a claim until this is dropped, or for `longest`.
    pub fn start(
        project: &Project,
        task: &TaskId,
        (epoch, lease): (u64, Duration),
        longest: Option<Duration>,
    ) -> Heartbeater {
        let lifeline = lifeline();
        let mut all = lifeline.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // A claim has one series of heartbeats, however many parts of this process need it.
        let same = all.iter().find(|one| one.until.is_none() && one.is_of(project, task, epoch));
        if let (Some(same), None) = (same, longest) {
            return Heartbeater { _alive: Arc::clone(&same.alive) };
        }
        let alive = Arc::new(());
        let (now, every) = (Instant::now(), (lease / PER_LEASE).max(SHORTEST));
        let shown = HeartbeatState {
            project: Arc::new(project.clone()),
            task: task.clone(),
            epoch,
            every,
            next: now,
            until: longest.map(|longest| now + longest),
            alive: Arc::clone(&alive),
        };
        all.push(shown);
        drop(all);
        if let Some(thread) = &lifeline.thread {
            thread.unpark();
        }
        Heartbeater { _alive: alive }
    }
}

fn show(all: &Mutex<Vec<HeartbeatState>>) {
    loop {
        let now = Instant::now();
        let due: Vec<HeartbeatState> = {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|one| {
                Arc::strong_count(&one.alive) > 1 && one.until.is_none_or(|until| now < until)
            });
            let due = all.iter_mut().filter(|one| one.next <= now);
            due.map(|one| {
                one.next = now + one.every;
                HeartbeatState { alive: Arc::default(), ..one.clone() }
            })
            .collect()
        };
        for one in due {
            // Who has lost the task is told when it is written to.
            if let Err(error) = one.project.heartbeat(&one.task, one.epoch) {
                warn!(task = %one.task, epoch = one.epoch, %error, "a heartbeat is not sent");
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let is_same =
                    |other: &&mut HeartbeatState| other.is_of(&one.project, &one.task, one.epoch);
                if let Some(one) = all.iter_mut().find(is_same) {
                    one.next = one.next.min(Instant::now() + AGAIN);
                }
            }
        }
        let next = {
            let all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().map(|one| one.next).min()
        };
        let pause = next.map_or(IDLE, |next| next.saturating_duration_since(Instant::now()));
        std::thread::park_timeout(pause.min(IDLE));
    }
}
