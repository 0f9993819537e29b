//! Which sessions count as proven, and which gates as passed.

use std::process::Command;

use serde_json::{Value, json};

use super::{Ran, command, project, scripted};

/// Writes a file and claims to be done.
const WORK: &str =
    r#"[{"write": {"work.txt": "done\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;

fn judged(ran: &Ran) -> &Value {
    ran.all("gates_judged").last().copied().unwrap()
}

/// What `hookloop run` prints to people.
fn printed(config: &str) -> String {
    let sandbox = project(config, &[("turns.json", WORK)]);
    let with_json = command(&sandbox, &["run", "x", "--agent", "scripted:turns.json", "--plain"]);
    let mut plain = Command::new(with_json.get_program());
    plain.args(with_json.get_args().filter(|arg| *arg != "--json"));
    plain.current_dir(sandbox.project()).env_clear();
    plain.envs(with_json.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = plain.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    out + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_skipped_gate_is_not_a_passed_gate() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
    - {name: lint, command: 'true', when: 'iteration > 99'}
    - {name: style, command: 'exit 1', on_failure: open}
";
    let sandbox = project(config, &[]);
    let ran = scripted(&sandbox, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let judged = judged(&ran);
    assert_eq!(judged["passed"], json!(["tests"]));
    assert_eq!(judged["skipped"], json!(["lint"]));
    assert_eq!(judged["failed"], json!(["style"]));
    let text = printed(config);
    assert!(
        text.contains("1 passed, 1 skipped, 1 failed without blocking (lint, style)"),
        "{text}"
    );
    assert!(!text.contains("all 3 gates pass"), "{text}");
}

#[test]
fn a_skipped_gate_does_not_excuse_the_group_that_it_is_in() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'exit 2', any_of: g}
    - {name: other, command: 'true', any_of: g, when: 'iteration > 99'}
";
    let sandbox = project(config, &[]);
    let ran = scripted(&sandbox, WORK, &["--hook-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
}

#[test]
fn a_condition_on_a_name_without_a_value_fails_the_gate() {
    // Without delivery there is no branch at `stop`, so the name is refused when the file is read; at
    // `before_submit` it is known. `project` is known everywhere.
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true', when: 'project != \"\"'}
";
    let sandbox = project(config, &[]);
    let ran = scripted(&sandbox, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(judged(&ran)["passed"], json!(["tests"]));

    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true', when: 'task.type == \"fix\"'}
";
    let sandbox = project(config, &[]);
    let ran = scripted(&sandbox, WORK, &["--hook-retries", "0"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let ran_hook = ran.all("hook_ran");
    assert_eq!(ran_hook[0]["status"], "failed");
    assert!(ran_hook[0]["reason"].as_str().unwrap().contains("`task` has no value here"));
}

#[test]
fn a_reaction_whose_condition_has_no_value_is_recorded_as_failed() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: note, command: 'touch noted', when: 'task.type == \"fix\"'}
  stop:
    - {name: tests, command: 'true'}
";
    let sandbox = project(config, &[]);
    let ran = scripted(&sandbox, WORK, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let note = ran.all("hook_ran").into_iter().find(|ran| ran["hookName"] == "note").unwrap();
    assert_eq!(note["status"], "failed");
    assert!(note["reason"].as_str().unwrap().contains("`task` has no value here"), "{note}");
    assert!(!sandbox.project().join("noted").exists());
}

/// Every name that conditions may use at a point of a session has a value there.
#[test]
fn every_name_of_a_condition_has_a_value_in_a_session() {
    let names = |point: &str| -> Vec<&str> {
        let own: &[&str] = match point {
            "session_start" | "session_end" => &[],
            "on_error" => &["iteration >= 0", "error != ''"],
            _ => &["iteration >= 0"],
        };
        let all = ["point != ''", "project != ''", "session != ''", "task == null"];
        all.into_iter().chain(own.iter().copied()).collect()
    };
    let points = [
        "session_start",
        "pre_iteration",
        "post_iteration",
        "on_error",
        "validation",
        "stop",
        "session_end",
    ];
    let mut config = "version: 1\nhooks:\n".to_owned();
    let mut expected = Vec::new();
    for point in points {
        config += &format!("  {point}:\n");
        for (number, condition) in names(point).into_iter().enumerate() {
            let name = format!("{point}-{number}");
            config += &format!("    - {{name: {name}, command: 'true', when: \"{condition}\"}}\n");
            expected.push(name);
        }
    }
    let sandbox = project(&config, &[]);
    let turns = r#"[{"fail": "no network"},
        {"write": {"work.txt": "done\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&sandbox, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    for name in expected {
        let runs: Vec<&Value> =
            ran.all("hook_ran").into_iter().filter(|ran| ran["hookName"] == *name).collect();
        assert!(!runs.is_empty(), "{name} did not run");
        assert!(runs.iter().all(|ran| ran["status"] == "passed"), "{name}: {runs:?}");
    }
}
