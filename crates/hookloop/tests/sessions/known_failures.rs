//! Gates in a project whose tests failed before the work, with the test runner of Node.js.

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::{run, trusted_project};

const SOURCE: &str = "exports.add = (a, b) => a - b;\nexports.one = () => 1;\n";
const TESTS: &str = "const { test } = require('node:test');
const assert = require('node:assert');
const calc = require('../calc.js');

test('adds', () => {
  assert.strictEqual(calc.add(2, 3), 5);
});

test('is one', () => {
  assert.strictEqual(calc.one(), 1);
});
";
/// The agent breaks the other test.
const BROKEN: &str = "exports.add = (a, b) => a - b;\nexports.one = () => 2;\n";

fn project(base_tests: &str) -> TestProject {
    let gate = format!("{{name: tests, command: node --test, base_tests: {base_tests}}}");
    let config = format!("version: 1\nhooks:\n  stop:\n    - {gate}\n");
    let files = [("calc.js", SOURCE), ("test/calc.test.js", TESTS), ("package.json", "{}\n")];
    trusted_project(&config, &files)
}

fn allowing() -> TestProject {
    project("{known_failures: allow}")
}

/// Runs a session in which each turn writes files and claims to be complete.
fn claims(project: &TestProject, turns: &[Value]) -> SessionOutput {
    let claim = "<promise>COMPLETE</promise>";
    let turns: Vec<Value> =
        turns.iter().map(|files| json!({"write": files, "say": claim})).collect();
    project.write_turns(Value::from(turns).to_string());
    run(project, &["work", "--agent", SCRIPTED_AGENT, "--max-iterations", "2"])
}

fn last_receipt(ran: &SessionOutput) -> Value {
    ran.all("receipt_recorded").last().copied().unwrap().clone()
}

#[test]
fn a_gate_passes_whose_failing_checks_failed_before_the_work() {
    let project = allowing();
    let ran = claims(&project, &[json!({"docs.md": "more\n"})]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let receipt = last_receipt(&ran);
    assert_eq!(receipt["status"], "passed");
    assert_eq!(receipt["base_tests"]["known_failures"], 1);
    assert_eq!(receipt["checks"]["failed"], 1, "the counts are those of the run");
}

/// The tests of the base fail at the same check.
#[test]
fn a_known_failure_is_none_of_the_findings() {
    let project = allowing();
    let tests = format!("{TESTS}\ntest('is still one', () => {{ calc.one(); }});\n");
    let ran = claims(&project, &[json!({"test/calc.test.js": tests})]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let tests = last_receipt(&ran)["base_tests"].clone();
    assert_eq!((&tests["known_failures"], &tests["findings"]), (&json!(1), &Value::Null));
}

#[test]
fn a_check_that_the_work_breaks_is_no_known_failure() {
    let project = allowing();
    project.write("broken.js", BROKEN);
    project.write("whole.js", SOURCE);
    project.write(".gitignore", "prompt-*\n");
    let agent = "command:cat > prompt-$HOOKLOOP_ITERATION; [ $HOOKLOOP_ITERATION = 1 ] && cp broken.js calc.js || \
                 cp whole.js calc.js; echo '<promise>COMPLETE</promise>'";
    let ran = run(&project, &["work", "--agent", agent, "--max-iterations", "2"]);
    assert_eq!(ran.verdicts(), ["block", "pass"], "{}", ran.stderr);
    let told = project.read("prompt-2");
    assert!(told.contains("failed before you began: adds"), "{told}");
    let base_runs = ran.all("hook_ran").iter().filter(|run| run["base_tests"] == true).count();
    assert_eq!(base_runs, 1, "the checks before the work are determined once");
}

#[test]
fn known_failures_count_only_with_the_option() {
    for base_tests in ["true", "{known_failures: block}"] {
        let ran = claims(&project(base_tests), &[json!({"docs.md": "more\n"})]);
        assert_ne!((ran.code, ran.outcome()), (0, "complete"), "{base_tests}");
    }
}

/// A session that ends without proof must not make its failures known ones.
#[test]
fn a_failure_of_an_earlier_session_is_no_known_failure() {
    let project = allowing();
    let first = claims(&project, &[json!({"calc.js": BROKEN})]);
    assert_ne!(first.outcome(), "complete");
    let second = claims(&project, &[json!({"docs.md": "more\n"})]);
    assert_ne!(second.outcome(), "complete", "{}", second.stderr);
    // The first session's work is undone, so the failures are those before it.
    project.write("calc.js", SOURCE);
    let third = claims(&project, &[json!({"docs.md": "still more\n"})]);
    assert_eq!((third.code, third.outcome()), (0, "complete"), "{}", third.stderr);
}

/// A run that ends early does not have the failures of the other checks.
#[test]
fn a_gate_that_fails_in_another_way_is_judged_as_always() {
    for source in ["throw new Error('x');\n", "process.exit(3);\n"] {
        let ran = claims(&allowing(), &[json!({"calc.js": source})]);
        assert_ne!(ran.outcome(), "complete", "{source}");
    }
}
