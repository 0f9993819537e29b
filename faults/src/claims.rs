//! Sixty-four claimants on thousands of tasks: each task is claimed once, urgent tasks first, and
//! only of served types.

use std::time::{Duration, Instant};

use hookloop_core::event::{Event, EventBody};
use hookloop_core::id::{EventId, Subject};
use hookloop_core::task::{Priority, TaskSpec};
use hookloop_core::time::Timestamp;
use hookloop_store::log::{EventLog, NewEvent};
use hookloop_store::store::Store;
use hookloop_testbed::Cluster;

use crate::campaign::{Round, Verdict, open};
use crate::check::check_urgency;
use crate::fleet::{Process, Site};
use crate::history::{Operation, now_ms};
use crate::stream::{self, Stored};
use crate::table::Row;
use crate::worker::Role;

const PROCESSES: usize = 8;
pub(crate) const THREADS: usize = 8;
pub(crate) const TYPES: [&str; 3] = ["code", "docs", "tests"];
const PRIORITIES: usize = 4;
/// Number of tasks in one batch.
const BATCH: usize = 900;
/// Number of urgent tasks that are added at a time while the others are claimed.
const LATE: usize = 20;
const LATE_EVERY: Duration = Duration::from_secs(2);
/// How long a more urgent task may be skipped, because a view may lag behind the log.
const SLACK_MS: i64 = 1_000;
/// Claiming counts as finished after this time without a claim.
const STALLED: Duration = Duration::from_secs(20);

pub(crate) fn round(round: &Round) -> Row {
    let cluster = Cluster::three();
    let site = Site::of(&cluster, &round.home, round.seed);
    let store = open(&site, &round.home.join("first.db"));
    add(&store, "t", round.tasks, |n| n % PRIORITIES);
    let begun = Instant::now();
    let mut workers: Vec<Process> = (0..PROCESSES)
        .map(|n| {
            let mut args = site.args(Role::Claimant, &format!("c{n}"));
            args.live = n % 2 == 1;
            args.reopen_after = (n < 2).then_some((round.tasks / PROCESSES / 4) as u64);
            Process::start(args, None)
        })
        .collect();
    let tasks = round.tasks + wait_for_claims(&cluster, &store, round.tasks);
    let seconds = begun.elapsed().as_secs_f64();
    let mut verdict = Verdict::new(&cluster, &site);
    verdict.end(&mut workers);
    let mut row = verdict.judge(&workers, |operations, log| further(operations, log, tasks));
    row.remark = format!("{:.0} claims/s", tasks as f64 / seconds);
    row
}

/// Adds tasks without running hooks, like an import.
fn add(store: &Store, prefix: &str, count: usize, priority: impl Fn(usize) -> usize) {
    let numbers: Vec<usize> = (0..count).collect();
    for chunk in numbers.chunks(BATCH) {
        let batch: Vec<NewEvent> = chunk
            .iter()
            .map(|n| {
                let spec = TaskSpec {
                    goal: "claim me".to_owned(),
                    priority: Priority::try_from(priority(*n) as u8).unwrap(),
                    kind: Some(TYPES[n / PRIORITIES % TYPES.len()].to_owned()),
                    ..TaskSpec::default()
                };
                let event = Event {
                    id: EventId(*uuid::Uuid::now_v7().as_bytes()),
                    at: Timestamp(now_ms() as i64),
                    subject: Subject::Task(format!("{prefix}-{n}").parse().unwrap()),
                    actor: "campaign".to_owned(),
                    cause: None,
                    due: false,
                    body: EventBody::TaskCreated(spec),
                };
                NewEvent { expected: 0, event }
            })
            .collect();
        store.append(&batch).unwrap();
    }
}

/// Adds urgent tasks until most are claimed, and waits for the rest; returns the number of added
/// tasks.
fn wait_for_claims(cluster: &Cluster, store: &Store, tasks: usize) -> usize {
    let stream = stream::name(cluster);
    let (mut late, mut seen, mut moved, mut added) = (0, 0, Instant::now(), Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let events = stream::last(cluster, &stream).unwrap_or(seen as u64) as usize;
        if events != seen {
            (seen, moved) = (events, Instant::now());
        }
        let claimed = seen.saturating_sub(tasks + late);
        if claimed == tasks + late || moved.elapsed() > STALLED {
            return late;
        }
        if claimed < tasks * 3 / 4 && added.elapsed() > LATE_EVERY {
            add(store, &format!("late{late}"), LATE, |_| 0);
            (late, added) = (late + LATE, Instant::now());
        }
    }
}

fn further(operations: &[Operation], log: &[Stored], tasks: usize) -> Vec<String> {
    let mut wrong = check_urgency(operations, log, SLACK_MS);
    let claimed = log.iter().filter(|stored| stored.kind == "task_started").count();
    if claimed != tasks {
        wrong.push(format!("{claimed} claims of {tasks} tasks"));
    }
    wrong
}
