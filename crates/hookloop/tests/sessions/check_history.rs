//! `hookloop checks`: the newest outcome of each check of a gate, and its history.

use hookloop_testkit::{SCRIPTED_AGENT, TestProject};
use serde_json::{Value, json};

use super::visible::shown;
use super::{scripted, trusted_project};

/// A gate that writes a report. The check `answers` passes if the answer is 42.
const CONFIG: &str = r#"version: 1
hooks:
  stop:
    - name: tests
      command: |
        failure=
        grep -qx 42 answer || failure='<failure message="it is wrong"/>'
        printf '<testsuite name="suite"><testcase name="adds" time="0.5"/>' > "$HOOKLOOP_REPORT"
        printf '<testcase name="later"><skipped/></testcase>' >> "$HOOKLOOP_REPORT"
        printf '<testcase name="answers" time="1.5">%s</testcase></testsuite>' "$failure" >> "$HOOKLOOP_REPORT"
        test -z "$failure"
"#;
const RED: &str = r#"{"write": {"answer": "41\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}"#;
const GREEN: &str =
    r#"{"write": {"answer": "42\n"}, "say": "Fixed.\n<promise>COMPLETE</promise>"}"#;

/// Returns a project after the session `try`: red in its first turn, green in its second.
fn after_two_turns() -> TestProject {
    let project = trusted_project(CONFIG, &[]);
    let ran = scripted(&project, &format!("[{RED}, {GREEN}]"), &["--name", "try"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    project
}

/// Returns a project after the session `first`, whose only turn is red.
fn after_red_turn() -> TestProject {
    let project = trusted_project(CONFIG, &[]);
    let args = ["--name", "first", "--max-iterations", "1"];
    let ran = scripted(&project, &format!("[{RED}]"), &args);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    project
}

fn by_id<'v>(checks: &'v Value, id: &str) -> &'v Value {
    let found = checks.as_array().unwrap().iter().find(|check| check["id"] == id);
    found.unwrap_or_else(|| panic!("{id}: {checks}"))
}

#[test]
fn each_check_has_its_newest_outcome_and_its_history() {
    let project = after_two_turns();
    let session = project.json(&["sessions", "show", "try"]);
    let trees: Vec<&Value> =
        session["receipts"].as_array().unwrap().iter().map(|receipt| &receipt["tree"]).collect();
    assert_eq!(trees.len(), 2, "{session}");
    let checks = project.json(&["checks", "tests"]);
    assert_eq!(checks, project.json(&["checks"]));
    let ids: Vec<&str> =
        checks.as_array().unwrap().iter().map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["later", "adds", "answers"], "skipped checks come before passed ones");
    let expect = |id: &str, expected: Value| {
        let mut check = by_id(&checks, id).clone();
        let fields = check.as_object_mut().unwrap();
        let [at, since] = ["at", "since"].map(|name| fields.remove(name).unwrap());
        assert!(since.as_str().unwrap() <= at.as_str().unwrap(), "{checks}");
        assert_eq!(check, expected);
    };
    expect(
        "adds",
        json!({
            "gate": "tests", "id": "adds", "outcome": "passed", "ms": 500, "tree": trees[1],
            "session": session["id"], "runs": 2, "failures": 0, "flips": 0,
            "history": ["passed", "passed"], "gone": false,
        }),
    );
    expect(
        "answers",
        json!({
            "gate": "tests", "id": "answers", "outcome": "passed", "ms": 1500, "tree": trees[1],
            "session": session["id"], "runs": 2, "failures": 1, "flips": 1,
            "history": ["failed", "passed"], "gone": false,
        }),
    );
    let since = |id: &str| by_id(&checks, id)["since"].as_str().unwrap();
    assert!(since("adds") < since("answers"), "{checks}");
    assert_eq!(project.json(&["checks", "--failing"]), json!([]));
}

