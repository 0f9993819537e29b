//! Sixteen concurrent processes on one project: ten writers, six readers.
//!
//! No command may fail because of the others, no acknowledged write may be lost, and no reader may
//! see a gap. If several processes start the same task, only one may succeed.
//!
//! The full size:
//! `HOOKLOOP_STRESS_SECONDS=120 cargo nextest run -p hookloop --test shared_log many_processes::`

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use hookloop_testkit::TestProject;
use serde_json::Value;

use crate::support::{number_from_env, project_with, reactions, sqlite_integrity};

const SECONDS: u64 = 20;
const WRITERS: usize = 10;
const READERS: usize = 6;
/// Rounds of a writer between two tasks for which all writers compete.
const ROUNDS_PER_SHARED: usize = 5;
/// Rounds of one reader between two rebuilds.
const ROUNDS_PER_REBUILD: usize = 20;

/// The commands that were acknowledged to a writer.
#[derive(Default)]
struct Told {
    added: Vec<String>,
    completed: Vec<String>,
    started: Vec<String>,
}

#[test]
fn sixteen_concurrent_processes_lose_no_acknowledged_command() {
    let project = project_with(reactions::CONFIG);
    let end =
        Instant::now() + Duration::from_secs(number_from_env("HOOKLOOP_STRESS_SECONDS", SECONDS));
    let told: Vec<Told> = thread::scope(|scope| {
        let project = &project;
        let write = |number| scope.spawn(move || write_until(project, number, end));
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let read = |number| scope.spawn(move || read_until(project, number, end));
        let readers: Vec<_> = (0..READERS).map(read).collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    project.settle();
    let events = project.events_from(1);
    assert_kept(&told, &events);
    assert!(reactions::assert_done_once(&events) > 0, "no task was completed");
    project.assert_intact();
    assert_eq!(sqlite_integrity(&project), "ok");
}

/// Adds two tasks, the second dependent on the first, completes one, and competes for a shared
/// task.
fn write_until(project: &TestProject, writer: usize, end: Instant) -> Told {
    let mut told = Told::default();
    let mut round = 0;
    while Instant::now() < end {
        let (first, second) = (format!("w{writer}-{round}-a"), format!("w{writer}-{round}-b"));
        project.json(&["task", "add", &first, "--id", &first, "--label", "agent"]);
        project.json(&["task", "add", &second, "--id", &second, "--depends-on", &first]);
        project.json(&["task", "complete", &first, "--result", "done"]);
        told.added.extend([first.clone(), second]);
        told.completed.push(first);
        if round % ROUNDS_PER_SHARED == 0 {
            want_shared(project, round, &mut told);
        }
        round += 1;
    }
    assert!(round > 0, "writer {writer} did no round");
    told
}

fn want_shared(project: &TestProject, round: usize, told: &mut Told) {
    let shared = format!("shared-{round}");
    if is_accepted(project, &["task", "add", &shared, "--id", &shared]) {
        told.added.push(shared.clone());
    }
    if is_accepted(project, &["task", "start", &shared]) {
        told.started.push(shared);
    }
}

/// Returns whether a command was accepted for which other processes compete.
fn is_accepted(project: &TestProject, args: &[&str]) -> bool {
    let output = project.json_command(args).output().unwrap();
    match output.status.code() {
        Some(0) => true,
        Some(1) => {
            let why: Value = serde_json::from_slice(&output.stderr).unwrap();
            let why = why["error"]["message"].as_str().unwrap();
            assert!(why.contains("already"), "{args:?}: {why}");
            false
        }
        _ => panic!("{args:?}: {output:?}"),
    }
}

/// Repeats one query, and rebuilds the view from time to time while other processes run.
fn read_until(project: &TestProject, reader: usize, end: Instant) {
    let mut next = 1;
    for round in 1.. {
        match reader % 3 {
            0 => next = read_on(project, next),
            1 => drop(project.json(&["task", "ready"])),
            _ => next = look_at_status(project, next),
        }
        if reader == 0 && round % ROUNDS_PER_REBUILD == 0 {
            project.rebuild();
        }
        if Instant::now() > end {
            break;
        }
    }
    assert!(reader % 3 == 1 || next > 1, "reader {reader} read no events");
}

/// Reads the events from `next` on and checks that there is no gap.
fn read_on(project: &TestProject, mut next: u64) -> u64 {
    for event in project.events_from(next) {
        assert_eq!(event["seq"], next);
        next += 1;
    }
    next
}

/// Checks that the number of events never decreases.
fn look_at_status(project: &TestProject, seen: u64) -> u64 {
    let status = project.json(&["status"]);
    let events = status["events"].as_u64().unwrap();
    assert!(events + 1 >= seen, "{status} after {seen}");
    events + 1
}

fn assert_kept(told: &[Told], events: &[Value]) {
    let mut found: HashMap<(&str, &str), usize> = HashMap::new();
    for event in events {
        let key = (event["type"].as_str().unwrap(), event["node_id"].as_str().unwrap());
        *found.entry(key).or_default() += 1;
    }
    let check = |kind: &str, ids: Vec<&String>| {
        assert!(!ids.is_empty(), "no {kind}");
        for id in &ids {
            assert_eq!(found.get(&(kind, id.as_str())), Some(&1), "{kind} of {id}");
        }
        let mut unique = ids.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{kind} was acknowledged twice");
    };
    check("task_created", told.iter().flat_map(|told| &told.added).collect());
    check("task_completed", told.iter().flat_map(|told| &told.completed).collect());
    check("task_started", told.iter().flat_map(|told| &told.started).collect());
}
