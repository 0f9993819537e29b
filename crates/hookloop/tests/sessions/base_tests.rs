//! The tests of the base against the work of an agent, with the test runner of Node.js.

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::{run, run_as_it_is, trusted_project};

pub(super) const CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: tests, command: node --test, base_tests: true}
";
pub(super) const SOURCE: &str = "exports.add = (a, b) => a - b;\nexports.one = () => 1;\n";
pub(super) const FIXED: &str = "exports.add = (a, b) => a + b;\nexports.one = () => 1;\n";
pub(super) const TESTS: &str = "const { test } = require('node:test');
const assert = require('node:assert');
const calc = require('../calc.js');

test('adds', () => {
  assert.strictEqual(calc.add(2, 3), 5);
});

test('is one', () => {
  assert.strictEqual(calc.one(), 1);
});
";
pub(super) const PATH: &str = "test/calc.test.js";

fn project() -> TestProject {
    trusted_project(CONFIG, &[("calc.js", SOURCE), (PATH, TESTS), ("package.json", "{}\n")])
}

/// Runs a session in which each turn writes files and claims to be complete.
pub(super) fn claims(project: &TestProject, turns: &[Value], args: &[&str]) -> SessionOutput {
    let claim = |turn: &Value| {
        let mut turn = turn.clone();
        turn["say"] = json!("<promise>COMPLETE</promise>");
        turn
    };
    let turns: Vec<Value> = turns.iter().map(claim).collect();
    project.write_turns(Value::from(turns).to_string());
    let iterations = "3";
    let args =
        [&["work", "--agent", SCRIPTED_AGENT, "--max-iterations", iterations], args].concat();
    run(project, &args)
}

/// Returns the kind and the check of each finding in the last receipt.
pub(super) fn found(ran: &SessionOutput) -> Vec<(String, String)> {
    let receipts = ran.all("receipt_recorded");
    let tests = &receipts.last().unwrap()["base_tests"];
    let findings = tests["findings"].as_array().cloned().unwrap_or_default();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    findings.iter().map(|finding| (text(finding, "kind"), text(finding, "check"))).collect()
}

#[track_caller]
pub(super) fn assert_complete(ran: &SessionOutput) {
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
}

pub(super) fn test_file(content: &str) -> Value {
    json!({"write": {PATH: content}})
}

pub(super) fn pair(kind: &str, check: &str) -> Vec<(String, String)> {
    vec![(kind.to_owned(), check.to_owned())]
}

#[test]
fn honest_work_is_complete_with_the_tests_of_the_base() {
    for turn in [
        json!({"write": {"calc.js": FIXED}}),
        json!({"write": {"calc.js": FIXED, "test/more.test.js": TESTS.replace("'adds'", "'adds more'")}}),
        json!({"write": {"calc.js": FIXED, "test/renamed.test.js": TESTS}, "delete": [PATH]}),
        json!({"write": {"calc.js": FIXED, PATH: TESTS.replace("  assert", "\n    assert")}}),
    ] {
        let ran = claims(&project(), std::slice::from_ref(&turn), &[]);
        assert_complete(&ran);
        assert_eq!(found(&ran), [], "{turn}");
    }
}

#[test]
fn a_receipt_names_the_base_and_the_tree_with_its_tests() {
    let ran = claims(&project(), &[json!({"write": {"calc.js": FIXED}})], &[]);
    let tests = &ran.all("receipt_recorded")[0]["base_tests"];
    assert!(tests["base"].is_string() && tests["tree"].is_null(), "{tests}");
    let more = json!({"write": {"calc.js": FIXED, "test/more.test.js": TESTS}});
    let ran = claims(&project(), &[more], &[]);
    let tests = &ran.all("receipt_recorded")[0]["base_tests"];
    assert!(tests["tree"].is_string(), "{tests}");
    assert_eq!(tests["checks"], json!({"passed": 2, "failed": 0, "skipped": 0}));
    let runs = ran.all("hook_ran");
    let of_base: Vec<bool> = runs.iter().map(|run| run["base_tests"] == true).collect();
    assert_eq!(of_base, [false, true], "{runs:?}");
}

