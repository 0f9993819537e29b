//! The product doing the work of the bare engine in [`crate::nats`], on the same servers and at the
//! same time.
//!
//! The product is synchronous, so each measurement runs on separate threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::{Event, EventBody, TaskStarted};
use hookloop_core::id::{EventId, Subject, TaskId};
use hookloop_core::task::{TaskOutcome, TaskSpec};
use hookloop_core::time::Timestamp;
use hookloop_engine::claim::{ClaimRequest, WantedTask};
use hookloop_engine::project::Project;
use hookloop_store::jetstream::{self, JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::{EventLog, NewEvent, Seq};
use hookloop_store::store::Store;

use crate::figures::Sample;
use crate::pair::Figure;

/// Ready tasks for a pass of claims or lifecycles, per second of the pass.
const READY_PER_SECOND: f64 = 12_000.0;
const LEASE: Duration = Duration::from_secs(60);
const BATCH: usize = 1_000;
const NAMES: [&str; 3] = ["bench-work", "bench-append", "bench-replay"];

/// Projects on the servers: one to append to, one to work in, one to read.
#[derive(Clone, Debug)]
pub struct Ours {
    pass: Duration,
    log: JetStreamLog,
    replay: JetStreamLog,
    replayed: u64,
    project: Project,
    feed: Feed,
}

/// A source of unique events to append.
#[derive(Clone, Debug)]
pub struct Feed(Arc<AtomicU64>);

impl Default for Feed {
    /// Starts at the current time, so that ids differ from those of earlier runs on the same
    /// servers.
    fn default() -> Feed {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Feed(Arc::new(AtomicU64::new(now.as_micros() as u64)))
    }
}

impl Feed {
    fn unique(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub fn task(&self) -> TaskId {
        format!("t{}", self.unique()).parse().unwrap()
    }

    fn event(&self, task: &TaskId, body: EventBody) -> Event {
        let mut id = [0; 16];
        id[8..].copy_from_slice(&self.unique().to_be_bytes());
        Event {
            id: EventId(id),
            at: Timestamp(1_767_225_600_000),
            subject: Subject::Task(task.clone()),
            actor: "worker-17".to_owned(),
            cause: None,
            due: false,
            body,
        }
    }

    pub fn created(&self, task: &TaskId) -> NewEvent {
        let spec = TaskSpec {
            goal: "write the release notes for the next version".to_owned(),
            labels: vec!["docs".to_owned(), "release".to_owned()],
            ..TaskSpec::default()
        };
        NewEvent { expected: 0, event: self.event(task, EventBody::TaskCreated(spec)) }
    }

    fn started(&self, task: &TaskId, expected: Seq) -> NewEvent {
        NewEvent {
            expected,
            event: self.event(task, EventBody::TaskStarted(TaskStarted::default())),
        }
    }

    /// Returns all events of a task: created, started, completed.
    pub fn life(&self) -> [NewEvent; 3] {
        let task = self.task();
        let completed = EventBody::TaskCompleted(TaskOutcome::default());
        let completed = NewEvent { expected: 0, event: self.event(&task, completed) };
        [self.created(&task), self.started(&task, 0), completed]
    }
}

impl Ours {
    /// Creates projects on the servers of `access`, with the view in `dir`, and writes the events
    /// to read.
    pub fn new(access: &NatsOptions, dir: &Path, pass: Duration, replayed: u64) -> Ours {
        let log = |name: &str| {
            let log = JetStreamLog::connect(access, &name.parse().unwrap()).unwrap();
            log.prepare().unwrap();
            log
        };
        let name = NAMES[0].parse().unwrap();
        let store = jetstream::open(access, &name, &dir.join("view.db")).unwrap().store;
        store.go_live().unwrap();
        let ours = Ours {
            pass,
            log: log(NAMES[1]),
            replay: log(NAMES[2]),
            replayed,
            project: Project::new(store, EffectiveConfig::default(), "bench"),
            feed: Feed::default(),
        };
        let mut created = Vec::new();
        for _ in 0..replayed {
            created.push(ours.feed.created(&ours.feed.task()));
            if created.len() == BATCH {
                ours.replay.append(&std::mem::take(&mut created)).unwrap();
            }
        }
        ours
    }

    /// Returns the streams that contain its events.
    pub fn streams(&self) -> Vec<String> {
        NAMES.map(|name| JetStreamLog::stream_of(&name.parse().unwrap())).to_vec()
    }

    /// Creates ready tasks for one pass, and updates the view.
    fn fill(&self) {
        let count = (READY_PER_SECOND * self.pass.as_secs_f64()) as usize;
        let mut last = 0;
        for _ in 0..count.div_ceil(BATCH) {
            let batch: Vec<_> = (0..BATCH).map(|_| self.feed.created(&self.feed.task())).collect();
            last = self.project.log().append(&batch).unwrap().first() + BATCH as Seq - 1;
        }
        while self.project.store().wait_for_news(last - 1, LEASE).unwrap() < last {}
    }

    fn claim(&self, worker: usize) -> (TaskId, u64) {
        let request = ClaimRequest {
            agent: format!("worker-{worker}"),
            worker: String::new(),
            lease: LEASE,
            wanted: WantedTask::Any,
            labels: Vec::new(),
        };
        let claimed = self.project.claim(&request).unwrap().expect("READY_PER_SECOND is too low");
        (claimed.task.id, claimed.epoch)
    }
}

/// Measures one writer that waits for every response: the median.
pub fn append(ours: &Ours) -> Figure {
    let mut sample = Sample::default();
    let end = Instant::now() + ours.pass;
    while Instant::now() < end {
        let task = ours.feed.task();
        let mut next = ours.feed.created(&task);
        for _ in 0..4 {
            let seq = sample.time(|| ours.log.append(std::slice::from_ref(&next)).unwrap()).first();
            next = ours.feed.started(&task, seq);
        }
    }
    Figure::Milliseconds(sample.median())
}

/// Measures concurrent writers, each of which waits for its own responses.
pub fn append_many(ours: &Ours, writers: usize) -> Figure {
    side_by_side(ours, writers, |_| {
        let task = ours.feed.task();
        let mut next = ours.feed.created(&task);
        for _ in 0..4 {
            let seq = ours.log.append(std::slice::from_ref(&next)).unwrap().first();
            next = ours.feed.started(&task, seq);
        }
        4
    })
}

/// Measures atomic batches of `size`, one after the other: the median.
pub fn batch(ours: &Ours, size: usize) -> Figure {
    let mut sample = Sample::default();
    let end = Instant::now() + ours.pass;
    while Instant::now() < end {
        let batch: Vec<_> = (0..size).map(|_| ours.feed.created(&ours.feed.task())).collect();
        sample.time(|| ours.log.append(&batch).unwrap());
    }
    Figure::Milliseconds(sample.median())
}

/// Measures the life of a task: claimed by type and priority, and completed with a fencing check.
pub fn lifecycle(ours: &Ours, workers: usize) -> Figure {
    ours.fill();
    side_by_side(ours, workers, |worker| {
        let (id, epoch) = ours.claim(worker);
        let (outcome, fence) = (TaskOutcome::default(), Fence::Epoch(epoch));
        ours.project.execute(&Command::CompleteTask { id, outcome, fence }).unwrap();
        1
    })
}

pub fn claim(ours: &Ours, workers: usize) -> Figure {
    ours.fill();
    side_by_side(ours, workers, |worker| {
        ours.claim(worker);
        1
    })
}

/// Reads and parses every event of a project.
pub fn replay(ours: &Ours) -> Figure {
    let start = Instant::now();
    let mut follower = ours.replay.follow(1).unwrap();
    let mut count = 0;
    while count < ours.replayed {
        count += follower.next(LEASE).unwrap().len() as u64;
    }
    per_second(count, start)
}

/// Builds a view in memory from every event of a project.
pub fn view(ours: &Ours) -> Figure {
    let start = Instant::now();
    Store::over(Arc::new(ours.replay.clone())).unwrap();
    per_second(ours.replayed, start)
}

/// Runs `count` threads for one pass; each call of `work` returns the number of operations it did.
fn side_by_side(ours: &Ours, count: usize, work: impl Fn(usize) -> u64 + Sync) -> Figure {
    let start = Instant::now();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..count {
            let (done, work) = (&done, &work);
            scope.spawn(move || {
                while start.elapsed() < ours.pass {
                    done.fetch_add(work(worker), Ordering::Relaxed);
                }
            });
        }
    });
    per_second(done.into_inner(), start)
}

fn per_second(count: u64, start: Instant) -> Figure {
    Figure::PerSecond(count as f64 / start.elapsed().as_secs_f64())
}
