//! Concurrent sessions that share a budget. Some are killed, and some of these are resumed.

use std::process::{Child, Output};
use std::time::Duration;
use std::{fs, thread};

use hookloop_testkit::{SeededRandom, TestProject};
use serde_json::Value;

use crate::support::{number_from_env, project_with};
use crate::usage::{account, turn, turns};

const SESSIONS: usize = 50;
const BUDGET: u64 = 5_000_000;
const RESERVED: u64 = 100_000;
/// A time within which a turn is most likely running.
const KILLED_WITHIN: Duration = Duration::from_millis(1_500);
const CONFIG: &str =
    "version: 1\nlimits: {budget: {cost: 5, period: total}, reserve_per_turn: {cost: 0.1}}\n";

fn start(project: &TestProject, number: usize) -> Child {
    let (name, agent) = (format!("s{number}"), format!("scripted:turns/{number}.json"));
    let mut command = project.json_command(&[
        "run",
        "work",
        "--name",
        &name,
        "--agent",
        &agent,
        "--no-changes-ok",
        "--share-checkout",
    ]);
    command.env("PATH", std::env::var_os("PATH").unwrap()).spawn().unwrap()
}

fn write_turns(project: &TestProject, number: usize, turns: &Value) {
    let directory = project.root().join("turns");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{number}.json")), turns.to_string()).unwrap();
}

/// Runs one session, which may be killed and then resumed; returns the number of kills.
fn perform(project: &TestProject, number: usize, mut random: SeededRandom) -> u32 {
    let mut process = start(project, number);
    let mut killed = 0;
    while random.below(2) == 0 {
        thread::sleep(random.moment_before(KILLED_WITHIN));
        process.kill().unwrap();
        let output = process.wait_with_output().unwrap();
        killed += u32::from(output.status.code().is_none());
        if output.status.code().is_some() || random.below(2) == 0 {
            return killed;
        }
        let name = format!("s{number}");
        process = project.json_command(&["resume", &name, "--share-checkout"]).spawn().unwrap();
    }
    let output = process.wait_with_output().unwrap();
    // A resumed session may already have been ended by another session that started.
    let codes: &[i32] = if killed > 0 { &[6, 1, 4] } else { &[6, 4] };
    assert!(is_one_of(&output, codes), "{number}: {output:?}");
    killed
}

fn is_one_of(output: &Output, codes: &[i32]) -> bool {
    output.status.code().is_some_and(|code| codes.contains(&code))
}