#[test]
fn a_test_that_is_gone_goes_to_the_agent_once_and_then_to_a_person() {
    let without = TESTS.replace("test('adds'", "(() => {})('adds'");
    for tests in [without, TESTS.replace("test('adds'", "test.skip('adds'")] {
        let ran = claims(&project(), &[test_file(&tests), json!({})], &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        assert_eq!(ran.count("turn_ended"), 2, "{}", ran.stderr);
        assert_eq!(found(&ran), pair("gone", "adds"), "{}", ran.stderr);
        let told = format!("{:?}", ran.all("output_piped"));
        assert!(told.contains("Restore them"), "{told}");
    }
}

#[test]
fn a_test_that_is_gone_and_still_passes_needs_a_person() {
    let without = TESTS.split("test('is one'").next().unwrap();
    let turn = json!({"write": {"calc.js": FIXED, PATH: without}});
    let ran = claims(&project(), &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
    assert_eq!(found(&ran), pair("test_replaced", "is one"), "{}", ran.stderr);
}

#[test]
fn a_changed_table_of_cases_needs_a_person() {
    let table = |expected: &str| {
        format!(
            "const {{ test }} = require('node:test');\nconst assert = require('node:assert');\nconst calc = \
             require('../calc.js');\nconst cases = [[2, 3, {expected}]];\ntest('adds', () => {{\n  for (const [a, b, c] \
             of cases) assert.strictEqual(calc.add(a, b), c);\n}});\n"
        )
    };
    let files = [("calc.js", SOURCE), (PATH, &table("5")), ("package.json", "{}\n")];
    let project = trusted_project(CONFIG, &files);
    let ran = claims(&project, &[test_file(&table("-1"))], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
    assert_eq!(found(&ran), pair("test_replaced", "adds"), "{}", ran.stderr);
}

#[test]
fn an_agent_that_restores_the_tests_completes() {
    let project = project();
    let fixed = json!({"write": {"calc.js": FIXED, PATH: TESTS}});
    let ran = claims(&project, &[json!({"delete": [PATH]}), fixed], &[]);
    assert_complete(&ran);
    assert_eq!(found(&ran), []);
}

#[test]
fn a_changed_expectation_needs_a_person() {
    for (from, to) in
        [(", 5)", ", -1)"), ("assert.strictEqual(calc.add(2, 3), 5)", "calc.add(2, 3)")]
    {
        let ran = claims(&project(), &[test_file(&TESTS.replace(from, to))], &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        assert_eq!(ran.count("turn_ended"), 1, "{}", ran.stderr);
        assert_eq!(found(&ran), pair("expectation_changed", "adds"), "{}", ran.stderr);
        let finding = &ran.all("receipt_recorded")[0]["base_tests"]["findings"][0];
        assert_eq!(finding["path"], PATH);
        assert!(finding["before"].as_str().unwrap().contains('5'), "{finding}");
    }
}

/// The tests use a file that another gate makes.
#[test]
fn the_base_run_has_the_files_of_the_gates_before_it() {
    for needs in ["", ", needs: [build]"] {
        let config = format!(
            "version: 1
hooks:
  stop:
    - {{name: build, command: 'mkdir -p dist && cp calc.js dist/'}}
    - {{name: tests, command: 'test -e dist/calc.js && node --test', base_tests: true{needs}}}
"
        );
        let files =
            [("calc.js", FIXED), (PATH, TESTS), ("package.json", "{}\n"), (".gitignore", "dist\n")];
        let project = trusted_project(&config, &files);
        let more = format!("{TESTS}\ntest('adds more', () => {{ calc.add(1, 1); }});\n");
        let ran = claims(&project, &[test_file(&more)], &[]);
        assert_complete(&ran);
    }
}

#[test]
fn a_person_allows_a_change_before_or_after_the_claim() {
    let weaker = test_file(&TESTS.replace(", 5)", ", -1)"));
    let ran = claims(&project(), std::slice::from_ref(&weaker), &["--may-change", "test/**"]);
    assert_complete(&ran);
    let finding = &ran.all("receipt_recorded")[0]["base_tests"]["findings"][0];
    assert_eq!(finding["allowed_by"], "may_change");

    let project = project();
    let ran = claims(&project, &[weaker], &[]);
    assert_eq!(ran.code, 3);
    let resumed = project.json_command(&["resume", "--may-change", PATH]).output().unwrap();
    let resumed: SessionOutput = resumed.into();
    assert_complete(&resumed);
    assert_eq!(resumed.count("turn_ended"), 0, "{}", resumed.stderr);
    assert_eq!(resumed.all("session_ended")[0]["proven"], true);
}

/// The runner, its settings and its targets are those of the base, and a person looks at those outside of the project.
#[test]
fn the_work_does_not_choose_how_its_tests_run() {
    let config = CONFIG.replace("node --test", "make -s check");
    let makefile = "check:\n\tnode --test\n";
    let project = || {
        let files = [("calc.js", SOURCE), (PATH, TESTS), ("Makefile", makefile)];
        trusted_project(&config, &files)
    };
    for turn in [
        json!({"write": {"Makefile": makefile.replace("node", "-node")}}),
        json!({"write": {"GNUmakefile": "check:\n\t@echo passed\n"}}),
    ] {
        let ran = claims(&project(), std::slice::from_ref(&turn), &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{turn}: {}", ran.stderr);
        assert_eq!(found(&ran)[0].0, "unchanged_red", "{turn}");
    }
    let project = project();
    let turn = json!({
        "write": {"calc.js": FIXED},
        "run": "mkdir -p \"$HOME/.cargo\" && touch \"$HOME/.npmrc\" \"$HOME/.cargo/config.toml\"",
    });
    let ran = claims(&project, &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let kinds: Vec<(String, String)> = found(&ran);
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    let is_found = |name: &str| {
        kinds.iter().any(|(kind, check)| kind == "surroundings_changed" && check.ends_with(name))
    };
    assert!(is_found("/.npmrc") && is_found("/.cargo/config.toml"), "{kinds:?}");
    // They do not become a part of the base of the next session.
    let ran = claims(&project, &[json!({"write": {"NOTES.md": "a note\n"}})], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let items: Value =
        serde_json::from_str(&printed(&project, &["inbox", "list", "--json"])).unwrap();
    let last = items.as_array().unwrap().last().unwrap();
    printed(&project, &["inbox", "approve", last["key"].as_str().unwrap()]);
    assert_complete(&project.json_command(&["resume"]).output().unwrap().into());
    assert_complete(&claims(&project, &[json!({"write": {"NOTES.md": "two\n"}})], &[]));
}

pub(super) fn printed(project: &TestProject, args: &[&str]) -> String {
    let output = project.hookloop(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_person_sees_both_versions_in_the_inbox_and_allows_exactly_this_change() {
    let project = project();
    let ran = claims(&project, &[test_file(&TESTS.replace(", 5)", ", -1)"))], &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let shown = printed(&project, &["inbox", "show"]);
    let rows =
        ["-   assert.strictEqual(calc.add(2, 3), 5)", "+  assert.strictEqual(calc.add(2, 3), -1)"];
    for row in rows {
        assert!(shown.contains(row), "{shown}");
    }
    let items: Value =
        serde_json::from_str(&printed(&project, &["inbox", "show", "--json"])).unwrap();
    let key = items[0]["key"].as_str().unwrap().to_owned();
    let change = &items[0]["record"]["test_changes"][0];
    assert_eq!(
        (&change["kind"], &change["check"]),
        (&json!("expectation_changed"), &json!("adds"))
    );
    assert_eq!(items[0]["next"][0], format!("hookloop inbox approve {key}"));

    let approved = printed(&project, &["inbox", "approve", &key]);
    assert!(approved.contains("run: hookloop resume"), "{approved}");
    // Another change was not approved.
    project.write(PATH, &TESTS.replace(", 5)", ", -1, 'wrong')"));
    let resume = || -> SessionOutput { project.json_command(&["resume"]).output().unwrap().into() };
    let other = resume();
    assert_eq!((other.code, other.outcome()), (3, "needs_human"), "{}", other.stderr);

    project.write(PATH, &TESTS.replace(", 5)", ", -1)"));
    let items: Value =
        serde_json::from_str(&printed(&project, &["inbox", "list", "--json"])).unwrap();
    printed(&project, &["inbox", "approve", items[0]["key"].as_str().unwrap()]);
    let resumed = resume();
    assert_complete(&resumed);
    assert_eq!(resumed.count("turn_ended"), 0, "{}", resumed.stderr);
    let finding = &resumed.all("receipt_recorded")[0]["base_tests"]["findings"][0];
    assert!(finding["allowed_by"].as_str().is_some_and(|by| by != "may_change"), "{finding}");
}

/// A test that compares with a file has another expectation if the file changed.
#[test]
fn changed_data_of_a_test_is_a_changed_expectation() {
    let tests = "const { test } = require('node:test');
const fs = require('node:fs');
test('sum', () => {
  const expected = fs.readFileSync(`${__dirname}/sum.txt`, 'utf8').trim();
  require('node:assert').strictEqual(String(require('../calc.js').add(2, 3)), expected);
});
";
    let files = [("calc.js", SOURCE), (PATH, tests), ("test/sum.txt", "5\n")];
    let turn = json!({"write": {"test/sum.txt": "-1\n"}});
    let ran = claims(&trusted_project(CONFIG, &files), std::slice::from_ref(&turn), &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(found(&ran), pair("expectation_changed", "sum"), "{}", ran.stderr);
    let allowed = ["--may-change", "test/*.txt"];
    assert_complete(&claims(&trusted_project(CONFIG, &files), &[turn], &allowed));
}

#[test]
fn changed_tests_of_a_refused_session_are_not_the_base_of_the_next() {
    let project = project();
    let ran = claims(&project, &[test_file(&TESTS.replace(", 5)", ", -1)"))], &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = claims(&project, &[json!({"write": {"NOTES.md": "a note\n"}})], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(found(&ran), pair("expectation_changed", "adds"));
    // A person's commit makes them the base.
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "Change the expectation"]);
    let ran = claims(&project, &[json!({"write": {"NOTES.md": "another note\n"}})], &[]);
    assert_complete(&ran);
}

#[test]
fn sources_that_know_the_tests_go_to_the_agent_once_and_then_to_a_person() {
    let tests = TESTS.replace("add(2, 3), 5", "add(17, 25), 42");
    let case = "exports.add = (a, b) => {\n  if (a === 17 && b === 25) return 42;\n  return a - b;\n};\n\
                exports.one = () => 1;\n";
    let runner = "const isTest = 'NODE_TEST_CONTEXT' in process.env;\n\
                  exports.add = (a, b) => isTest ? a + b : a - b;\nexports.one = () => 1;\n";
    for (source, kind, check) in
        [(case, "test_literal", "calc.js:2"), (runner, "runner_mention", "calc.js:1")]
    {
        let project = project();
        project.write(PATH, &tests);
        project.git(&["commit", "--quiet", "--all", "--message", "Test larger numbers"]);
        let ran = claims(&project, &[json!({"write": {"calc.js": source}}), json!({})], &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        assert_eq!(ran.count("turn_ended"), 2, "{}", ran.stderr);
        assert_eq!(found(&ran), pair(kind, check), "{}", ran.stderr);
        let told = format!("{:?}", ran.all("output_piped"));
        assert!(told.contains("Solve the task for all inputs"), "{told}");
        // The line is not repeated if the agent solves the task.
        let ran = claims(&project, &[json!({"write": {"calc.js": FIXED}})], &[]);
        assert_complete(&ran);
    }
}

/// A file of the base that no longer builds is compared by its text, and hides no other file.
#[test]
fn a_test_file_that_does_not_build_is_left_out_alone() {
    let other = TESTS.replace("calc.js", "sum.js").replace("adds", "totals");
    let other = other.replace("2, 3), 5", "4, 5), 9");
    let weaker = TESTS.replace(", 5)", ", -1)");
    let weaker_other = other.replace(", 9)", ", -1)");
    // A module gets another name, and its tests follow.
    let moved = |calc: &str, tests: &str, total: &str, other: &str| {
        json!({
            "write": {
                "calc.js": calc, PATH: tests,
                "total.js": total, "test/other.test.js": other.replace("sum.js", "total.js"),
            },
            "delete": ["sum.js"],
        })
    };
    let file = || ("not_buildable".to_owned(), "test/other.test.js".to_owned());
    let changed = |check: &str| ("expectation_changed".to_owned(), check.to_owned());
    for (turn, code, expected) in [
        (moved(FIXED, TESTS, FIXED, &other), 0, vec![file()]),
        (moved(SOURCE, &weaker, FIXED, &other), 3, vec![changed("adds"), file()]),
        (moved(FIXED, TESTS, SOURCE, &weaker_other), 3, vec![changed("totals"), file()]),
    ] {
        let project = trusted_project(
            CONFIG,
            &[
                ("calc.js", SOURCE),
                ("sum.js", SOURCE),
                (PATH, TESTS),
                ("test/other.test.js", &other),
            ],
        );
        let ran = claims(&project, &[turn], &[]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert_eq!(found(&ran), expected, "{}", ran.stderr);
    }
}

/// An agent could keep the tests of the base from building, and give its own version another subject.
#[test]
fn a_test_file_that_the_work_keeps_from_building_needs_a_person() {
    let tests = TESTS
        .replace(
            "const calc = require('../calc.js');",
            "const { add, one } = require('../calc.js');
if (!add) throw new Error('no add');",
        )
        .replace("calc.add", "add")
        .replace("calc.one", "one");
    let gutted = "const { plus, one } = require('../calc.js');\nconst add = () => 5;\n";
    let gutted = tests.replace(
        "const { add, one } = require('../calc.js');\nif (!add) throw new Error('no add');\n",
        gutted,
    );
    let files = [("calc.js", SOURCE), (PATH, tests.as_str())];
    let turn = json!({"write": {"calc.js": SOURCE.replace("add", "plus"), PATH: gutted}});
    let ran = claims(&trusted_project(CONFIG, &files), &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(
        found(&ran)[0],
        ("expectation_changed".to_owned(), PATH.to_owned()),
        "{:?}",
        found(&ran)
    );
}

/// Without the files at its start, a session can't tell which tests are those of the base.
#[test]
fn a_session_without_a_known_start_needs_a_person() {
    let project = project();
    let weaker = TESTS.replace(", 5)", ", -1)");
    let first = json!({"run": "for n in $(seq 260); do git init -q n/$n; done"});
    let ran = claims(&project, &[first], &["--gate-retries", "0"]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let second = json!({"run": "rm -rf n", "write": {PATH: weaker}});
    let ran = claims(&project, &[second], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let ended = format!("{:?}", ran.all("session_ended"));
    assert!(ended.contains("unknown") || ended.contains("not recorded"), "{ended}");
}

/// An agent could write code that hookloop does not understand, and hide a special case in it.
#[test]
fn a_source_that_cannot_be_read_needs_a_person() {
    let deep = format!("exports.deep = {}1;\n", "!".repeat(2_500));
    let turn = json!({"write": {"calc.js": format!("{FIXED}{deep}")}});
    let ran = claims(&project(), &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(found(&ran), pair("unread_source", "calc.js"), "{}", ran.stderr);
}

#[test]
fn an_agent_cannot_allow_its_own_changes() {
    let project = project();
    let program = env!("CARGO_BIN_EXE_hookloop");
    let turn = json!([{
        "run": format!(
            "{program} resume --may-change 'test/**' > refused 2>&1; \
             {program} run x --may-change 'test/**' >> refused 2>&1"
        ),
        "write": {PATH: TESTS.replace(", 5)", ", -1)")},
        "say": "<promise>COMPLETE</promise>",
    }]);
    project.write_turns(turn.to_string());
    let ran = run_as_it_is(&project, &["work", "--agent", SCRIPTED_AGENT]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let refused = project.read("refused");
    assert_eq!(refused.matches("only a person can").count(), 2, "{refused}");
}
