//! A long step is visible while it runs: to the reader of a pipe, and to other processes.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use hookloop_testkit::{SessionOutput, TestProject, eventually};
use serde_json::Value;

use super::{SOON, trusted_project};

const DONE: &str = r#"[{"write": {"work": "1"}, "say": "<promise>COMPLETE</promise>"}]"#;
const CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: quick, command: 'true'}
    - {name: slow, room: here, command: ./slow.sh, timeout: 10m}
";
/// Prints a line on each stream, and waits for a file before each line except the first.
const SLOW: &str = "#!/bin/sh
echo one of three
until [ -e go-2 ]; do sleep 0.02; done
echo two of three >&2
until [ -e go-3 ]; do sleep 0.02; done
echo three of three
exit \"$(cat code 2>/dev/null || echo 0)\"
";

fn slow_project() -> TestProject {
    let ignored = "go-*\nout\ncode\nprompt-*\nturns.json\n";
    trusted_project(CONFIG, &[("slow.sh", SLOW), (".gitignore", ignored), ("turns.json", DONE)])
}

fn shown(project: &TestProject, args: &[&str]) -> String {
    let output = project.run(args);
    output.stdout + &output.stderr
}

/// A session whose output goes to the file `out`.
struct Running {
    child: Child,
    out: PathBuf,
}

