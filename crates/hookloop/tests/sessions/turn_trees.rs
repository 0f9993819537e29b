//! The turns and receipts of `sessions show`, with the git tree of the files after each turn.

use hookloop_testkit::{SCRIPTED_AGENT, TestProject};
use serde_json::{Value, json};

use super::visible::shown;
use super::{scripted, trusted_project};

const CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: tests, command: 'grep -qx 42 answer'}
";
/// Both turns claim to be complete, the first wrongly.
const TURNS: &str = r#"[
    {"write": {"answer": "41\n"}, "say": "Done.\n<promise>COMPLETE</promise>",
     "usage": {"input_tokens": 900, "output_tokens": 100, "cost_micros": 3000}},
    {"write": {"answer": "42\n", "new/file": "new\n"}, "say": "Fixed.\n<promise>COMPLETE</promise>"}
]"#;

/// Returns a project after the session `try` of [`TURNS`].
fn after_two_turns() -> TestProject {
    let project = trusted_project(CONFIG, &[]);
    let ran = scripted(&project, TURNS, &["--name", "try"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    project
}

/// Returns the tree that a commit of all files would have.
fn tree_of_files(project: &TestProject) -> String {
    project.git(&["add", "--all"]);
    project.git(&["write-tree"])
}

fn texts<'v>(items: &'v Value, field: &str) -> Vec<&'v str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap()).collect()
}

#[test]
fn each_turn_has_the_tree_of_the_files_after_it() {
    let project = after_two_turns();
    let session = project.json(&["sessions", "show", "try"]);
    let trees = texts(&session["turns"], "tree");
    assert_eq!(trees.len(), 2);
    assert_ne!(trees[0], trees[1]);
    assert_eq!(trees[1], tree_of_files(&project));
    assert_eq!(texts(&session["receipts"], "tree"), trees);
    project.write("answer", "41\n");
    std::fs::remove_dir_all(project.root().join("new")).unwrap();
    assert_eq!(trees[0], tree_of_files(&project));
}

#[test]
fn a_session_is_shown_as_one_object_with_its_turns_and_receipts() {
    let project = after_two_turns();
    let mut session = project.json(&["sessions", "show", "try"]);
    let fields = session.as_object_mut().unwrap();
    let turns = fields.remove("turns").unwrap();
    let receipts = fields.remove("receipts").unwrap();
    assert_eq!(session, project.json(&["sessions", "list"])[0]);
    let check = |turn: usize, expected: Value| {
        let mut found = turns[turn].clone();
        let fields = found.as_object_mut().unwrap();
        let tree = fields.remove("tree");
        assert!(tree.is_some_and(|tree| tree.is_string()), "{turns}");
        assert!(fields.remove("duration_ms").is_some_and(|ms| ms.is_u64()), "{turns}");
        let times = ["started_at", "ended_at"].map(|name| fields.remove(name).unwrap());
        let times = times.each_ref().map(|time| time.as_str().unwrap());
        assert!(times[0] <= times[1], "{turns}");
        assert_eq!(found, expected);
    };
    check(
        0,
        json!({
            "number": 1, "kind": "work", "iteration": 1, "agent": SCRIPTED_AGENT,
            "result": "finished", "changed": ["answer"], "tokens": 1000, "cost_micros": 3000,
            "promises": ["COMPLETE"], "message": "Done.\n<promise>COMPLETE</promise>",
        }),
    );
    check(
        1,
        json!({
            "number": 2, "kind": "work", "iteration": 2, "agent": SCRIPTED_AGENT,
            "result": "finished", "changed": ["answer", "new/file"], "tokens": 0, "cost_micros": 0,
            "promises": ["COMPLETE"], "message": "Fixed.\n<promise>COMPLETE</promise>",
        }),
    );
    assert_eq!(texts(&receipts, "status"), ["failed", "passed"]);
    // The receipts are those of the log.
    let recorded = ["log", "--session", "try", "--type", "receipt_recorded"];
    let recorded = project.json_lines(&recorded).into_iter().map(|event| {
        let mut receipt = event["data"].clone();
        receipt["at"] = event["timestamp"].clone();
        receipt
    });
    assert_eq!(receipts, recorded.collect::<Value>());
}

#[test]
fn turns_are_counted_with_recoveries_and_failures() {
    let config = "version: 1
hooks:
  on_error:
    - {name: told, command: 'echo {{error}}', pipe_output: true}
";
    let project = trusted_project(config, &[]);
    let turns = r#"[
        {"fail": "the network is down"},
        {"say": "Recovered."},
        {"write": {"answer": "42\n"}, "say": "<promise>COMPLETE</promise>"}
    ]"#;
    let ran = scripted(&project, turns, &["--name", "try"]);
    assert_eq!((ran.code, ran.outcome()), (6, "complete"), "{}", ran.stderr);
    let session = project.json(&["sessions", "show", "try"]);
    let turns = &session["turns"];
    assert_eq!(texts(turns, "kind"), ["work", "recovery", "work"]);
    assert_eq!(texts(turns, "result"), ["failed", "finished", "finished"]);
    let numbers = |field: &str| -> Vec<u64> {
        let turns = turns.as_array().unwrap().iter();
        turns.map(|turn| turn[field].as_u64().unwrap()).collect()
    };
    assert_eq!((numbers("number"), numbers("iteration")), (vec![1, 2, 3], vec![1, 1, 2]));
    let trees = texts(turns, "tree");
    assert_eq!(trees[0], trees[1], "no file changed");
    assert_ne!(trees[1], trees[2]);
    assert_eq!(session["receipts"], json!([]));
}

#[test]
fn sessions_show_and_why_print_the_tree_after_a_turn() {
    let project = after_two_turns();
    let session = project.json(&["sessions", "show", "try"]);
    let trees = texts(&session["turns"], "tree");
    let line = |turn: usize| format!("files after turn {turn}: tree {}\n", &trees[turn - 1][..10]);
    let steps = shown(&project, &["sessions", "show", "try"]);
    assert!(steps.contains(&line(1)) && steps.contains(&line(2)), "{steps}");
    let why = shown(&project, &["why", "try"]);
    assert!(why.contains(&line(2)) && !why.contains("files after turn 1"), "{why}");
}
