//! Checks the page of exit codes: each listed code occurs, and each code that occurs is listed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use hookloop_testkit::eventually;

use crate::cli::{DEADLINE, Project};
use crate::documents::{names, rows};

const GATE: &str = "hooks:\n  stop:\n    - {name: no, command: 'false'}\n";

/// Returns the exit code of a session with these turns and arguments.
fn session(turns: &str, args: &[&str]) -> i32 {
    let project = Project::with_config(GATE);
    project.trust();
    project.write("turns.json", turns);
    let run = ["run", "Do it", "--agent", "scripted:turns.json"];
    project.run(&[&run, args].concat()).code
}

/// Returns the exit code of a session that is interrupted during a turn.
fn cancelled() -> i32 {
    let project = Project::new();
    project.write("turns.json", r#"[{"run": "touch began; sleep 60", "say": "late"}]"#);
    let mut command = project.hookloop(&["run", "Do it", "--agent", "scripted:turns.json"]);
    // The session gets its own process group, so the signal reaches only this session.
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    eventually("the turn", DEADLINE, || project.root().join("began").exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap().code().unwrap()
}

/// Returns the exit code of a session that is paused during a turn.
fn paused() -> i32 {
    let project = Project::new();
    project.write("turns.json", r#"[{"run": "touch began; sleep 1", "say": "on"}]"#);
    let run = ["run", "Do it", "--agent", "scripted:turns.json"];
    let mut command = project.hookloop(&run);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the turn", DEADLINE, || project.root().join("began").exists().then_some(()));
    project.ok(&["pause"]);
    child.wait().unwrap().code().unwrap()
}

/// Returns the exit code of a command whose state directory is a file.
fn without_state() -> i32 {
    let project = Project::new();
    let state = project.home().join("file");
    fs::write(&state, "").unwrap();
    let mut command = project.hookloop(&["status"]);
    command.env("XDG_STATE_HOME", &state).output().unwrap().status.code().unwrap()
}

#[test]
fn every_code_is_met() {
    let claims = r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    let project = Project::with_config(GATE);
    let met: BTreeMap<i32, i32> = BTreeMap::from([
        (0, project.run(&["status"]).code),
        (1, project.run(&["task", "show", "none"]).code),
        (2, project.run(&["task", "show", "no id"]).code),
        (3, session(claims, &["--gate-retries", "0"])),
        (4, session(r#"[{"say": "Not yet."}]"#, &["--max-iterations", "1"])),
        (5, paused()),
        (6, session(claims, &["--gate-retries", "0", "--at-retry-limit", "accept"])),
        (70, without_state()),
        (130, cancelled()),
    ]);
    for (listed, found) in &met {
        assert_eq!(listed, found);
    }
    let page = rows("docs/reference/exit-codes.md", "", 0);
    let listed: Vec<i32> = page.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(listed, met.into_keys().collect::<Vec<_>>());
}

#[test]
fn every_kind_of_error_has_the_code_that_is_listed() {
    let project = Project::with_config(GATE);
    project.write("turns.json", r#"[{"say": "Done."}]"#);
    let untrusted: &[&str] = &["run", "Do it", "--agent", "scripted:turns.json"];
    let failures = [&["task", "show", "none"][..], &["task", "show", "no id"], untrusted];
    let page = rows("docs/reference/exit-codes.md", "", 0);
    let mut met = Vec::new();
    for args in failures {
        let run = project.run(&[args, &["--json"]].concat());
        let said: serde_json::Value =
            serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
        let kind = said["error"]["type"].as_str().unwrap();
        met.push(kind.to_owned());
        let row = page.iter().find(|row| names(&row[1]) == [kind]);
        assert_eq!(row.map(|row| row[0].clone()), Some(run.code.to_string()), "{said}");
    }
    assert_eq!(met, ["refused", "usage", "untrusted"]);
}
