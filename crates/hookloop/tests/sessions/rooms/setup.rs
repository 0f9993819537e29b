//! `setup`: commands that prepare a room before its gates run.

use hookloop_testkit::TestProject;
use serde_json::json;

use super::{assert_complete, assert_refused};
use crate::sessions::{scripted, trusted_project};

/// The gate passes if the setup ran for the present `lock`, and `state` is `ok`.
const CONFIG: &str = "version: 1
hooks:
  setup:
    - {name: packages, command: 'cp lock installed && echo \"$KIND\" >> installed',
       inputs: [lock], env: {KIND: dev}, timeout: 1m}
  stop:
    - {name: tests, command: 'cmp -s expected installed && grep -qx ok state'}
";

fn project() -> TestProject {
    let files = [
        (".gitignore", "installed\n"),
        ("lock", "1\n"),
        ("expected", "1\ndev\n"),
        ("state", "no\n"),
    ];
    trusted_project(CONFIG, &files)
}

#[test]
fn setup_runs_once_for_the_same_inputs_and_again_after_they_change() {
    let project = project();
    let turns = r#"[
        {"write": {"state": "worse\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"state": "better\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"lock": "2\n", "expected": "2\ndev\n", "state": "ok\n"},
         "say": "<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_complete(&ran);
    assert_eq!(ran.verdicts(), ["block", "block", "pass"]);
    assert_eq!(ran.hooks_at("setup"), ["packages", "packages"]);
    let setups: Vec<&str> = ran
        .all("receipt_recorded")
        .iter()
        .map(|receipt| receipt["room"]["setup"].as_str().unwrap())
        .collect();
    assert_eq!(setups[0], setups[1]);
    assert_ne!(setups[1], setups[2]);
    assert!(!project.root().join("installed").exists(), "setup ran in the working directory");
}

/// A gate that changes the installed packages would decide the next run.
#[test]
fn setup_runs_again_after_a_gate_changed_its_result() {
    let config =
        CONFIG.replace("&& grep -qx ok state", "&& echo x >> installed && grep -qx ok state");
    let files = [
        (".gitignore", "installed\n"),
        ("lock", "1\n"),
        ("expected", "1\ndev\n"),
        ("state", "no\n"),
    ];
    let project = trusted_project(&config, &files);
    let turns = r#"[
        {"write": {"state": "worse\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"state": "ok\n"}, "say": "<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_complete(&ran);
    assert_eq!(ran.hooks_at("setup"), ["packages", "packages"]);
}

/// The next gate must not run on packages that an earlier one changed.
#[test]
fn setup_runs_again_before_the_next_gate() {
    for parallel in ["", ", parallel: true"] {
        let config = format!(
            "version: 1
hooks:
  setup:
    - {{name: packages, command: 'cp lock installed', inputs: [lock]}}
  stop:
    - {{name: first, command: 'echo x >> installed'}}
    - {{name: second, command: 'cmp lock installed'{parallel}}}
    - {{name: third, command: 'cmp lock installed', needs: [first]{parallel}}}
    - {{name: last, command: 'echo x >> installed; exit 1', needs: [third]}}
    - {{name: never, command: 'true', needs: [last]}}
"
        );
        let project = trusted_project(&config, &[(".gitignore", "installed\n"), ("lock", "1\n")]);
        let turns = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
        let ran = scripted(&project, turns, &["--gate-retries", "0"]);
        assert_refused(&ran);
        let judged = ran.all("gates_evaluated")[0];
        assert_eq!(judged["passed"], json!(["first", "second", "third"]), "{parallel}");
        assert_eq!(judged["skipped"], json!(["never"]), "{parallel}");
        assert_eq!(ran.hooks_at("setup"), ["packages", "packages"], "{parallel}");
    }
}

/// A setup may copy anything of the tree that it runs on. A claim that must be confirmed gets a new one.
#[test]
fn a_confirmed_claim_has_the_setup_of_its_own_tree() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'tr a-z A-Z < data > installed', inputs: [lock]}
  stop:
    - {name: tests, command: 'grep -q OLD installed && grep -q ok state', room: {confirm: stop}}
";
    let files = [(".gitignore", "installed\n"), ("lock", "1\n"), ("data", "old\n")];
    let project = trusted_project(config, &files);
    let turns = r#"[
        {"write": {"state": "no\n"}, "say": "<promise>COMPLETE</promise>"},
        {"write": {"state": "ok\n", "data": "new\n"}, "say": "<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &["--gate-retries", "1"]);
    assert_refused(&ran);
    assert_eq!(ran.hooks_at("setup"), ["packages", "packages"]);
    assert_eq!(ran.hooks_at("stop"), ["tests", "tests", "tests"]);
    let builds: Vec<&serde_json::Value> =
        ran.all("receipt_recorded").iter().map(|receipt| &receipt["room"]["build"]).collect();
    assert_eq!(builds, ["cold", "cold"]);
}

/// Another session does not take packages that an earlier one made of other files.
#[test]
fn a_new_session_runs_the_setup_again_on_other_files() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'tr a-z A-Z < data > installed', inputs: [lock]}
  stop:
    - {name: tests, command: 'test -s installed'}
";
    let files = [(".gitignore", "installed\n"), ("lock", "1\n"), ("data", "old\n")];
    let project = trusted_project(config, &files);
    let turns = |file: &str| {
        format!(r#"[{{"write": {{"{file}": "1"}}, "say": "<promise>COMPLETE</promise>"}}]"#)
    };
    for (file, expected) in [("a", 1), ("a", 0), ("b", 1)] {
        let ran = scripted(&project, &turns(file), &[]);
        assert_complete(&ran);
        assert_eq!(ran.hooks_at("setup").len(), expected, "{file}");
        assert_eq!(ran.all("receipt_recorded")[0]["room"]["build"], "cold");
    }
}

#[test]
fn a_setup_that_fails_needs_a_human_and_costs_no_further_turn() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'echo the registry does not answer >&2; exit 1'}
  stop:
    - {name: tests, command: 'true'}
