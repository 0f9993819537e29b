//! Tasks of a worker: claiming, finishing, resuming and releasing.

use std::fs;
use std::process::Command;

use hookloop_testkit::{TestProject, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::project_with;
use crate::worker::{SOON, Working, is};

/// An agent that works until a file exists.
const WAITS: &str = "command:cat > /dev/null; echo $HOOKLOOP_SESSION >> started; \
     while [ ! -f go ]; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'";
const QUICK: &str =
    "command:cat > /dev/null; echo work >> work; echo '<promise>COMPLETE</promise>'";

fn worker(project: &TestProject, args: &[&str]) -> Command {
    project.json_command(&[&["worker"], args].concat())
}

fn add(project: &TestProject, id: &str) {
    project.json(&["task", "add", "goal", "--id", id]);
}

fn task(project: &TestProject, id: &str) -> Value {
    project.json(&["task", "show", id])
}

fn state(project: &TestProject, id: &str) -> String {
    task(project, id)["state"].as_str().unwrap().to_owned()
}

fn kinds(project: &TestProject) -> Vec<String> {
    let events = project.events_from(1);
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn count(kinds: &[String], kind: &str) -> usize {
    kinds.iter().filter(|found| *found == kind).count()
}

#[test]
fn a_worker_until_idle_completes_all_tasks_and_exits() {
    let project = project_with("version: 1\n");
    for id in ["a", "b", "c"] {
        add(&project, id);
    }
    project.json(&["task", "add", "last", "--id", "d", "--depends-on", "a"]);
    let said = Working::start(worker(&project, &["--agent", QUICK, "--until-idle"])).end();
    assert_eq!(said.iter().filter(|told| is(told, "claimed")).count(), 4, "{said:?}");
    for id in ["a", "b", "c", "d"] {
        assert_eq!(state(&project, id), "completed");
    }
    assert_eq!(count(&kinds(&project), "task_completed"), 4);
    project.assert_intact();
}

#[test]
fn a_worker_claims_only_tasks_with_its_labels_and_types() {
    let project = project_with("version: 1\n");
    for (id, more) in [
        ("a", &["--label", "gpu", "--type", "bugfix"][..]),
        ("b", &["--label", "gpu"]),
        ("c", &["--label", "docs", "--type", "bugfix"]),
        ("d", &[]),
    ] {
        project.json(&[&["task", "add", "goal", "--id", id], more].concat());
    }
    let took = |more: &[&str]| -> Vec<Value> {
        let args = [&["--agent", QUICK, "--until-idle"], more].concat();
        let said = Working::start(worker(&project, &args)).end();
        said.iter().filter(|told| is(told, "claimed")).map(|told| told["task"].clone()).collect()
    };
    assert_eq!(took(&["--label", "gpu", "--type", "bugfix"]), ["a"]);
    assert_eq!(took(&["--label", "gpu,other"]), ["b"]);
    assert_eq!(took(&["--type", "bugfix"]), ["c"]);
    assert_eq!(took(&[]), ["d"]);
}

/// Without worktrees, two concurrent sessions would change the same files.
#[test]
fn in_a_project_without_delivery_one_task_at_a_time_is_worked_on() {
    let project = project_with("version: 1\n");
    let agent = "command:cat > /dev/null; mkdir alone && sleep 0.2 && rmdir alone && \
         echo work >> work && echo '<promise>COMPLETE</promise>'";
    for id in ["a", "b", "c"] {
        add(&project, id);
    }
    let args = ["--agent", agent, "--until-idle", "--jobs", "3"];
    let workers = [(); 2].map(|()| Working::start(worker(&project, &args)));
    for worker in workers {
        worker.end();
    }
    let failed =
        project.events_from(1).into_iter().filter(|event| event["data"]["result"] == "failed");
    assert_eq!(failed.count(), 0);
    for id in ["a", "b", "c"] {
        assert_eq!(state(&project, id), "completed");
    }
}

#[test]
fn a_restarted_worker_resumes_the_session_of_its_killed_process() {
    let project = project_with("version: 1\n");
    add(&project, "a");
    let mut first = Working::start(worker(&project, &["--agent", WAITS]));
    let took = first.hear(|told| is(told, "claimed"));
    eventually("the agent works", SOON, || project.root().join("started").exists());
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    fs::write(project.root().join("go"), "").unwrap();
    let said = Working::start(worker(&project, &["--agent", WAITS, "--until-idle"])).end();
    let again = said.iter().find(|told| is(told, "claimed")).unwrap();
    assert_eq!((&again["session"], &again["resumed"]), (&took["session"], &Value::Bool(true)));
    assert_eq!(state(&project, "a"), "completed");
    let kinds = kinds(&project);
    assert_eq!((count(&kinds, "session_started"), count(&kinds, "session_ended")), (1, 1));
    assert_eq!((count(&kinds, "task_started"), count(&kinds, "task_completed")), (1, 1));
}

#[test]
fn a_draining_worker_finishes_its_task_and_claims_no_other() {
    let project = project_with("version: 1\n");
    add(&project, "a");
    let mut working = Working::start(worker(&project, &["--agent", WAITS]));
    working.hear(|told| is(told, "claimed"));
    working.signal(Signal::TERM);
    working.hear(|told| is(told, "state") && told["state"] == "draining");
    add(&project, "b");
    fs::write(project.root().join("go"), "").unwrap();
    working.end();
    assert_eq!((state(&project, "a"), state(&project, "b")), ("completed".into(), "ready".into()));
}

#[test]
fn a_task_not_finished_within_the_drain_timeout_is_released() {
    let project = project_with("version: 1\n");
    add(&project, "a");
    let mut working = Working::start(worker(&project, &["--agent", WAITS, "--drain", "1s"]));
    working.hear(|told| is(told, "claimed"));
    eventually("the agent works", SOON, || project.root().join("started").exists());
    working.signal(Signal::TERM);
    let said = working.end();
    let ended = said.iter().find(|told| is(told, "ended")).unwrap();
    assert_eq!(ended["outcome"], "cancelled", "{said:?}");
    assert_eq!(state(&project, "a"), "ready");
    let sessions = project.json(&["sessions", "list"]);
    assert_eq!(sessions[0]["state"], "cancelled", "{sessions}");
}

/// Each session has its own limits, so a task must not start new sessions for ever.
#[test]
fn a_task_whose_session_reaches_a_limit_is_blocked() {
    let project = project_with("version: 1\nlimits: {max_iterations: 2}\n");
    add(&project, "a");
    let agent = "command:cat > /dev/null; date +%N > changed; echo 'not yet'";
    let said = Working::start(worker(&project, &["--agent", agent, "--until-idle"])).end();
    assert_eq!(said.iter().filter(|told| is(told, "claimed")).count(), 1, "{said:?}");
    let task = task(&project, "a");
    assert_eq!(task["state"], "blocked", "{task}");
    assert!(task["blocked"]["reason"].as_str().unwrap().contains("iterations"), "{task}");
}

#[test]
fn a_task_with_an_expired_lease_is_taken_over_and_its_old_session_ended() {
    let project = project_with("version: 1\n");
    add(&project, "a");
    let args = ["--agent", WAITS, "--lease", "5s"];
    let mut first = Working::start(worker(&project, &[&args[..], &["--name", "first"]].concat()));
    let took = first.hear(|told| is(told, "claimed"));
    eventually("the agent works", SOON, || project.root().join("started").exists());
    first.signal(Signal::STOP);
    fs::write(project.root().join("go"), "").unwrap();
    // A second worker with the same log takes over.
    let session = took["session"].as_str().unwrap().to_owned();
    let mut second = Working::start(worker(&project, &[&args[..], &["--name", "second"]].concat()));
    second.hear(|told| is(told, "expired"));
    first.signal(Signal::CONT);
    // The stopped worker has lost the task, and does nothing more with it.
    let lost = first.hear(|told| is(told, "ended"));
    assert_eq!(lost["session"], session.as_str());
    first.signal(Signal::TERM);
    first.end();
    eventually("the task is done", SOON, || state(&project, "a") == "completed");
    second.signal(Signal::TERM);
    second.end();
    let kinds = kinds(&project);
    assert_eq!(count(&kinds, "task_completed"), 1, "{kinds:?}");
    let sessions = project.json(&["sessions", "list"]);
    let open = sessions.as_array().unwrap().iter().filter(|row| row["ended_at"].is_null());
    assert_eq!(open.count(), 0, "{sessions}");
}

#[test]
fn a_project_that_becomes_eligible_is_reported_and_worked_on() {
    let project = project_with("version: 1\nhooks: {stop: [{name: proven, command: 'true'}]}\n");
    add(&project, "a");
    let mut working = Working::start(worker(&project, &["--agent", QUICK]));
    let unfit = working.hear(|told| is(told, "ineligible"));
    assert!(unfit["reason"].as_str().unwrap().contains("proven"), "{unfit}");
    project.trust();
    let fit = working.hear(|told| is(told, "ineligible") || is(told, "claimed"));
    assert_eq!((&fit["worker"], &fit["reason"]), (&Value::from("ineligible"), &Value::Null));
    working.hear(|told| is(told, "ended") && told["outcome"] == "complete");
    working.signal(Signal::TERM);
    working.end();
}

/// Checks that a worker claims no task of a project with fewer gates than were trusted, and reports
/// the reason.
#[test]
fn a_worker_claims_no_task_of_a_project_with_weakened_gates() {
    let gated = "version: 1\nhooks: {stop: [{name: proven, command: 'true'}]}\n";
    let project = project_with(gated);
    project.trust();
    add(&project, "a");
    fs::write(project.root().join("hookloop.yaml"), "version: 1\n").unwrap();
    let mut working = Working::start(worker(&project, &["--agent", QUICK]));
    let unfit = working.hear(|told| is(told, "ineligible") || is(told, "claimed"));
    assert!(unfit["reason"].as_str().unwrap().contains("`proven` is gone"), "{unfit}");
    assert_eq!(state(&project, "a"), "ready");
    fs::write(project.root().join("hookloop.yaml"), gated).unwrap();
    working.hear(|told| is(told, "ended") && told["outcome"] == "complete");
    working.signal(Signal::TERM);
    working.end();
}
