//! Checks that `session_end` runs once and no process is left, no matter how a session ends.

use std::process::{Child, Stdio};
use std::time::Instant;

use hookloop_testkit::{SessionOutput, TestProject, eventually};
use rustix::process::{Pid, Signal, kill_process};

use super::{BROKEN_OFF, SOON, run, scripted, trusted_project};

const CONFIG: &str = "version: 1
hooks:
  session_end:
    - {name: last, command: 'echo ended >> ends'}
";
const SLOW: &str =
    "#!/bin/sh\ncat >/dev/null\necho begun >> begun\n(setsid sleep 98.765 &)\nsleep 98.765\n";

fn start(project: &TestProject) -> Child {
    let args = ["run", "x", "--agent", "command:./slow.sh"];
    let child = project.json_command(&args).stdin(Stdio::null()).spawn().unwrap();
    eventually("the agent begins", SOON, || !project.read("begun").is_empty());
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Returns the number of processes that a slow agent of this project left.
fn leftovers(project: &TestProject) -> usize {
    let is_ours = |entry: std::fs::DirEntry| {
        let cwd = std::fs::read_link(entry.path().join("cwd"));
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        cwd.is_ok_and(|cwd| cwd.starts_with(project.root()))
            && String::from_utf8_lossy(&line).contains("98.765")
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().join("cwd").exists())
        .filter_map(|entry| is_ours(entry).then_some(()))
        .count()
}

#[test]
fn a_signal_cancels_the_session_and_runs_session_end() {
    for one in [Signal::INT, Signal::TERM, Signal::HUP] {
        let project = trusted_project(CONFIG, &[("slow.sh", SLOW)]);
        let child = start(&project);
        let began = Instant::now();
        signal(&child, one);
        let ran = SessionOutput::from(child.wait_with_output().unwrap());
        assert!(began.elapsed() < BROKEN_OFF, "{:?}", began.elapsed());
        assert_eq!((ran.code, ran.outcome()), (130, "cancelled"), "{}", ran.stderr);
        assert_eq!(project.read("ends"), "ended\n");
        eventually("no process is left", SOON, || leftovers(&project) == 0);
    }
}

#[test]
fn a_second_signal_skips_session_end_until_the_next_start() {
    let config = "version: 1
hooks:
  session_end:
    - {name: last, command: 'echo ended >> ends; [ -f quick ] || sleep 77.7'}
";
    let project = trusted_project(config, &[("slow.sh", SLOW)]);
    let child = start(&project);
    signal(&child, Signal::INT);
    eventually("session_end begins", SOON, || !project.read("ends").is_empty());
    signal(&child, Signal::INT);
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < BROKEN_OFF, "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(130));
    project.write("quick", "");
    let ran = scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &[]);
    assert_eq!(ran.count("session_ended"), 2, "the previous one and this one: {}", ran.stderr);
    // One interrupted run, one complete run, and one run for the other session.
    assert_eq!(project.read("ends"), "ended\n".repeat(3));
}

