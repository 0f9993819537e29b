//! `setup`: commands that prepare a room before its gates run.

use hookloop_testkit::TestProject;

use super::{assert_complete, assert_refused};
use crate::sessions::{scripted, trusted_project};

/// The gate passes if the setup ran for the present `lock`, and `state` is `ok`.
const CONFIG: &str = "version: 1
room: clean
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

#[test]
fn a_setup_that_fails_needs_a_human_and_costs_no_further_turn() {
    let config = "version: 1
room: clean
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