";
    let project = trusted_project(config, &[]);
    let turns = r#"[
        {"say": "<promise>COMPLETE</promise>"},
        {"say": "Tried again.\n<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &[]);
    assert_refused(&ran);
    assert_eq!(ran.turns().len(), 1, "the agent got another turn");
    assert!(ran.hooks_at("stop").is_empty(), "the gate ran without its setup");
    let ended = ran.all("session_ended")[0].to_string();
    assert!(ended.contains("setup_failed") && ended.contains("`packages`"), "{ended}");
    assert!(ended.contains("the registry does not answer"), "{ended}");
}

/// The packages of a setup that was changed or removed do not stay in the room.
#[test]
fn the_result_of_an_earlier_setup_does_not_stay() {
    let config = |setup: &str| {
        let gate = "{name: tests, command: 'test -e old && grep -q ok state'}";
        format!("version: 1\nhooks:\n{setup}  stop:\n    - {gate}\n")
    };
    let old = "  setup:\n    - {name: packages, command: 'echo 1 > old'}\n";
    let new = "  setup:\n    - {name: packages, command: 'echo 1 > new'}\n";
    let files = [(".gitignore", "old\nnew\n"), ("state", "no\n")];
    let project = trusted_project(&config(old), &files);
    let turn = |state: &str| {
        format!(r#"[{{"write": {{"state": "{state}\\n"}}, "say": "<promise>COMPLETE</promise>"}}]"#)
    };
    assert_complete(&scripted(&project, &turn("ok 1"), &[]));
    for (setup, state) in [(new, "ok 2"), ("", "ok 3")] {
        project.write("hookloop.yaml", &config(setup));
        project.ok(&["hooks", "trust", "--yes"]);
        let ran = scripted(&project, &turn(state), &["--gate-retries", "0"]);
        assert_refused(&ran);
        assert_eq!(ran.hooks_at("stop"), ["tests"], "the gate ran");
    }
}
