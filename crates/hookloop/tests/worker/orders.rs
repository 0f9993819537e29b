//! Fleet directives: pause, stop, drain and resume.

use std::fs;
use std::time::{Duration, Instant};

use hookloop_testkit::{TestProject, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::project_with;
use crate::worker::{SOON, Working, is};

/// The time within which a directive takes effect, even on a busy machine.
const WITHIN: Duration = Duration::from_secs(2);
const WORKS: &str =
    "command:cat > /dev/null; echo x >> turns; sleep 0.1; date +%N > changed; echo 'not yet'";

fn start(project: &TestProject, args: &[&str]) -> Working {
    Working::start(project.json_command(&[&["worker", "--name", "w1"], args].concat()))
}

fn turns(project: &TestProject) -> usize {
    fs::read_to_string(project.root().join("turns")).unwrap_or_default().lines().count()
}

fn project() -> TestProject {
    let config = "version: 1\nlimits: {max_iterations: 100000, max_no_progress: 100000}\n";
    let project = project_with(config);
    project.json(&["task", "add", "goal", "--id", "a"]);
    project
}

#[test]
fn a_paused_fleet_starts_no_turns_and_continues_its_task_after_resume() {
    for scope in ["all", "worker:w1"] {
        let project = project();
        let mut working = start(&project, &["--agent", WORKS]);
        let took = working.hear(|told| is(told, "claimed"));
        eventually("turns are running", SOON, || turns(&project) > 2);
        project.json(&["fleet", "pause", scope, "--reason", "a look"]);
        let status = || project.json(&["fleet", "status"]);
        eventually("the worker is paused", SOON, || status()["workers"][0]["state"] == "paused");
        // A turn that had started may end first.
        std::thread::sleep(WITHIN);
        let (rested, status) = (turns(&project), status());
        assert_eq!(status["directives"][0]["reason"], "a look", "{status}");
        project.json(&["task", "add", "goal", "--id", "b"]);
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(turns(&project), rested, "{scope}");
        project.json(&["fleet", "resume", scope]);
        eventually("turns are running again", SOON, || turns(&project) > rested + 2);
        assert_eq!(
            project.json(&["task", "show", "a"])["claim"]["agent"],
            format!("session:{}", took["session"].as_str().unwrap())
        );
        working.child.kill().unwrap();
        working.child.wait().unwrap();
    }
}

#[test]
fn a_stopped_fleet_ends_running_agents_and_can_be_resumed() {
    let project = project();
    let agent = "command:cat > /dev/null; echo $$ > pid; setsid sleep 600 & sleep 600";
    let mut working = start(&project, &["--agent", agent]);
    working.hear(|told| is(told, "claimed"));
    eventually("the agent works", SOON, || project.root().join("pid").exists());
    let pid = fs::read_to_string(project.root().join("pid")).unwrap();
    let began = Instant::now();
    project.json(&["fleet", "stop"]);
    let is_there = || std::path::Path::new(&format!("/proc/{}", pid.trim())).exists();
    eventually("the agent has exited", SOON, || !is_there());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    working.hear(|told| is(told, "ended") && told["outcome"] == "cancelled");
    assert_eq!(project.json(&["task", "show", "a"])["state"], "ready");
    project.json(&["fleet", "resume"]);
    working.hear(|told| is(told, "claimed"));
    working.signal(Signal::TERM);
    working.hear(|told| is(told, "state") && told["state"] == "draining");
    // The second signal makes the worker release its task.
    working.signal(Signal::TERM);
    working.end();
}

#[test]
fn fleet_drain_ends_a_running_worker() {
    let project = project_with("version: 1\n");
    let mut working = start(&project, &["--agent", WORKS]);
    eventually("the worker is listed", SOON, || {
        let status = project.json(&["fleet", "status"]);
        status["workers"].as_array().is_some_and(|workers| workers.len() == 1)
    });
    project.json(&["fleet", "drain", "w1"]);
    working.hear(|told| is(told, "state") && told["state"] == "draining");
    working.end();
    let status = project.json(&["fleet", "status"]);
    assert_eq!(status["workers"].as_array().map(Vec::len), Some(0), "{status}");
}

#[test]
fn a_drain_of_an_unknown_worker_is_refused() {
    let project = project_with("version: 1\n");
    let refused = |name: &str| {
        let output = project.json_command(&["fleet", "drain", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let told = refused("nobody");
    assert!(told.contains("no worker `nobody`: the fleet has not seen any worker yet"), "{told}");
    assert!(told.contains("hookloop fleet status"), "{told}");
    // A worker that claimed no task and exited.
    let until_idle = |name: &str| {
        let args = ["worker", "--name", name, "--agent", "command:true", "--until-idle"];
        assert!(project.json_command(&args).output().unwrap().status.success());
    };
    until_idle("w0");
    let mut working = start(&project, &["--agent", WORKS]);
    eventually("the worker is listed", SOON, || {
        let status = project.json(&["fleet", "status"]);
        status["workers"].as_array().is_some_and(|workers| workers.len() == 1)
    });
    let told = refused("w2");
    assert!(told.contains("no worker `w2`: known workers are w1, w0"), "{told}");
    let orders = || project.json(&["fleet", "status"])["directives"].as_array().map(Vec::len);
    assert_eq!(orders(), Some(0));
    project.json(&["fleet", "drain", "w0"]);
    assert_eq!(orders(), Some(1));
    // The next worker of that name exits at once and clears the directive.
    until_idle("w0");
    assert_eq!(orders(), Some(0));
    project.json(&["fleet", "drain", "w1"]);
    working.hear(|told| is(told, "state") && told["state"] == "draining");
    working.end();
    project.json(&["fleet", "drain", "w1"]);
}

#[test]
fn a_pause_or_stop_of_an_unknown_worker_is_refused() {
    let project = project_with("version: 1\n");
    let refused = |order: &str, name: &str| {
        let scope = format!("worker:{name}");
        let output = project.json_command(&["fleet", order, &scope]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{order}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for order in ["pause", "stop"] {
        let told = refused(order, "w0");
        assert!(told.contains("no worker `w0`: the fleet has not seen any worker yet"), "{told}");
    }
    let args = ["worker", "--name", "w0", "--agent", "command:true", "--until-idle"];
    assert!(project.json_command(&args).output().unwrap().status.success());
    for order in ["pause", "stop"] {
        let told = refused(order, "w2");
        assert!(told.contains("no worker `w2`: known workers are w0"), "{told}");
        assert!(told.contains("hookloop fleet status"), "{told}");
    }
    let orders = || project.json(&["fleet", "status"])["directives"].as_array().map(Vec::len);
    assert_eq!(orders(), Some(0));
    // The next worker of that name is paused from its start.
    project.json(&["fleet", "pause", "worker:w0"]);
    assert_eq!(orders(), Some(1));
}

#[test]
fn an_agent_cannot_set_fleet_directives_or_budgets() {
    let project = project_with("version: 1\n");
    for args in [
        &["fleet", "pause"][..],
        &["fleet", "stop"],
        &["fleet", "resume"],
        &["fleet", "drain", "w1"],
        &["fleet", "budget", "--cost", "5"],
        &["fleet", "budget", "--none"],
    ] {
        let output = project.json_command(args).env("HOOKLOOP_SESSION", "abc").output().unwrap();
        assert!(!output.status.success(), "{args:?}");
    }
    let status: Value = project.json(&["fleet", "status"]);
    assert_eq!(status["directives"].as_array().map(Vec::len), Some(0), "{status}");
}
