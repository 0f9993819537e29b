//! `bench-workers [--quick] [single] [cluster] [fleet]`: runs thousands of light workers on real
//! servers, idle and busy, and counts the events of the fleet's log that each of them receives.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring tool")]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hookloop_bench::figures::{Sample, ms, table};
use hookloop_bench::ours::Feed;
use hookloop_bench::servers::{Gauge, Used};
use hookloop_bench::workers::Workers;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::id::{ProjectName, TaskId};
use hookloop_core::time::Timestamp;
use hookloop_engine::project::Project;
use hookloop_fleet::fleet::Fleet;
use hookloop_store::jetstream::{JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::EventLog;
use hookloop_store::store::Store;
use hookloop_testbed::{Cluster, Server, poll};

/// Size of each measurement.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    workers: [usize; 4],
    projects: usize,
    settle: Duration,
    window: Duration,
    hold: Duration,
    picked_up: usize,
    /// Tasks per second of work, for tasks that are completed at once.
    a_second: usize,
    fleet_events: usize,
    /// Numbers of workers for which deliveries of the fleet's log are counted.
    fleets: [usize; 2],
}

const FULL: Sizes = Sizes {
    workers: [0, 250, 500, 1_000],
    projects: 100,
    settle: Duration::from_secs(3),
    window: Duration::from_secs(8),
    hold: Duration::from_secs(1),
    picked_up: 40,
    a_second: 1_200,
    fleet_events: 20,
    fleets: [1_000, 2_000],
};

const QUICK: Sizes = Sizes {
    workers: [0, 2, 4, 8],
    projects: 2,
    settle: Duration::from_millis(500),
    window: Duration::from_secs(2),
    hold: Duration::from_millis(200),
    picked_up: 5,
    a_second: 300,
    fleet_events: 10,
    fleets: [4, 8],
};

/// Events that the sessions of a worker write to the fleet's log for each task.
const LEDGER_EVENTS: usize = 8;
const BATCH: usize = 1_000;
/// Time without a new event after which all followers count as caught up.
const QUIET: Duration = Duration::from_secs(1);
/// Timeout for a task to be claimed, and for an event to reach all workers.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let sizes = if flags.iter().any(|flag| flag == "--quick") { QUICK } else { FULL };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if wanted("single") {
        println!("## Workers on one server, every write synced\n");
        let server = Server::single();
        measure(std::slice::from_ref(&server), sizes);
    }
    if wanted("cluster") {
        println!("## Workers on three servers, every write synced\n");
        let cluster = Cluster::three();
        measure(cluster.nodes(), sizes);
    }
    if wanted("fleet") {
        println!("## The fleet's log, one server\n");
        let rows: Vec<_> =
            sizes.fleets.into_iter().map(|count| count_deliveries(count, sizes)).collect();
        table(&DELIVERIES, &rows);
    }
}

/// Counts the events of the fleet's log that reach each worker when every worker runs one task and
/// a few directives are set.
fn count_deliveries(count: usize, sizes: Sizes) -> Vec<String> {
    let server = Server::single();
    let access = NatsOptions::at(server.url(), vec![server.monitor_url()]);
    let yard = Yard::new(&access, sizes.projects);
    let mut workers = Workers::new(&access, &yard.names);
    workers.grow(count);
    calm(&workers);
    let before = workers.floor().asked.now()[2];
    let gauge = Gauge::start(std::slice::from_ref(&server));
    let ledger = count * LEDGER_EVENTS;
    let tasks: Vec<TaskId> = (0..ledger).map(|_| yard.feed.task()).collect();
    for part in tasks.chunks(BATCH) {
        let batch: Vec<_> = part.iter().map(|task| yard.feed.created(task)).collect();
        yard.fleet.log().log().append(&batch).unwrap();
    }
    for n in 0..sizes.fleet_events {
        yard.fleet.slow_down(&format!("bench:{n}"), Timestamp(1)).unwrap();
    }
    let directives = (sizes.fleet_events * count) as u64;
    let delivered = || workers.floor().asked.now()[2] - before;
    poll(PATIENCE, || (delivered() >= directives).then_some(())).unwrap();
    calm(&workers);
    let used = gauge.read();
    vec![
        count.to_string(),
        ledger.to_string(),
        sizes.fleet_events.to_string(),
        delivered().to_string(),
        format!("{:.1}", delivered() as f64 / count as f64),
        format!("{:.1} s", used.servers * used.time.as_secs_f64()),
    ]
}

const DELIVERIES: [&str; 6] =
    ["workers", "ledger events", "directives", "deliveries", "a worker", "server's processor"];

