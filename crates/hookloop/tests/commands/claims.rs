//! Claims of tasks: claiming, heartbeats, and expired leases.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project, strings};
use crate::commands::races::at_once;

/// The shortest lease that is allowed.
const SHORT: &[&str] = &["--lease", "1s"];

fn with_task() -> Project {
    let project = Project::new();
    project.add("Goal", &["--id", "t"]);
    project
}

fn claim(project: &Project, options: &[&str]) -> Value {
    project.json(&[&["task", "claim"], options].concat())
}

fn check_refused(project: &Project, args: &[&str], part: &str) {
    let before = project.events().len();
    let error = project.fails(1, args);
    assert!(error.contains(part), "{args:?}: {error}");
    assert_eq!(project.events().len(), before, "{args:?}");
}

#[test]
fn a_claim_is_printed_and_recorded() {
    let project = with_task();
    let claimed = claim(&project, &["--agent", "ada", "--lease", "5m"]);
    assert_eq!((&claimed["id"], &claimed["state"]), (&json!("t"), &json!("active")));
    assert_eq!((&claimed["epoch"], &claimed["lease_ms"]), (&json!(1), &json!(300_000)));
    let held = json!({"agent": "ada", "epoch": 1, "lease_ms": 300_000});
    assert_eq!(claimed["claim"], held);
    assert_eq!(project.task("t")["claim"], held);
    let event = project.event("task_started");
    let recorded = json!({"agent": "ada", "epoch": 1, "lease_ms": 300_000});
    assert_eq!(event["data"], json!({"context": null, "claim": recorded}));
    assert!(project.ok(&["task", "show", "t"]).contains("ada, epoch 1, lease 5 min"));
    assert!(project.ok(&["task", "list"]).contains("claimed by ada, epoch 1"));
    assert!(project.ok(&["status"]).contains("1  claimed"));
    assert_eq!(project.json(&["status"])["claimed"], 1);
    project.ok(&["rebuild"]);
    assert_eq!(project.task("t")["claim"], held);
}

#[test]
fn the_name_of_a_claimant_comes_from_option_environment_or_user() {
    let project = with_task();
    let named = |command: &mut std::process::Command| {
        let run: ProgramOutput = command.output().unwrap().into();
        assert_eq!(run.code, 0, "{run:?}");
        let agent = project.task("t")["claim"]["agent"].as_str().unwrap().to_owned();
        project.ok(&["task", "requeue", "t", "--force"]);
        agent
    };
    let claim = || project.hookloop(&["task", "claim"]);
    assert!(named(&mut claim()).starts_with("tester@"));
    assert!(named(claim().env("HOOKLOOP_CLAIMANT", "")).starts_with("tester@"));
    assert_eq!(named(claim().env("HOOKLOOP_CLAIMANT", "ada")), "ada");
    assert_eq!(named(claim().args(["--agent", "bob"]).env("HOOKLOOP_CLAIMANT", "ada")), "bob");
    project.fails(2, &["task", "claim", "--agent", ""]);
}

#[test]
fn a_claim_takes_the_most_urgent_task_of_the_requested_types() {
    let project = Project::new();
    let tasks =
        [("low", "9", "bug"), ("docs", "0", "docs"), ("top", "1", "bug"), ("old", "1", "ci")];
    for (id, priority, kind) in tasks {
        project.add("Goal", &["--id", id, "--priority", priority, "--type", kind]);
    }
    project.add("Goal", &["--id", "untyped", "--priority", "1"]);
    let ready = project.json(&["task", "ready", "--type", "bug", "--type", "ci"]);
    assert_eq!(strings(&ready, "id"), ["top", "old", "low"]);
    let check = |options: &[&str], expected: &str| {
        assert_eq!(claim(&project, options)["id"], expected, "{options:?}");
    };
    check(&["--type", "bug"], "top");
    check(&["--type", "bug", "--type", "ci"], "old");
    check_refused(&project, &["task", "claim", "--type", "ci"], "no task of type ci is ready");
    check(&["low"], "low");
    check(&[], "docs");
    check(&[], "untyped");
    check_refused(&project, &["task", "claim"], "no task is ready");
    check_refused(&project, &["task", "claim", "low"], "run `hookloop task take-over low");
    project.fails(2, &["task", "claim", "low", "--type", "bug"]);
}