impl Running {
    fn start(project: &TestProject, args: &[&str]) -> Running {
        let out = project.root().with_file_name("out");
        let file = File::create(&out).unwrap();
        let mut command = project.hookloop(args);
        let child = command.stdin(Stdio::null()).stdout(file).spawn().unwrap();
        Running { child, out }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    fn wait_for(&self, text: &str) {
        eventually(text, SOON, || self.text().contains(text));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn steps(project: &TestProject) -> Value {
    project.json(&["status"])["sessions"].clone()
}

/// Waits until this is the last line of the running gate.
fn wait_for_line(project: &TestProject, line: &str) {
    eventually(line, SOON, || {
        let lines = &steps(project)[0]["now"]["hooks"][0]["lines"];
        lines.as_array().is_some_and(|lines| lines.last().is_some_and(|last| last == line))
    });
}

#[test]
fn a_gate_that_takes_long_is_shown_in_a_pipe_and_to_other_processes() {
    let project = slow_project();
    let args = ["run", "work", "--agent", "scripted:turns.json"];
    let mut running = Running::start(&project, &args);
    wait_for_line(&project, "one of three");
    let session = &steps(&project)[0];
    let id = session["id"].as_str().unwrap().to_owned();
    let hook = &session["now"]["hooks"][0];
    assert_eq!((&hook["name"], &hook["command"]), (&"slow".into(), &"./slow.sh".into()));
    assert_eq!(session["now"]["step"]["type"], "hooks");
    assert_eq!(session["now"]["step"]["point"], "stop");
    // The previous gate is already in the log and in the output.
    let log = shown(&project, &["sessions", "show", &id]);
    assert!(log.contains("quick") && !log.contains("slow"), "{log}");
    running.wait_for("quick");
    let status = shown(&project, &["status"]);
    assert!(status.contains(&format!("{id} stop slow (2 of 2) runs")), "{status}");
    let why = shown(&project, &["why", &id]);
    for part in ["stop slow (2 of 2) runs", "of 10:00: ./slow.sh", "last output: one of three"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(project.json(&["why", &id])["now"]["hooks"][0]["name"], "slow");
    running.wait_for("slow                     started: ./slow.sh");
    project.write("go-2", "");
    wait_for_line(&project, "two of three");
    running.wait_for(", last output: two of three");
    project.write("go-3", "");
    let status = running.child.wait().unwrap();
    let text = running.text();
    assert!(status.success(), "{text}");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let order = [
        "quick ",
        "started: ./slow.sh",
        "slow                     running 1",
        "slow                     passed",
    ];
    assert!(order.map(place).is_sorted(), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text}");
    assert_eq!(steps(&project), serde_json::json!([]), "no step is running");
    assert_eq!(project.json(&["why", &id])["now"], Value::Null);
}

#[test]
fn the_step_of_a_process_that_died_is_not_shown() {
    let project = slow_project();
    let args = ["run", "work", "--agent", "scripted:turns.json"];
    let mut running = Running::start(&project, &args);
    wait_for_line(&project, "one of three");
    let id = steps(&project)[0]["id"].as_str().unwrap().to_owned();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    // Processes that the session was about to start may hold its lock for a moment.
    eventually("no running step", SOON, || steps(&project) == serde_json::json!([]));
    let why = project.json(&["why", &id]);
    assert_eq!((&why["state"], &why["now"]), (&"interrupted".into(), &Value::Null));
}

#[test]
fn an_interrupted_session_is_reported_with_its_resume_command() {
    let project = slow_project();
    project.json(&["task", "add", "Goal", "--id", "t1"]);
    let mut running =
        Running::start(&project, &["run", "--tasks", "--agent", "scripted:turns.json"]);
    wait_for_line(&project, "one of three");
    let id = steps(&project)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(project.json(&["status"])["interrupted_sessions"], serde_json::json!([]));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    eventually("no running step", SOON, || steps(&project) == serde_json::json!([]));
    let resume = format!("hookloop resume {id}");
    let why = project.json(&["why", "t1"]);
    assert_eq!(why["next"], resume.as_str(), "{why}");
    let told = format!("session {id} was interrupted: its program died");
    assert_eq!(why["reasons"][0], told.as_str(), "{why}");
    assert!(!why.to_string().contains("claimed by"), "{why}");
    let status = project.json(&["status"]);
    let interrupted = &status["interrupted_sessions"][0];
    assert_eq!((&interrupted["id"], &interrupted["task"]), (&id.as_str().into(), &"t1".into()));
    let text = shown(&project, &["status"]);
    assert!(text.contains(&format!("{id} (task t1) was interrupted: {resume}")), "{text}");
    for args in [&["pause"][..], &["pause", &id]] {
        let paused = SessionOutput::from(project.json_command(args).output().unwrap());
        assert_eq!(paused.code, 1, "{}", paused.stderr);
        let told = format!("session {id} is not running: its program died");
        assert!(paused.stderr.contains(&told), "{}", paused.stderr);
        assert!(paused.stderr.contains(&resume), "{}", paused.stderr);
    }
    let sent = shown(&project, &["message", "Go on."]);
    assert!(sent.contains("is not running") && sent.contains(&resume), "{sent}");
    assert_eq!(project.json(&["message", "Go on."])["running"], false);
}

#[test]
fn why_and_status_show_the_running_step_of_a_task() {
    let project = slow_project();
    project.json(&["task", "add", "Goal", "--id", "t1"]);
    let running = Running::start(&project, &["run", "--tasks", "--agent", "scripted:turns.json"]);
    wait_for_line(&project, "one of three");
    assert_eq!(steps(&project)[0]["task"], "t1");
    let why = shown(&project, &["why", "t1"]);
    assert!(why.contains("stop slow (2 of 2) runs") && why.contains("one of three"), "{why}");
    assert!(shown(&project, &["status"]).contains("task t1, stop slow"));
    drop(running);
}

#[test]
fn stdout_and_stderr_of_a_gate_keep_their_order_in_the_prompt() {
    let project = slow_project();
    let agent =
        "#!/bin/sh\ncat > prompt-$HOOKLOOP_ITERATION\necho $HOOKLOOP_ITERATION > work\necho done\n";
    project.write("agent.sh", agent);
    project.write("code", "1");
    let args = ["run", "x", "--agent", "command:./agent.sh", "--stop-when", "turn"];
    let mut running = Running::start(&project, &args);
    wait_for_line(&project, "one of three");
    project.write("go-2", "");
    wait_for_line(&project, "two of three");
    project.write("code", "1");
    project.write("go-3", "");
    eventually("the second prompt", SOON, || project.read("prompt-2").contains("three of three"));
    let prompt = project.read("prompt-2");
    let place = |part: &str| prompt.find(part).unwrap_or_else(|| panic!("{part}: {prompt}"));
    assert!(["one of three", "two of three", "three of three"].map(place).is_sorted(), "{prompt}");
    project.write("code", "0");
    assert!(running.child.wait().unwrap().success(), "{}", running.text());
}

#[test]
fn hooks_have_ci_set_to_1_unless_their_definition_changes_ci() {
    let config = "version: 1
hooks:
  stop:
    - {name: usual, command: 'test \"$CI\" = 1'}
    - {name: own, command: 'test \"$CI\" = mine', env: {CI: mine}}
    - {name: none, command: 'test -z \"$CI\"', env: [CI]}
";
    let project = trusted_project(config, &[("turns.json", DONE)]);
    let output = shown(&project, &["run", "work", "--agent", "scripted:turns.json"]);
    assert!(output.contains("complete after 1 iteration"), "{output}");
}