fn measure(nodes: &[Server], sizes: Sizes) {
    let urls: Vec<String> = nodes.iter().map(Server::url).collect();
    let monitors = nodes.iter().map(Server::monitor_url).collect();
    let access = NatsOptions::at(urls.join(","), monitors);
    let yard = Yard::new(&access, sizes.projects);
    let mut workers = Workers::new(&access, &yard.names);
    idle(nodes, &mut workers, sizes);
    news(nodes, &workers, &yard, sizes);
    pick_up(&workers, &yard, sizes);
    busy(nodes, &workers, &yard, sizes);
}

/// The projects, with a writer that adds tasks.
struct Yard {
    names: Vec<ProjectName>,
    logs: Vec<JetStreamLog>,
    fleet: Fleet,
    feed: Feed,
}

impl Yard {
    fn new(access: &NatsOptions, projects: usize) -> Yard {
        let names: Vec<ProjectName> =
            (0..projects).map(|n| format!("yard-{n}").parse().unwrap()).collect();
        let prepared = |name: &ProjectName| {
            let log = JetStreamLog::connect(access, name).unwrap();
            log.prepare().unwrap();
            log
        };
        let fleet = prepared(&ProjectName::of_fleet());
        let fleet = Store::over(std::sync::Arc::new(fleet)).unwrap();
        let fleet = Fleet::over(Project::new(fleet, EffectiveConfig::default(), "yard"));
        Yard { logs: names.iter().map(prepared).collect(), names, fleet, feed: Feed::default() }
    }

    fn add(&self, project: usize) -> TaskId {
        let task = self.feed.task();
        self.logs[project].append(&[self.feed.created(&task)]).unwrap();
        task
    }

    /// Adds `tasks` tasks, spread evenly over the projects.
    fn fill(&self, tasks: usize) {
        for log in &self.logs {
            let mut left = tasks.div_ceil(self.logs.len());
            while left > 0 {
                let count = left.min(BATCH);
                let batch: Vec<_> =
                    (0..count).map(|_| self.feed.created(&self.feed.task())).collect();
                log.append(&batch).unwrap();
                left -= count;
            }
        }
    }
}

fn percent(cores: f64) -> String {
    format!("{:.1} %", cores * 100.0)
}

fn row(what: String, used: &Used) -> Vec<String> {
    vec![
        what,
        used.connections.to_string(),
        used.consumers.to_string(),
        format!("{:.0} MiB", used.mib),
        percent(used.servers),
        format!("{:.0}", used.messages_in),
        format!("{:.0}", used.messages_out),
        percent(used.own),
        percent(used.others),
    ]
}

const USED: [&str; 9] = [
    "workers",
    "connections",
    "consumers",
    "memory",
    "processor of the servers",
    "messages in/s",
    "out/s",
    "of the workers",
    "of others",
];

fn idle(nodes: &[Server], workers: &mut Workers, sizes: Sizes) {
    let mut rows = Vec::new();
    let mut asked = Vec::new();
    for count in sizes.workers {
        let start = Instant::now();
        let more = count - workers.len();
        workers.grow(count);
        let each = start.elapsed().as_secs_f64() * 1e3 / more.max(1) as f64;
        std::thread::sleep(sizes.settle);
        let (gauge, before) = (Gauge::start(nodes), workers.floor().asked.now());
        std::thread::sleep(sizes.window);
        let used = gauge.read();
        rows.push(row(count.to_string(), &used));
        asked.push(asked_row(
            format!("{count} idle, {} to start one", ms(each)),
            workers,
            before,
            &used,
        ));
    }
    println!("### Idle, in {} projects\n", sizes.projects);
    table(&USED, &rows);
    table(&ASKED, &asked);
}

const ASKED: [&str; 9] = [
    "a second",
    "appends",
    "of them refused",
    "events delivered",
    "presence",
    "beats",
    "looks",
    "reads",
    "errors",
];

fn asked_row(what: String, workers: &Workers, before: [u64; 8], used: &Used) -> Vec<String> {
    let after = workers.floor().asked.now();
    let rates = before
        .iter()
        .zip(after)
        .map(|(before, after)| format!("{:.0}", (after - before) as f64 / used.time.as_secs_f64()));
    std::iter::once(what).chain(rates).collect()
}

/// Measures the cost of one event that all workers follow.
fn news(nodes: &[Server], workers: &Workers, yard: &Yard, sizes: Sizes) {
    let (before, gauge) = (workers.floor().asked.now()[2], Gauge::start(nodes));
    std::thread::sleep(sizes.window / 2);
    let calm = gauge.read();
    let gauge = Gauge::start(nodes);
    for n in 0..sizes.fleet_events {
        yard.fleet.slow_down(&format!("bench:{n}"), Timestamp(1)).unwrap();
    }
    let all = (sizes.fleet_events * workers.len()) as u64;
    let heard = || (workers.floor().asked.now()[2] - before >= all).then_some(());
    poll(PATIENCE, heard).unwrap();
    let used = gauge.read();
    let spent = (used.servers - calm.servers) * used.time.as_secs_f64();
    println!("### An event that {} workers follow\n", workers.len());
    table(
        &["events", "deliveries", "time", "servers' processor, a delivery"],
        &[vec![
            sizes.fleet_events.to_string(),
            all.to_string(),
            format!("{:.1} s", used.time.as_secs_f64()),
            format!("{:.1} µs", spent * 1e6 / all as f64),
        ]],
    );
}