#[test]
fn the_checks_of_a_gate_are_printed_with_the_slowest() {
    let project = after_two_turns();
    let tree = by_id(&project.json(&["checks"]), "adds")["tree"].as_str().unwrap().to_owned();
    let printed = project.ok(&["checks"]);
    let headline = format!("tests: 2 passed, 1 skipped, on tree {} (", &tree[..10]);
    assert!(printed.starts_with(&headline), "{printed}");
    for part in ["1.5 s  answers\n", "500 ms  adds\n", "hookloop checks tests --json"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    // The check `later` was never run, so it is not newly skipped.
    assert!(!printed.contains('✗') && !printed.contains("later"), "{printed}");
}

#[test]
fn failing_checks_are_listed_with_their_history() {
    let project = after_red_turn();
    let printed = project.ok(&["checks", "tests"]);
    assert!(printed.starts_with("tests: 1 passed, 1 failed, 1 skipped, on tree "), "{printed}");
    assert!(printed.contains("  ✗ answers  ✗") && printed.contains("slowest"), "{printed}");
    let only = project.ok(&["checks", "--failing"]);
    assert!(only.contains("  ✗ answers  ✗") && !only.contains("slowest"), "{only}");
    let failing = project.json(&["checks", "--failing"]);
    assert_eq!(failing.as_array().unwrap().len(), 1, "{failing}");
    assert_eq!((&failing[0]["id"], &failing[0]["outcome"]), (&json!("answers"), &json!("failed")));
    assert_eq!(failing[0]["failures"], failing[0]["runs"]);
}

#[test]
fn the_history_of_a_check_spans_sessions() {
    let project = after_red_turn();
    let ran = scripted(&project, &format!("[{GREEN}]"), &["--name", "second"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let id = |name: &str| project.json(&["sessions", "show", name])["id"].clone();
    let all = project.json(&["checks"]);
    let answers = by_id(&all, "answers");
    assert_eq!((&answers["outcome"], &answers["flips"]), (&json!("passed"), &json!(1)));
    assert_eq!(answers["session"], id("second"));
    let history = answers["history"].as_array().unwrap();
    assert_eq!((&history[0], history.last().unwrap()), (&json!("failed"), &json!("passed")));
    let first = project.json(&["checks", "--session", "first"]);
    let answers = by_id(&first, "answers");
    assert_eq!((&answers["outcome"], &answers["session"]), (&json!("failed"), &id("first")));
    let second = project.json(&["checks", "tests", "--session", "second"]);
    let answers = by_id(&second, "answers");
    assert_eq!((&answers["runs"], &answers["flips"]), (&json!(1), &json!(0)));
    let error = project.fails(1, &["checks", "--session", "none"]);
    assert!(error.contains("hookloop sessions list"), "{error}");
}

#[test]
fn an_unknown_gate_is_refused_with_the_known_gates() {
    let project = after_red_turn();
    let error = project.fails(1, &["checks", "test"]);
    assert!(error.contains("there is no gate `test`; did you mean `tests`?"), "{error}");
    assert!(error.contains("the gates are tests"), "{error}");
}

#[test]
fn a_project_without_records_is_told_the_next_step() {
    let config = "version: 1\nhooks: {stop: [{name: tests, command: 'true'}]}\n";
    let project = trusted_project(config, &[]);
    assert_eq!(project.json(&["checks"]), json!([]));
    let printed = project.ok(&["checks"]);
    assert!(printed.contains("No sessions yet") && printed.contains("hookloop run"), "{printed}");
    let ran = scripted(&project, &format!("[{GREEN}]"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let printed = project.ok(&["checks"]);
    assert!(printed.starts_with("No checks are recorded.\n"), "{printed}");
    assert!(printed.contains("report: PATH") && printed.contains("$HOOKLOOP_REPORT"), "{printed}");
    let printed = project.ok(&["checks", "tests"]);
    assert!(printed.starts_with("No checks of the gate tests are recorded.\n"), "{printed}");
}

#[test]
fn receipts_are_printed_with_the_counts_of_their_checks() {
    let project = trusted_project(CONFIG, &[]);
    project.write_turns(format!("[{RED}, {GREEN}]"));
    let ran = project.run(&["run", "work", "--agent", SCRIPTED_AGENT, "--name", "try"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let red = "checks of tests: 1 passed, 1 failed, 1 skipped · ";
    let green = "checks of tests: 2 passed, 1 skipped · ";
    let session = project.json(&["sessions", "show", "try"]);
    let counts = json!({"passed": 2, "failed": 0, "skipped": 1});
    assert_eq!(session["receipts"][1]["checks"], counts, "{session}");
    let tree = session["receipts"][1]["tree"].as_str().unwrap();
    let receipt = format!(" on tree {tree}: 2 passed, 1 skipped · ");
    for part in [red, green, "  receipt: tests passed in ", &receipt] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let steps = shown(&project, &["sessions", "show", "try"]);
    assert!(steps.contains(red) && steps.contains(green), "{steps}");
    let why = shown(&project, &["why", "try"]);
    let receipt = format!("receipt: tests passed on {tree}: 2 passed, 1 skipped · ");
    assert!(why.contains(&receipt), "{why}");
}