#[test]
fn concurrent_claims_get_different_tasks() {
    const ROUNDS: usize = 3;
    const PROCESSES: usize = 4;
    let project = Project::new();
    for n in 0..ROUNDS * PROCESSES {
        project.add("Goal", &["--id", &format!("t{n:02}")]);
    }
    let mut taken = Vec::new();
    for _ in 0..ROUNDS {
        for run in at_once(&project, &vec![vec!["task", "claim", "--json"]; PROCESSES]) {
            assert_eq!(run.code, 0, "{run:?}");
            let claimed: Value = serde_json::from_str(&run.stdout).unwrap();
            taken.push(claimed["id"].as_str().unwrap().to_owned());
        }
    }
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), ROUNDS * PROCESSES);
    let runs = at_once(&project, &vec![vec!["task", "claim"]; PROCESSES]);
    assert!(runs.iter().all(|run| run.code == 1), "{runs:?}");
}

#[test]
fn only_one_of_concurrent_claims_of_a_task_succeeds() {
    let project = with_task();
    let runs = at_once(&project, &vec![vec!["task", "claim", "t"]; 4]);
    assert_eq!(runs.iter().filter(|run| run.code == 0).count(), 1, "{runs:?}");
    assert_eq!(project.events_of("task_started").len(), 1);
}

#[test]
fn a_claimed_task_is_changed_only_with_the_epoch_of_its_claim() {
    let project = with_task();
    claim(&project, &["--agent", "ada"]);
    let complete = ["task", "complete", "t"];
    check_refused(&project, &complete, "claimed by `ada`, epoch 1");
    check_refused(&project, &complete, "run `hookloop task complete t --epoch 1");
    check_refused(&project, &["task", "block", "t", "--reason", "r"], "block t --epoch 1");
    check_refused(&project, &["task", "release", "t"], "release t --epoch 1");
    check_refused(&project, &["task", "delete", "t"], "delete t --force");
    check_refused(&project, &["task", "complete", "t", "--epoch", "2"], "`ada` holds it now");
    project.fails(2, &["task", "complete", "t", "--epoch", "1", "--force"]);
    let done = project.json(&["task", "complete", "t", "--epoch", "1"]);
    assert_eq!((&done["state"], &done["claim"]), (&json!("completed"), &Value::Null));
    check_refused(&project, &["task", "complete", "t", "--epoch", "1"], "it is completed");
}

#[test]
fn a_claimed_task_is_changed_by_force() {
    let project = with_task();
    claim(&project, &[]);
    project.ok(&["task", "block", "t", "--reason", "r", "--force"]);
    project.ok(&["task", "unblock", "t"]);
    assert_eq!(claim(&project, &[])["epoch"], 2);
    project.ok(&["task", "complete", "t", "--force"]);
}

#[test]
fn the_epoch_in_the_environment_applies_only_to_its_task() {
    let project = with_task();
    project.add("Other", &["--id", "other"]);
    claim(&project, &["t"]);
    let run = |task: &str, epoch: &str| -> ProgramOutput {
        let mut command = project.hookloop(&["task", "complete", task]);
        let held = [("HOOKLOOP_TASK_ID", "t"), ("HOOKLOOP_EPOCH", epoch)];
        command.envs(held).output().unwrap().into()
    };
    assert_eq!(run("t", "one").code, 2);
    assert_eq!(run("t", "7").code, 1);
    assert_eq!(run("other", "1").code, 0, "the task has no claim");
    assert_eq!(run("t", "1").code, 0);
}