#[test]
fn concurrent_sessions_do_not_exceed_the_budget_even_if_killed() {
    let seed = number_from_env("HOOKLOOP_BUDGET_SEED", u64::from(std::process::id()));
    let told = format!("HOOKLOOP_BUDGET_SEED={seed}");
    let mut random = SeededRandom::new(seed);
    let project = project_with(CONFIG);
    for number in 0..SESSIONS {
        write_turns(&project, number, &turns(&mut random, 4, RESERVED));
    }
    // At least one session is killed during a turn.
    write_turns(&project, SESSIONS, &Value::Array(vec![turn(10, 0, 20_000)]));
    kill_in_turn(&project, SESSIONS);
    let killed: u32 = thread::scope(|scope| {
        let one = |number: usize| {
            let (project, random) = (&project, SeededRandom::new(random.next_u64()));
            scope.spawn(move || perform(project, number, random))
        };
        let all: Vec<_> = (0..SESSIONS).map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // The next session ends the killed ones.
    let last = start(&project, 0).wait_with_output().unwrap();
    assert!(is_one_of(&last, &[0, 4]), "{told} {last:?}");
    let sessions = project.json(&["sessions", "list", "--limit", "1000"]);
    let is_over = |session: &Value| !session["ended_at"].is_null();
    assert!(sessions.as_array().unwrap().iter().all(is_over), "{told} {sessions}");
    let account = account(&project.events_from(1));
    assert!(account.most <= BUDGET + RESERVED, "{told} {account:?}");
    assert!(account.used + account.lost >= BUDGET / 10 * 9, "{told} {account:?}");
    assert!(
        killed > 0 && account.lost > 0 && account.refusals > 0,
        "{told} {killed} killed, {account:?}"
    );
    let usage = project.json(&["usage"]);
    let budget = &usage["budget"];
    assert_eq!(usage["total"]["cost_micros"], account.used, "{told} {usage}");
    assert_eq!(usage["total"]["turns"], account.turns, "{told} {usage}");
    assert_eq!(budget["limits"][0]["used"]["cost_micros"], account.used, "{told} {usage}");
    assert_eq!(budget["limits"][0]["written_off"]["cost_micros"], account.lost, "{told} {usage}");
    assert_eq!(budget["reservations"].as_array().unwrap().len(), 0, "{told} {usage}");
    project.assert_intact();
    assert_eq!(project.json(&["usage"]), usage, "{told}");
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{killed} killed, {account:?}");
}

/// Kills a session during a turn, which never reports its usage.
fn kill_in_turn(project: &TestProject, number: usize) {
    let mut process = start(project, number);
    let holds = || project.json(&["usage"])["budget"]["reserved"]["cost_micros"] == RESERVED;
    while !holds() {
        thread::sleep(Duration::from_millis(5));
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn the_reservation_of_a_killed_turn_counts_as_spent() {
    let project = project_with(CONFIG);
    write_turns(&project, 1, &Value::Array(vec![turn(10, 0, 20_000)]));
    write_turns(&project, 2, &turns(&mut SeededRandom::new(1), 1, 1_000));
    kill_in_turn(&project, 1);
    let budget = project.json(&["usage"])["budget"].clone();
    assert_eq!(budget["reservations"][0]["running_here"], false, "{budget}");
    assert_eq!(budget["limits"][0]["written_off"]["cost_micros"], 0, "can be resumed: {budget}");
    // The next session ends the killed one.
    assert_eq!(start(&project, 2).wait().unwrap().code(), Some(6), "there is no gate");
    let budget = project.json(&["usage"])["budget"].clone();
    assert_eq!(budget["limits"][0]["written_off"]["cost_micros"], RESERVED, "{budget}");
    assert_eq!(budget["reserved"]["cost_micros"], 0, "{budget}");
}

#[test]
fn a_session_does_not_wait_for_the_reservation_of_a_killed_session() {
    let config = "version: 1\nlimits: {budget: {cost: 0.15}, reserve_per_turn: {cost: 0.1}}\n";
    let project = project_with(config);
    write_turns(&project, 1, &Value::Array(vec![turn(10, 0, 20_000)]));
    write_turns(&project, 2, &Value::Array(vec![turn(10, 0, 2_000), turn(10, 0, 20_000)]));
    // The session waits for the running one, then finds only the reservation of a killed one.
    let waiting = {
        let mut first = start(&project, 1);
        let holds = || project.json(&["usage"])["budget"]["reserved"]["cost_micros"] == RESERVED;
        while !holds() {
            thread::sleep(Duration::from_millis(5));
        }
        let waiting = start(&project, 2);
        // After its start, the session no longer ends other sessions.
        let begins = || project.json(&["sessions", "list"]).as_array().unwrap().len() == 2;
        while !begins() {
            thread::sleep(Duration::from_millis(5));
        }
        first.kill().unwrap();
        first.wait().unwrap();
        waiting.wait_with_output().unwrap()
    };
    assert_eq!(waiting.status.code(), Some(4), "{waiting:?}");
    let why = project.json(&["why", "s2"]);
    let reasons = why["reasons"].to_string();
    assert!(reasons.contains("budget") && reasons.contains("$0.15"), "{why}");
    assert_eq!(why["next"], "hookloop usage");
}

#[test]
fn a_turn_extends_its_reservation_until_the_budget_is_exhausted() {
    let project = project_with(CONFIG);
    write_turns(&project, 1, &Value::Array(vec![turn(1_000_000, 40, 400)]));
    let agent = ["run", "x", "--agent", "scripted:turns/1.json"];
    let args = [&agent[..], &["--stop-when", "turn", "--no-changes-ok"]].concat();
    assert_eq!(
        project.json_command(&args).output().unwrap().status.code(),
        Some(6),
        "there is no gate"
    );
    let used =
        |project: &TestProject| project.json(&["usage"])["total"]["cost_micros"].as_u64().unwrap();
    assert_eq!(used(&project), 1_000_000, "ten times the first reservation");
    write_turns(&project, 2, &Value::Array(vec![turn(50_000_000, 1_000, 2_000)]));
    let ended = start(&project, 2).wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    assert!((BUDGET - RESERVED..=BUDGET).contains(&used(&project)), "{}", used(&project));
    let account = account(&project.events_from(1));
    assert!(account.most <= BUDGET && account.refusals == 1, "{account:?}");
}
