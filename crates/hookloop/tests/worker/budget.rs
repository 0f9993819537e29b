//! The shared budget of all workers, which also holds when they are killed.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use hookloop_testkit::SeededRandom;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::delivery_project::DeliveryProject;
use crate::support::number_from_env;
use crate::worker::Working;

const WORKERS: usize = 5;
const JOBS: usize = 10;
const BUDGET: u64 = 5_000_000;
const RESERVED: u64 = 100_000;
const TASKS: usize = 80;
/// Longer than the test takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// Returns turns that use their reservation, less, or several times as much, which they report step
/// by step.
fn turns(random: &mut SeededRandom) -> Value {
    let turn = |cost: u64, steps: u64, sleep_ms: u64| {
        let usage = json!({ "input_tokens": 1_000, "output_tokens": 50, "cost_micros": cost });
        json!({ "say": "working", "usage": usage, "usage_steps": steps, "sleep_ms": sleep_ms })
    };
    let mut turns: Vec<Value> = Vec::new();
    for number in 0..3 {
        let sleep_ms = 50 + random.below(400);
        let mut one = match random.below(4) {
            0 => turn(RESERVED + random.below(2 * RESERVED), 40, sleep_ms),
            1 => turn(RESERVED, 0, sleep_ms),
            _ => turn(random.below(RESERVED), 0, sleep_ms),
        };
        one["write"] = json!({ "work.txt": format!("{number}\n") });
        turns.push(one);
    }
    let mut last = turn(random.below(RESERVED), 0, 10);
    last["say"] = json!("done\n<promise>COMPLETE</promise>");
    turns.push(last);
    Value::Array(turns)
}

fn worker(project: &DeliveryProject, number: usize) -> Command {
    let (name, agent) = (format!("w{number}"), format!("scripted:turns/{number}.json"));
    let jobs = JOBS.to_string();
    let args = ["worker", "--name", &name, "--agent", &agent, "--jobs", &jobs, "--no-merge"];
    project.json_command(&[&args[..], &["--lease", "10s"]].concat())
}

/// The spent and reserved amounts, summed from the events of the fleet's log.
#[derive(Debug, Default)]
struct Account {
    most: u64,
    used: u64,
    lost: u64,
    turns: u64,
}

fn account(events: &[Value]) -> Account {
    let mut open = std::collections::HashMap::<String, u64>::new();
    let mut account = Account::default();
    for event in events {
        let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
        let session = event["session"].as_str().unwrap_or_default().to_owned();
        match kind {
            "budget_reserved" => {
                let amount = data["cost_micros"].as_u64().unwrap();
                *open.entry(data["session"].as_str().unwrap().to_owned()).or_default() += amount;
            }
            "turn_ended" => {
                let held = open.remove(&session).unwrap_or(0);
                let used = data["usage"]["cost_micros"].as_u64().unwrap_or(0);
                account.used += used;
                account.turns += 1;
                if data["is_partial"] == true {
                    account.lost += held.saturating_sub(used);
                }
            }
            "session_resumed" => account.lost += open.remove(&session).unwrap_or(0),
            "session_ended" => drop(open.remove(&session)),
            _ => {}
        }
        let total = account.used + account.lost + open.values().sum::<u64>();
        account.most = account.most.max(total);
    }
    account
}

#[test]
fn fifty_concurrent_sessions_do_not_exceed_the_fleet_budget() {
    let seed = number_from_env("HOOKLOOP_BUDGET_SEED", u64::from(std::process::id()));
    let told = format!("HOOKLOOP_BUDGET_SEED={seed}");
    let mut random = SeededRandom::new(seed);
    let project =
        DeliveryProject::new("delivery: {}\nhooks: {before_submit: []}\n", &[("a.txt", "a\n")]);
    let directory = project.root().join("turns");
    fs::create_dir_all(&directory).unwrap();
    for number in 0..WORKERS {
        fs::write(directory.join(format!("{number}.json")), turns(&mut random).to_string())
            .unwrap();
    }
    for number in 0..TASKS {
        project.add(&format!("t{number}"), &[]);
    }
    project.json_values(&[
        "fleet",
        "budget",
        "--cost",
        "5",
        "--period",
        "total",
        "--reserve-cost",
        "0.1",
    ]);
    let end = Instant::now() + LONGEST;
    let killed: u32 = thread::scope(|scope| {
        let all: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (project, mut random) = (&project, SeededRandom::new(random.next_u64()));
                scope.spawn(move || {
                    let mut killed = 0;
                    for _ in 0..3 {
                        let mut working = Working::start(worker(project, number));
                        thread::sleep(
                            Duration::from_secs(2) + random.moment_before(Duration::from_secs(5)),
                        );
                        working.child.kill().unwrap();
                        working.child.wait().unwrap();
                        killed += 1;
                    }
                    killed
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // The workers now run until no turn is running and none can start.
    let mut workers: Vec<Working> =
        (0..WORKERS).map(|number| Working::start(worker(&project, number))).collect();
    let is_over = || {
        let usage = project.json_values(&["usage", "--fleet"]).remove(0);
        let held = usage["budget"]["reservations"].as_array().unwrap().len();
        let left = usage["budget"]["limits"][0]["left"]["cost_micros"].as_u64().unwrap();
        let open = project.json_values(&["task", "list", "--limit", "0"]).remove(0);
        let is_open = |task: &&Value| matches!(task["state"].as_str(), Some("ready" | "active"));
        let open = open.as_array().unwrap().iter().filter(is_open).count();
        held == 0 && (left < RESERVED || open == 0)
    };
    while !is_over() {
        assert!(
            Instant::now() < end,
            "{told} the workers do not finish: {:?}",
            project.json_values(&["usage", "--fleet"])
        );
        thread::sleep(Duration::from_millis(200));
    }
    for working in &mut workers {
        working.signal(Signal::TERM);
    }
    for working in workers {
        working.end();
    }
    let account = account(&project.json_values(&["log", "--fleet", "--all"]));
    assert!(account.most <= BUDGET + RESERVED, "{told} {account:?}");
    let usage = project.json_values(&["usage", "--fleet"]).remove(0);
    let limit = &usage["budget"]["limits"][0];
    assert_eq!(limit["used"]["cost_micros"], account.used, "{told} {usage}");
    assert_eq!(limit["written_off"]["cost_micros"], account.lost, "{told} {usage}");
    assert_eq!(usage["budget"]["reservations"].as_array().unwrap().len(), 0, "{told} {usage}");
    // The project's own log has the same sums.
    let of_project = project.json_values(&["usage"]).remove(0);
    assert_eq!(of_project["total"]["cost_micros"], account.used, "{told} {of_project}");
    assert_eq!(of_project["total"]["turns"], account.turns, "{told} {of_project}");
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{killed} killed, {account:?}");
}
