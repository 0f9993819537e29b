//! Heartbeats for the tasks that this process has claimed.
//!
//! One thread sends all of them. It does nothing else and waits for no other thread, so that a busy
//! machine does not look dead: see [`start`].

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hookloop_core::id::TaskId;
use tracing::warn;

use crate::error::EngineError;
use crate::project::Project;

/// Heartbeats per lease. All but one may be lost.
const PER_LEASE: u32 = 5;
/// Minimum time between two heartbeats, and the pause after a failed one.
const SHORTEST: Duration = Duration::from_millis(250);
const AGAIN: Duration = Duration::from_secs(1);
/// Failures that wait to be reported. Further ones are not reported.
const REPORTS_MAX: usize = 16;
/// Longest sleep of the thread.
const IDLE: Duration = Duration::from_secs(60);

static HEARTBEATS: OnceLock<HeartbeatThread> = OnceLock::new();

#[derive(Debug)]
struct HeartbeatThread {
    shown: Arc<Mutex<Vec<HeartbeatTarget>>>,
    thread: Option<Thread>,
}

#[derive(Clone, Debug)]
struct HeartbeatTarget {
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

impl HeartbeatTarget {
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
    heartbeats();
}

fn heartbeats() -> &'static HeartbeatThread {
    HEARTBEATS.get_or_init(|| {
        let shown: Arc<Mutex<Vec<HeartbeatTarget>>> = Arc::default();
        let of_thread = Arc::clone(&shown);
        let thread = std::thread::Builder::new().name("heartbeat".to_owned());
        let failures = report_failures();
        let thread = thread.spawn(move || show(&of_thread, failures.as_ref()));
        // Without a thread a claim ends when its lease does, and the log knows.
        let thread = thread.inspect_err(|error| warn!(%error, "no heartbeats are sent")).ok();
        HeartbeatThread { shown, thread: thread.map(|handle| handle.thread().clone()) }
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
        let heartbeats = heartbeats();
        let mut all = heartbeats.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // A claim has one series of heartbeats, however many parts of this process need it.
        let same = all.iter().find(|one| one.until.is_none() && one.is_of(project, task, epoch));
        if let (Some(same), None) = (same, longest) {
            return Heartbeater { _alive: Arc::clone(&same.alive) };
        }
        let alive = Arc::new(());
        let (now, every) = (Instant::now(), (lease / PER_LEASE).max(SHORTEST));
        let shown = HeartbeatTarget {
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
        if let Some(thread) = &heartbeats.thread {
            thread.unpark();
        }
        Heartbeater { _alive: alive }
    }
}

/// A heartbeat that was not sent.
struct FailedHeartbeat {
    task: TaskId,
    epoch: u64,
    error: EngineError,
}

/// Starts a thread that reports failed heartbeats. A report can block, and heartbeats must not wait for it.
fn report_failures() -> Option<SyncSender<FailedHeartbeat>> {
    let (sender, failures): (_, Receiver<FailedHeartbeat>) = sync_channel(REPORTS_MAX);
    let thread = std::thread::Builder::new().name("heartbeat-report".to_owned());
    let thread = thread.spawn(move || {
        for FailedHeartbeat { task, epoch, error } in failures {
            warn!(%task, epoch, %error, "a heartbeat is not sent");
        }
    });
    thread.inspect_err(|error| warn!(%error, "failed heartbeats are not reported")).ok()?;
    Some(sender)
}

fn show(all: &Mutex<Vec<HeartbeatTarget>>, failures: Option<&SyncSender<FailedHeartbeat>>) {
    loop {
        let now = Instant::now();
        let due: Vec<HeartbeatTarget> = {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|one| {
                Arc::strong_count(&one.alive) > 1 && one.until.is_none_or(|until| now < until)
            });
            let due = all.iter_mut().filter(|one| one.next <= now);
            due.map(|one| {
                one.next = now + one.every;
                HeartbeatTarget { alive: Arc::default(), ..one.clone() }
            })
            .collect()
        };
        for one in due {
            // A process that has lost the task finds out when it writes to the task.
            if let Err(error) = one.project.heartbeat(&one.task, one.epoch) {
                let (task, epoch) = (one.task.clone(), one.epoch);
                let failed = FailedHeartbeat { task, epoch, error };
                if let Some(failures) = failures {
                    // If many reports wait already, one more tells nothing new.
                    let _ = failures.try_send(failed);
                }
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let is_same =
                    |other: &&mut HeartbeatTarget| other.is_of(&one.project, &one.task, one.epoch);
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