#[test]
fn a_killed_session_is_ended_at_the_next_start() {
    let project = trusted_project(CONFIG, &[("slow.sh", SLOW)]);
    let mut child = start(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no process is left", SOON, || leftovers(&project) == 0);
    assert_eq!(project.read("ends"), "");
    assert_eq!(project.json(&["sessions", "list"])[0]["state"], "interrupted");
    let ran = scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &[]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let outcomes: Vec<_> = ran
        .all("session_ended")
        .iter()
        .map(|ended| ended["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["interrupted", "complete"]);
    assert_eq!(project.read("ends"), "ended\n".repeat(2), "once per session");
}

#[test]
fn a_killed_session_is_resumed_at_its_interrupted_iteration() {
    let project = trusted_project(CONFIG, &[("slow.sh", SLOW)]);
    project.json(&["task", "add", "x", "--id", "x"]);
    let mut child = start(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    project.write("slow.sh", "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n");
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!((resumed.code, resumed.outcome()), (6, "complete"), "{}", resumed.stderr);
    assert_eq!(resumed.count("session_resumed"), 1);
    let started = resumed.all("iteration_started");
    assert_eq!((&started[0]["number"], &started[0]["attempt"]), (&1.into(), &2.into()));
    assert_eq!(project.read("ends"), "ended\n");
    let again = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(again.code, 1, "no session is left: {}", again.stderr);
}

#[test]
fn a_running_session_cannot_be_resumed_by_another_process() {
    let project = trusted_project(CONFIG, &[("slow.sh", SLOW)]);
    let mut child = start(&project);
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let second = SessionOutput::from(project.json_command(&["resume", &id]).output().unwrap());
    assert_eq!(second.code, 1);
    assert!(second.stderr.contains("is running"), "{}", second.stderr);
    let any = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert!(any.stderr.contains("no unfinished session"), "{}", any.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn pause_and_message_take_effect_at_the_next_prompt() {
    let agent = "#!/bin/sh
cat > prompt-$HOOKLOOP_ITERATION
touch began-$HOOKLOOP_ITERATION
while [ ! -f go-$HOOKLOOP_ITERATION ]; do sleep 0.02; done
";
    let project = trusted_project(CONFIG, &[("agent.sh", agent)]);
    let args = ["run", "x", "--agent", "command:./agent.sh", "--max-iterations", "2"];
    let child = project.json_command(&args).spawn().unwrap();
    eventually("the first turn", SOON, || project.root().join("began-1").exists());
    project.json(&["pause"]);
    project.json(&["message", "use the other door"]);
    project.write("go-1", "");
    project.write("go-2", "");
    let ran = SessionOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(!project.root().join("began-2").exists(), "another iteration started");
    assert_eq!(project.json(&["sessions", "list"])[0]["state"], "paused");
    assert_eq!(project.read("ends"), "", "the session ended");
    // A new session does not end a paused one.
    let other = scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &[]);
    assert_eq!(other.code, 6, "{}", other.stderr);
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(resumed.code, 4, "{}", resumed.stderr);
    assert!(project.read("prompt-2").contains("use the other door"));
    assert_eq!(project.read("ends"), "ended\n".repeat(2));
}

#[test]
fn hooks_that_change_during_a_session_are_not_used_without_consent() {
    let config = "version: 1
hooks:
  stop:
    - {name: gate, command: ./gate.sh}
";
    let project = trusted_project(config, &[("gate.sh", "#!/bin/sh\nexit 2\n"), ("slow.sh", SLOW)]);
    // The agent changes its gate so that it passes.
    let turns = r##"[
        {"write": {"gate.sh": "#!/bin/sh\nexit 0\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"hookloop.yaml": "version: 1\n"}, "say": "<promise>COMPLETE</promise>"}
    ]"##;
    let ran = scripted(&project, turns, &["--gate-retries", "1"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(ran.count("trust_drift_detected") >= 1);
    // The agent removes its gate, and the process crashes.
    let project = trusted_project(config, &[("gate.sh", "#!/bin/sh\nexit 2\n"), ("slow.sh", SLOW)]);
    let mut child = start(&project);
    project.write("hookloop.yaml", "version: 1\n");
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("`gate` is gone"), "{}", resumed.stderr);
    let loosened = project.json_command(&["resume", "--with-changed-hooks"]).output().unwrap();
    assert_eq!(loosened.status.code(), Some(3), "a gate is missing: {loosened:?}");
    assert!(project.json_command(&["hooks", "trust", "--yes"]).status().unwrap().success());
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("--with-changed-hooks"), "{}", resumed.stderr);
    project.write("slow.sh", "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n");
    let agreed = SessionOutput::from(
        project.json_command(&["resume", "--with-changed-hooks"]).output().unwrap(),
    );
    assert_eq!(agreed.code, 6, "{}", agreed.stderr);
}

#[test]
fn a_refused_resume_leaves_the_session_as_it_was() {
    let gate = |command: &str| {
        format!("version: 1\nhooks:\n  stop:\n    - {{name: gate, command: '{command}'}}\n")
    };
    let template = format!("{}loop: {{prompt_template: gone.md}}\n", gate("exit 2"));
    for (changed, part) in [(gate("exit 3"), "--with-changed-hooks"), (template, "gone.md")] {
        let project = trusted_project(&gate("exit 2"), &[]);
        let claim = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
        assert_eq!(scripted(&project, claim, &["--gate-retries", "0"]).code, 3, "{part}");
        project.write("hookloop.yaml", &changed);
        project.json_command(&["hooks", "trust", "--yes"]).output().unwrap();
        let resume = ["resume", "--answer", "Go on"];
        let refused = SessionOutput::from(project.json_command(&resume).output().unwrap());
        assert!(refused.code != 0 && refused.stderr.contains(part), "{part}: {}", refused.stderr);
        assert_eq!(project.json(&["sessions", "list"])[0]["state"], "needs_human", "{part}");
        let log = ["log", "--type", "session_reopened"];
        let log = project.json_command(&log).output().unwrap();
        assert!(log.stdout.is_empty(), "{part}: {log:?}");
    }
}

#[test]
fn resume_without_a_name_continues_the_session_that_ended_last() {
    let project = trusted_project("version: 1\n", &[]);
    let agent = "command:cat > /dev/null; echo working";
    for name in ["first", "second"] {
        let args = ["x", "--agent", agent, "--name", name, "--max-iterations", "1"];
        assert_eq!(run(&project, &args).code, 4, "{name}");
    }
    let first = project.json(&["sessions", "list"])[1]["id"].as_str().unwrap().to_owned();
    let resume = |session: &[&str]| {
        project.run(&[&["resume", "--plain", "--max-iterations", "+1"], session].concat())
    };
    // The first session ends again, after the second one.
    assert_eq!(resume(&["first"]).code, 4);
    let resumed = resume(&[]);
    let told = format!("resumes the last session that can continue: {first}");
    assert!(resumed.code == 4 && resumed.stdout.contains(&told), "{resumed:?}");
}

#[test]
fn a_session_with_untrusted_hooks_does_not_start() {
    let project = trusted_project(CONFIG, &[("agent.sh", "#!/bin/sh\ntouch ran\n")]);
    project.write(
        "hookloop.yaml",
        "version: 1\nhooks:\n  session_start:\n    - {command: 'touch pwned'}\n",
    );
    let ran = run(&project, &["x", "--agent", "command:./agent.sh"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(!project.root().join("pwned").exists() && !project.root().join("ran").exists());
    assert_eq!(project.json(&["sessions", "list"]), serde_json::json!([]), "a session started");
}

/// Files that change between the gates and the end of the session are checked again.
#[test]
fn gates_run_again_if_files_change_before_a_session_is_resumed() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'grep -q 42 answer'}
  session_end:
    - {name: last, command: 'echo begun >> ends; [ -f quick ] || sleep 66.6'}
";
    let project = trusted_project(config, &[("answer", "42\n")]);
    project.write("turns.json", r#"[{"say": "<promise>COMPLETE</promise>"}]"#);
    let args = ["run", "x", "--agent", "scripted:turns.json", "--gate-retries", "0"];
    let mut child = project.json_command(&args).spawn().unwrap();
    eventually("session_end begins", SOON, || !project.read("ends").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    project.write("answer", "41\n");
    project.write("quick", "");
    let resumed = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!((resumed.code, resumed.outcome()), (3, "needs_human"), "{}", resumed.stderr);
}

/// Checks that Ctrl-C interrupts the final gate run of complete work.
#[test]
fn ctrl_c_interrupts_the_final_gate_run() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: note, command: 'echo tidy up', pipe_output: true, when: 'iteration == 1'}
  stop:
    - {name: tests, room: here, command: '[ ! -f tidied ] || { touch slow; sleep 55.5; }'}
  session_end:
    - {name: last, command: 'echo ended >> ends'}
";
    let project = trusted_project(config, &[]);
    let turns =
        r#"[{"say": "<promise>COMPLETE</promise>"}, {"write": {"tidied": ""}, "say": "so"}]"#;
    project.write("turns.json", turns);
    let child = project
        .json_command(&["run", "x", "--no-changes-ok", "--agent", "scripted:turns.json"])
        .spawn()
        .unwrap();
    eventually("the final gates start", SOON, || project.root().join("slow").exists());
    signal(&child, Signal::INT);
    let began = Instant::now();
    let ran = SessionOutput::from(child.wait_with_output().unwrap());
    assert!(began.elapsed() < BROKEN_OFF, "{:?}", began.elapsed());
    assert_eq!((ran.code, ran.outcome()), (130, "cancelled"), "{}", ran.stderr);
    assert_eq!(project.read("ends"), "ended\n");
}