#[test]
fn a_released_task_can_be_claimed_again_with_a_new_epoch() {
    let project = with_task();
    claim(&project, &[]);
    let released = ["task", "release", "t", "--epoch", "1", "--reason", "too hard"];
    let task = project.json(&released);
    assert_eq!((&task["state"], &task["claim"]), (&json!("ready"), &Value::Null));
    assert_eq!((&task["epoch"], &task["started_at"]), (&json!(1), &Value::Null));
    let expected = json!({"epoch": 1, "reason": "released", "note": "too hard"});
    assert_eq!(project.event("task_released")["data"], expected);
    check_refused(&project, &released, "claim 1 of task `t` is over");
    check_refused(&project, &["task", "complete", "t", "--epoch", "1"], "nobody holds it");
    assert_eq!(claim(&project, &[])["epoch"], 2);
    check_refused(&project, &["task", "heartbeat", "t", "--epoch", "1"], "epoch 2");
}

#[test]
fn a_heartbeat_leaves_no_event() {
    let project = with_task();
    claim(&project, &[]);
    let before = project.events().len();
    let beat = project.json(&["task", "heartbeat", "t", "--epoch", "1"]);
    assert_eq!(beat, json!({"id": "t", "epoch": 1}));
    assert_eq!(project.events().len(), before);
    assert!(project.fails(2, &["task", "heartbeat", "t"]).contains("--epoch N"));
    project.ok(&["verify"]);
}

#[test]
fn a_started_task_without_a_holder_is_requeued_by_force() {
    let project = with_task();
    project.ok(&["task", "start", "t"]);
    check_refused(&project, &["task", "requeue", "t"], "run `hookloop task requeue t --force");
    project.ok(&["task", "requeue", "t", "--force"]);
    assert_eq!(project.state_of("t"), "ready");
    assert_eq!(project.event("task_released")["data"]["reason"], "requeued");
    check_refused(&project, &["task", "requeue", "t", "--force"], "already ready");
}

fn spawn(project: &Project, args: &[&str]) -> Child {
    let mut command = project.hookloop(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_claim_with_heartbeats_is_not_taken_over() {
    let project = with_task();
    claim(&project, &["--agent", "ada", "--lease", "20s"]);
    for command in ["take-over", "requeue"] {
        let mut child = spawn(&project, &["task", command, "t"]);
        while child.try_wait().unwrap().is_none() {
            project.ok(&["task", "heartbeat", "t", "--epoch", "1"]);
            std::thread::sleep(Duration::from_millis(50));
        }
        let run: ProgramOutput = child.wait_with_output().unwrap().into();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert!(run.stderr.contains("`ada` sends heartbeats for task `t`, epoch 1"), "{run:?}");
    }
    assert_eq!(project.events_of("task_started").len(), 1);
}

#[test]
fn a_claim_with_an_expired_lease_is_taken_over() {
    let project = with_task();
    claim(&project, &[&["--agent", "ada"], SHORT].concat());
    let started = Instant::now();
    let stolen = project.json(&["task", "take-over", "t", "--agent", "bob"]);
    assert!(started.elapsed() >= Duration::from_secs(1), "a whole lease");
    assert_eq!((&stolen["epoch"], &stolen["claim"]["agent"]), (&json!(2), &json!("bob")));
    assert_eq!(project.events_of("task_started")[1]["data"]["took_over"], "ada");
    check_refused(
        &project,
        &["task", "complete", "t", "--epoch", "1"],
        "`bob` holds it now, epoch 2",
    );
    project.ok(&["task", "complete", "t", "--epoch", "2"]);
}

#[test]
fn only_one_of_concurrent_takeovers_of_an_expired_claim_succeeds() {
    let project = with_task();
    claim(&project, SHORT);
    let all = [
        vec!["task", "take-over", "t"],
        vec!["task", "take-over", "t"],
        vec!["task", "requeue", "t"],
    ];
    let runs = at_once(&project, &all);
    assert_eq!(runs.iter().filter(|run| run.code == 0).count(), 1, "{runs:?}");
    assert!(runs.iter().all(|run| run.code < 2), "{runs:?}");
    let (released, started) =
        (project.events_of("task_released").len(), project.events_of("task_started").len());
    assert_eq!(released + started, 2);
}