/// Measures the time from a task's append to the end of its claim, with workers that are otherwise
/// idle.
fn pick_up(workers: &Workers, yard: &Yard, sizes: Sizes) {
    let floor = workers.floor();
    floor.take_claims();
    floor.work(Duration::ZERO);
    let mut sample = Sample::default();
    for n in 0..sizes.picked_up {
        let added = Instant::now();
        let task = yard.add(n % yard.names.len());
        let taken = poll(PATIENCE, || floor.take_claims().into_iter().find(|t| t.task == task));
        sample.add(taken.unwrap().at - added);
    }
    floor.rest();
    println!("### From `task add` to the claim\n");
    let of = |share| ms(sample.percentile(share));
    table(
        &["tasks", "p50", "p90", "p99"],
        &[vec![sizes.picked_up.to_string(), of(0.5), of(0.9), of(0.99)]],
    );
}

/// Every worker claims a task and keeps it, as with agents, whose tasks last minutes.
fn hold_on(nodes: &[Server], workers: &Workers, yard: &Yard, sizes: Sizes) -> (Used, [u64; 8]) {
    let floor = workers.floor();
    yard.fill(workers.len());
    calm(workers);
    floor.take_claims();
    floor.work(PATIENCE * 10);
    let mut claimed = 0;
    let all = poll(PATIENCE, || {
        claimed += floor.take_claims().len();
        (claimed >= workers.len()).then_some(())
    });
    all.unwrap();
    std::thread::sleep(sizes.settle);
    let (gauge, before) = (Gauge::start(nodes), floor.asked.now());
    std::thread::sleep(sizes.window * 2);
    (gauge.read(), before)
}

/// Waits until all views have caught up and no worker reads more events.
fn calm(workers: &Workers) {
    let delivered = || workers.floor().asked.now()[2];
    let mut before = delivered();
    loop {
        std::thread::sleep(QUIET);
        let after = delivered();
        if after == before {
            return;
        }
        before = after;
    }
}

fn busy(nodes: &[Server], workers: &Workers, yard: &Yard, sizes: Sizes) {
    let floor = workers.floor();
    let seconds = (sizes.settle + sizes.window).as_secs_f64();
    let held = seconds / sizes.hold.as_secs_f64() * 1.2 * workers.len() as f64;
    let passes = [
        ("held", sizes.hold, held as usize),
        ("not held", Duration::ZERO, (seconds * sizes.a_second as f64) as usize),
    ];
    let (mut figures, mut rows, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    for (what, hold, tasks) in passes {
        yard.fill(tasks);
        calm(workers);
        floor.work(hold);
        std::thread::sleep(sizes.settle);
        floor.take_claims();
        let (gauge, before) = (Gauge::start(nodes), floor.asked.now());
        std::thread::sleep(sizes.window);
        let (used, after) = (gauge.read(), floor.asked.now());
        let claims = floor.take_claims();
        floor.rest();
        let what = match hold.is_zero() {
            true => what.to_owned(),
            false => format!("{what} for {} ms", hold.as_millis()),
        };
        let mut sample = Sample::default();
        claims.iter().for_each(|taken| sample.add(taken.took));
        let mut once: HashMap<&TaskId, u64> = HashMap::new();
        claims.iter().for_each(|taken| *once.entry(&taken.task).or_default() += 1);
        assert!(once.values().all(|count| *count == 1), "a task was claimed twice");
        figures.push(vec![
            what.clone(),
            format!("{:.0}", claims.len() as f64 / used.time.as_secs_f64()),
            ms(sample.median()),
            ms(sample.percentile(0.99)),
            format!("{:.3}", (after[1] - before[1]) as f64 / claims.len().max(1) as f64),
            format!(
                "{:.0} µs",
                used.servers * used.time.as_secs_f64() * 1e6 / claims.len().max(1) as f64
            ),
        ]);
        rows.push(row(what.clone(), &used));
        asked.push(asked_row(what, workers, before, &used));
        // Workers that still have a task complete it.
        std::thread::sleep(hold + sizes.settle);
    }
    let (used, before) = hold_on(nodes, workers, yard, sizes);
    rows.push(row("held on".to_owned(), &used));
    asked.push(asked_row("held on".to_owned(), workers, before, &used));
    println!("### Busy: {} workers\n", workers.len());
    let headings =
        ["tasks", "claims/s", "p50", "p99", "refused a claim", "servers' processor a task"];
    table(&headings, &figures);
    table(&USED, &rows);
    table(&ASKED, &asked);
}
