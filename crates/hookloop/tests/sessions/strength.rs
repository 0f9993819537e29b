//! The strength of the tests of a gate.
//!
//! The modules of engines need the programs that `.ci/mutation-engines` installs to $HOOKLOOP_MUTATION, or else to
//! ~/.cache/hookloop-mutation.

mod cargo_mutants;
mod mutmut;
mod stryker;

use std::path::PathBuf;

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::{run_as_it_is, trusted_project};

/// Returns the path of an installed program.
fn installed(path: &str) -> String {
    let usual =
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/hookloop-mutation");
    let engines = std::env::var_os("HOOKLOOP_MUTATION").map_or_else(usual, PathBuf::from);
    let path = engines.join(path);
    assert!(path.exists(), "{} is missing: run `.ci/mutation-engines`", path.display());
    path.display().to_string()
}

/// Runs a session in which each turn writes files and claims to be complete.
fn claims(project: &TestProject, turns: &[Value]) -> SessionOutput {
    let claim = |files: &Value| json!({"write": files, "say": "<promise>COMPLETE</promise>"});
    let turns: Vec<Value> = turns.iter().map(claim).collect();
    let count = turns.len().to_string();
    project.write_turns(Value::from(turns).to_string());
    run_as_it_is(project, &["work", "--agent", SCRIPTED_AGENT, "--max-iterations", &count])
}

/// Returns the strength in the last receipt.
fn strength(ran: &SessionOutput) -> Value {
    let receipts = ran.all("receipt_recorded");
    receipts.last().map(|receipt| receipt["strength"].clone()).unwrap_or_default()
}

const NODE_CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: tests, command: node --test, strength: {}}
";
const NODE_TESTS: &str = "const { test } = require('node:test');
test('works', () => {
  if (require('../calc.js').add(2, 3) !== 5) throw new Error('wrong');
});
";

fn node_project() -> TestProject {
    let source = "exports.add = (a, b) => a - b;\n";
    let files = [("calc.js", source), ("test/calc.test.js", NODE_TESTS), ("package.json", "{}\n")];
    trusted_project(NODE_CONFIG, &files)
}

#[test]
fn a_missing_engine_needs_a_person_and_is_never_a_pass() {
    let turn = json!({"calc.js": "exports.add = (a, b) => a + b;\n"});
    let ran = claims(&node_project(), &[turn.clone(), turn]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    // The agent can't install an engine, so it is not told.
    assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
    let strength = strength(&ran);
    assert_eq!(strength["status"], "engine_failed", "{strength}");
    assert_eq!((&strength["engine"], &strength["score"]), (&json!("Stryker"), &Value::Null));
    assert!(strength["reason"].as_str().unwrap().contains("exit code"), "{strength}");
}

#[test]
fn work_without_a_changed_function_has_nothing_to_mutate() {
    let project = node_project();
    project.write("calc.js", "exports.add = (a, b) => a + b;\n");
    let ran = claims(&project, &[json!({"NOTES.md": "A note.\n"})]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(strength(&ran)["status"], "nothing_to_mutate");
}

#[test]
fn a_gate_without_a_command_has_no_strength() {
    let config =
        "version: 1\nhooks:\n  stop:\n    - {name: small, diff: {max_files: 5}, strength: {}}\n";
    let project = trusted_project(config, &[("calc.js", "exports.add = (a, b) => a - b;\n")]);
    let ran = claims(&project, &[json!({"calc.js": "exports.add = (a, b) => a + b;\n"})]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(strength(&ran)["reason"].as_str().unwrap().contains("`command`"), "{}", ran.stderr);
}

#[test]
fn a_marker_that_hides_code_from_engines_needs_a_person() {
    let turn = json!({"calc.js": "// Stryker disable all\nexports.add = (a, b) => a + b;\n"});
    let ran = claims(&node_project(), &[turn]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let strength = strength(&ran);
    assert_eq!(strength["status"], "engine_failed", "{strength}");
    assert!(strength["reason"].as_str().unwrap().contains("Stryker disable"), "{strength}");
}

#[test]
fn a_function_that_only_moved_is_not_measured() {
    let source = "exports.add = (a, b) => a + b;\nconst one = () => {\n  return 1;\n};\nexports.one = one;\n";
    let files = [("calc.js", source), ("test/calc.test.js", NODE_TESTS), ("package.json", "{}\n")];
    let project = trusted_project(NODE_CONFIG, &files);
    let moved = json!({
        "calc.js": "exports.add = (a, b) => a + b;\nexports.one = require('./one.js').one;\n",
        "one.js": "const one = () => {\n  return 1;\n};\nexports.one = one;\n",
    });
    let ran = claims(&project, &[moved]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(strength(&ran)["status"], "nothing_to_mutate");
}

#[test]
fn a_lower_bar_is_a_weaker_gate() {
    let project = node_project();
    project
        .write("hookloop.yaml", &NODE_CONFIG.replace("strength: {}", "strength: {at_least: 10}"));
    let ran = claims(&project, &[json!({"calc.js": "exports.add = (a, b) => a + b;\n"})]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ran.count("turn_ended"), 0, "{}", ran.stderr);
}
