//! `bench-fleet [--quick]`: compares a command on a shared store with the same command on a local
//! store, and measures how long a new machine needs to build its view of a long log.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring tool")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hookloop_bench::figures::{Sample, ms, table, times};
use hookloop_bench::ours::Feed;
use hookloop_bench::processes::{Runner, beside, round_robin};
use hookloop_store::jetstream::{self, JetStreamLog, NatsOptions, ServerSafety};
use hookloop_store::log::EventLog;
use hookloop_testbed::{Cluster, Server};

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let cluster = Cluster::three();
    let access = NatsOptions::at(
        cluster.urls().join(","),
        cluster.nodes().iter().map(Server::monitor_url).collect(),
    );
    println!("## A command on a shared store\n");
    commands(&access, if quick { 5 } else { 60 });
    println!("## A new machine\n");
    new_machine(&access, if quick { 20_000 } else { 1_000_000 });
}

/// A dispatcher process that is killed when the measurement ends.
struct Resident(Child);

impl Drop for Resident {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn hookloop() -> PathBuf {
    beside("hookloop")
}

fn run(home: &Path, args: &[&str]) {
    let done = Command::new(hookloop()).args(args).current_dir(home).env("HOME", home).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn commands(access: &NatsOptions, rounds: usize) {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".config/hookloop");
    std::fs::create_dir_all(&config).unwrap();
    let monitors = serde_json::to_string(&access.access.monitoring_urls).unwrap();
    let text = format!(
        "version: 1\nstores:\n  \"{}\": {{monitoring_urls: {monitors}}}\n",
        access.access.urls
    );
    std::fs::write(config.join("config.yaml"), text).unwrap();
    let warm_ups = rounds / 10 + 1;
    let projects = ["local", "shared"].map(|name| home.path().join(name));
    for (project, store) in projects.iter().zip(["sqlite", &access.access.urls]) {
        std::fs::create_dir(project).unwrap();
        let text = format!("version: 1\nproject: bench-commands\nstore: \"{store}\"\n");
        std::fs::write(project.join("hookloop.yaml"), text).unwrap();
        for i in 0..rounds + warm_ups {
            let (needs, then) = (format!("t{i}"), format!("u{i}"));
            let project = project.to_str().unwrap();
            run(home.path(), &["-C", project, "task", "add", "first", "--id", &needs]);
            run(
                home.path(),
                &["-C", project, "task", "add", "then", "--id", &then, "--depends-on", &needs],
            );
        }
    }
    let stay = Command::new(hookloop())
        .args(["dispatch", "--daemon"])
        .current_dir(&projects[1])
        .env("HOME", home.path())
        .stdout(std::process::Stdio::null())
        .spawn();
    let _resident = Resident(stay.unwrap());
    let runners =
        projects.each_ref().map(|p| Runner::new(&hookloop(), "task complete t{i}", p, home.path()));
    let append = append(access, rounds * 4);
    let costs = round_robin(&runners, 0, warm_ups, rounds);
    let (local, shared) = (costs[0].wall.median(), costs[1].wall.median());
    let bound = 1.5 * local + append;
    table(
        &["`task complete`", "wall, p50", "cpu, p50", "memory"],
        &["local", "shared"]
            .iter()
            .zip(&costs)
            .map(|(name, cost)| {
                let memory = format!("{:.1} MiB", cost.rss_kib as f64 / 1024.0);
                vec![(*name).to_owned(), ms(cost.wall.median()), ms(cost.cpu.median()), memory]
            })
            .collect::<Vec<_>>(),
    );
    println!(
        "One append: {}. Shared against 1.5 × local plus one append ({}): {}.\n",
        ms(append),
        ms(bound),
        times(shared / bound)
    );
}

/// Returns the median duration of an append, in milliseconds.
fn append(access: &NatsOptions, count: usize) -> f64 {
    let log = JetStreamLog::connect(access, &"bench-one".parse().unwrap()).unwrap();
    log.prepare().unwrap();
    let feed = Feed::default();
    let mut sample = Sample::default();
    for _ in 0..count {
        let created = [feed.created(&feed.task())];
        sample.time(|| log.append(&created).unwrap());
    }
    sample.median()
}

/// Writes a log of created, started and completed tasks, and builds views from it.
fn new_machine(access: &NatsOptions, events: usize) {
    let name = "bench-long".parse().unwrap();
    let log = JetStreamLog::connect(access, &name).unwrap();
    log.prepare().unwrap();
    let feed = Feed::default();
    let start = Instant::now();
    let mut stored = 0;
    while stored < events {
        let lives: Vec<_> = (0..333).flat_map(|_| feed.life()).collect();
        log.append(&lives).unwrap();
        stored += lives.len();
    }
    let filled = start.elapsed();
    let machine = || {
        let dir = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let store = jetstream::open(access, &name, &dir.path().join("view.db")).unwrap().store;
        let tasks = store.glance(|view| Ok(view.totals()?.tasks())).unwrap();
        assert_eq!(tasks as usize, stored / 3);
        (dir, store, start.elapsed())
    };
    let (_dir, scratch, from_scratch) = machine();
    let start = Instant::now();
    scratch.save_snapshot().unwrap();
    let saved = start.elapsed();
    let (_other, snapshot, from_snapshot) = machine();
    let hash =
        |store: &hookloop_store::store::Store| store.glance(|view| view.state_hash()).unwrap();
    assert_eq!(hash(&scratch), hash(&snapshot));
    let rate = |took: Duration| format!("{:.0}/s", stored as f64 / took.as_secs_f64());
    table(
        &[&format!("{stored} events"), "time", "events a second"],
        &[
            ("written, in batches", filled),
            ("view from scratch", from_scratch),
            ("snapshot saved", saved),
            ("view from the snapshot", from_snapshot),
        ]
        .map(|(what, took)| vec![what.to_owned(), ms(took.as_secs_f64() * 1e3), rate(took)]),
    );
}
