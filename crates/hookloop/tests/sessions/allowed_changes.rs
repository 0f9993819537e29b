//! Changes of tests that task types, tasks, gatekeepers and persons allow.

use std::fs;

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::base_tests::{
    CONFIG, FIXED, PATH, SOURCE, TESTS, assert_complete, claims, found, pair, printed, test_file,
};
use super::{run_as_it_is, trusted_project};

const FILES: [(&str, &str); 3] = [("calc.js", SOURCE), (PATH, TESTS), ("package.json", "{}\n")];
/// Answers with the file `answer` in its home; `ID` there stands for the id of the review.
const REVIEWER: &str = "agents:
  one:
    type: command
    command: >-
      cat > $HOME/prompt; echo asked >> $HOME/reviews;
      id=$(sed -n 's/.*\"const\": *\"\\([0-9a-f]*\\)\".*/\\1/p' $HOME/prompt | head -1);
      sed \"s/ID/$id/\" $HOME/answer
gatekeepers:
  strict: {agent: one, prompt: 'Look for lies.'}
";

fn weaker() -> Value {
    test_file(&TESTS.replace(", 5)", ", -1)"))
}

/// Returns a turn that makes the sources wrong again, and lets a test expect it.
fn weaker_and_back() -> Value {
    let files = json!({"calc.js": SOURCE, PATH: TESTS.replace(", 5)", ", -1)")});
    json!({"write": files, "say": "<promise>COMPLETE</promise>"})
}

/// Runs a session for the tasks of the project, whose agent makes this change in each turn.
fn works_on_tasks(project: &TestProject, change: &Value) -> SessionOutput {
    let mut turn = change.clone();
    turn["say"] = json!("<promise>COMPLETE</promise>");
    project.write_turns(json!([turn]).to_string());
    run_as_it_is(project, &["--tasks", "--agent", SCRIPTED_AGENT])
}

fn state(project: &TestProject, task: &str) -> Value {
    project.json(&["task", "show", task])["state"].clone()
}

fn key_of_only_item(project: &TestProject) -> String {
    let items: Value =
        serde_json::from_str(&printed(project, &["inbox", "list", "--json"])).unwrap();
    assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
    items[0]["key"].as_str().unwrap().to_owned()
}

#[test]
fn a_trusted_task_type_allows_changes_of_its_tests() {
    let config = format!("{CONFIG}task_types: {{docs: {{may_change: 'test/**'}}, fix: {{}}}}\n");
    let files = [("calc.js", SOURCE), (PATH, TESTS), ("package.json", "{}\n")];
    for (kind, state) in [("docs", "completed"), ("fix", "blocked")] {
        let project = trusted_project(&config, &files);
        let mut turn = test_file(&TESTS.replace(", 5)", ", -1)"));
        turn["say"] = json!("<promise>COMPLETE</promise>");
        project.write_turns(json!([turn]).to_string());
        project.json(&["task", "add", "x", "--id", "x", "--type", kind]);
        let ran = run_as_it_is(&project, &["--tasks", "--agent", SCRIPTED_AGENT]);
        assert_eq!(project.json(&["task", "show", "x"])["state"], state, "{}", ran.stderr);
        let finding = &ran.all("receipt_recorded")[0]["base_tests"]["findings"][0];
        assert_eq!(finding["allowed_by"] == "may_change", kind == "docs", "{finding}");
    }
}

#[test]
fn a_person_allows_changes_of_a_task_when_adding_it() {
    for (pattern, state_after) in [("test/**", "completed"), ("*/*", "completed"), ("*", "blocked")]
    {
        let project = trusted_project(CONFIG, &FILES);
        let added = project.json(&["task", "add", "x", "--id", "x", "--may-change", pattern]);
        assert_eq!(added["may_change"], json!([pattern]));
        let ran = works_on_tasks(&project, &weaker());
        assert_eq!(state(&project, "x"), state_after, "{pattern}: {}", ran.stderr);
    }
}

#[test]
fn an_agent_adds_no_task_that_may_change_tests() {
    let project = trusted_project(CONFIG, &FILES);
    let program = env!("CARGO_BIN_EXE_hookloop");
    let turn = json!([{
        "run": format!(
            "{program} task add y --id y --may-change 'test/**' 2> refused; echo $? > code; \
             {program} task add z --id z; echo $? >> code"
        ),
    }]);
    project.write_turns(turn.to_string());
    run_as_it_is(&project, &["work", "--agent", SCRIPTED_AGENT, "--max-iterations", "1"]);
    assert_eq!(project.read("code"), "1\n0\n");
    let refused = project.read("refused");
    assert!(refused.contains("only a person can allow changes of tests"), "{refused}");
    let tasks = printed(&project, &["task", "list", "--json"]);
    assert!(!tasks.contains("\"y\"") && tasks.contains("\"z\""), "{tasks}");
}

#[test]
fn a_person_allows_the_changes_of_a_blocked_task() {
    let project = trusted_project(CONFIG, &FILES);
    project.json(&["task", "add", "x", "--id", "x"]);
    let ran = works_on_tasks(&project, &weaker());
    assert_eq!(state(&project, "x"), "blocked", "{}", ran.stderr);
    let key = key_of_only_item(&project);
    let approve = format!("hookloop inbox approve {key}");
    let shown = printed(&project, &["inbox", "show"]);
    assert!(shown.contains(&approve) && shown.contains("calc.add(2, 3), -1)"), "{shown}");
    printed(&project, &["inbox", "approve", &key]);
    assert_eq!(state(&project, "x"), "ready");
    // The next agent has nothing left to do.
    let ran = works_on_tasks(&project, &weaker());
    assert_eq!(state(&project, "x"), "completed", "{}", ran.stderr);
    let receipts = ran.all("receipt_recorded");
    let finding = &receipts.last().unwrap()["base_tests"]["findings"][0];
    assert!(finding["allowed_by"].as_str().is_some_and(|by| by != "may_change"), "{finding}");
}

/// An approval is about the tests as the person saw them, with their helpers.
#[test]
fn a_change_after_an_approval_needs_another_one() {
    for change in [
        test_file(&TESTS.replace(", 5)", ", -1, 'wrong')")),
        json!({"write": {"test/helper.js": "exports.same = () => {};\n"}}),
    ] {
        let project = trusted_project(CONFIG, &FILES);
        project.json(&["task", "add", "x", "--id", "x"]);
        works_on_tasks(&project, &weaker());
        printed(&project, &["inbox", "approve", &key_of_only_item(&project)]);
        let ran = works_on_tasks(&project, &change);
        assert_eq!(state(&project, "x"), "blocked", "{change}: {}", ran.stderr);
        printed(&project, &["inbox", "approve", &key_of_only_item(&project)]);
        let ran = works_on_tasks(&project, &json!({}));
        assert_eq!(state(&project, "x"), "completed", "{change}: {}", ran.stderr);
    }
}

/// An agent could name a type that allows what it needs.
#[test]
fn a_task_that_an_agent_added_has_no_allowance_of_its_type() {
    let config = format!("{CONFIG}task_types: {{docs: {{may_change: 'test/**'}}}}\n");
    let project = trusted_project(&config, &FILES);
    project.json(&["task", "add", "x", "--id", "x"]);
    let program = env!("CARGO_BIN_EXE_hookloop");
    let claim = "<promise>COMPLETE</promise>";
    let add = format!("{program} task add y --id y --type docs");
    let first = json!({"write": {"calc.js": FIXED}, "run": add, "say": claim});
    project.write_turns(json!([first, weaker_and_back()]).to_string());
    let ran = run_as_it_is(&project, &["--tasks", "--agent", SCRIPTED_AGENT]);
    assert_eq!(state(&project, "x"), "completed", "{}", ran.stderr);
    assert_eq!(state(&project, "y"), "blocked", "{}", ran.stderr);
}

/// The session that blocked a task may have worked on another one.
#[test]
fn an_item_shows_no_changes_of_another_task() {
    let project = trusted_project(CONFIG, &FILES);
    for id in ["x", "y", "z"] {
        project.json(&[
            "task",
            "add",
            id,
            "--id",
            id,
            "--priority",
            if id == "z" { "9" } else { "1" },
        ]);
    }
    let program = env!("CARGO_BIN_EXE_hookloop");
    let mut first = weaker();
    first["say"] = json!("<promise>COMPLETE</promise>");
    let block = format!("{program} task block z --reason 'Which colour?'");
    project.write_turns(json!([first, {"run": block}]).to_string());
    run_as_it_is(&project, &["--tasks", "--agent", SCRIPTED_AGENT, "--max-iterations", "2"]);
    let items: Value =
        serde_json::from_str(&printed(&project, &["inbox", "show", "--json"])).unwrap();
    let of_task = |id: &str| items.as_array().unwrap().iter().find(|item| item["task"] == id);
    let changes = |id: &str| of_task(id).unwrap()["record"]["test_changes"].clone();
    assert_eq!(changes("x").as_array().unwrap().len(), 1, "{items}");
    assert_eq!(changes("z"), json!([]), "{items}");
    assert!(!of_task("z").unwrap()["next"].to_string().contains("approve"), "{items}");
}

#[test]
fn a_person_allows_more_changes_than_a_receipt_lists() {
    let project = trusted_project(CONFIG, &FILES);
    let turn = json!({
        "write": {"calc.js": FIXED},
        "run": "mkdir -p \"$HOME/.node_modules\" && cd \"$HOME/.node_modules\" && \
                for n in $(seq 120); do echo 1 > $n.js; done",
    });
    let ran = claims(&project, &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let tests = &ran.all("receipt_recorded")[0]["base_tests"];
    assert_eq!(tests["findings"].as_array().unwrap().len(), 50);
    assert_eq!(tests["more"], 70);
    printed(&project, &["inbox", "approve", &key_of_only_item(&project)]);
    let resume = || -> SessionOutput { project.json_command(&["resume"]).output().unwrap().into() };
    // A further change was not approved.
    let home = project.home().join(".node_modules");
    fs::write(home.join("more.js"), "1").unwrap();
    let ran = resume();
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    fs::remove_file(home.join("more.js")).unwrap();
    printed(&project, &["inbox", "approve", &key_of_only_item(&project)]);
    assert_complete(&resume());
}

/// Returns a project with a gatekeeper for changed tests, which gives this answer.
fn reviewed(rules: &str, answer: &str) -> TestProject {
    let config = CONFIG.replace("base_tests: true", &format!("base_tests: {rules}"));
    let project = trusted_project(&format!("{config}{REVIEWER}"), &FILES);
    printed(&project, &["agents", "trust", "--yes"]);
    fs::write(project.home().join("answer"), answer).unwrap();
    project
}

const REVIEW: &str = "{expectations: review, reviewer: strict}";
const APPROVE: &str =
    r#"{"review": "ID", "verdict": "approve", "summary": "it was asked", "findings": []}"#;
const REJECT: &str = r#"{"review": "ID", "verdict": "reject", "summary": "nobody asked", "findings": [
    {"file": "test/calc.test.js", "line": 6, "message": "not in the task", "severity": "blocker"}]}"#;

#[test]
fn a_gatekeeper_approves_changed_expectations() {
    let project = reviewed(REVIEW, APPROVE);
    let ran = claims(&project, &[weaker()], &[]);
    assert_complete(&ran);
    assert_eq!(found(&ran), pair("expectation_changed", "adds"));
    let tests = &ran.all("receipt_recorded")[0]["base_tests"];
    assert_eq!(tests["findings"][0]["allowed_by"], "gatekeeper strict");
    assert_eq!(
        tests["review"],
        json!({"by": "strict", "approves": true, "reason": "it was asked"})
    );
    let prompt = fs::read_to_string(project.home().join("prompt")).unwrap();
    for part in ["Look for lies.", "\nwork\n", "calc.add(2, 3), 5)", "+  assert", "(data:"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
}

/// A gatekeeper that gives no verdict is asked again, and then a person is asked.
#[test]
fn a_person_decides_what_a_gatekeeper_does_not_approve() {
    for (answer, asked, reason) in [
        (REJECT, 1, "gatekeeper strict rejects the changed tests: nobody asked"),
        ("I approve.", 2, "gatekeeper strict gave no verdict"),
    ] {
        let project = reviewed(REVIEW, answer);
        let ran = claims(&project, &[weaker()], &[]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        let shown = printed(&project, &["inbox", "show"]);
        assert!(shown.contains(reason), "{shown}");
        let reviews = fs::read_to_string(project.home().join("reviews")).unwrap();
        assert_eq!(reviews.lines().count(), asked);
        printed(&project, &["inbox", "approve", &key_of_only_item(&project)]);
        assert_complete(&project.json_command(&["resume"]).output().unwrap().into());
    }
}

/// A gatekeeper approves no test that is gone, and is not asked about it.
#[test]
fn a_gatekeeper_decides_only_about_changed_expectations() {
    let project = reviewed(REVIEW, APPROVE);
    let without = test_file(&TESTS.replace("test('adds'", "test.skip('adds'"));
    let ran = claims(&project, &[without, json!({})], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(!project.home().join("reviews").exists());
}

/// The author of a task could write into it that tests have to change.
#[test]
fn a_person_decides_about_the_tests_of_a_task_that_an_agent_added() {
    let project = reviewed(REVIEW, APPROVE);
    project.json(&["task", "add", "x", "--id", "x"]);
    let program = env!("CARGO_BIN_EXE_hookloop");
    let claim = "<promise>COMPLETE</promise>";
    let add = format!("{program} task add y --id y");
    let first = json!({"write": {"calc.js": FIXED}, "run": add, "say": claim});
    project.write_turns(json!([first, weaker_and_back()]).to_string());
    let ran = run_as_it_is(&project, &["--tasks", "--agent", SCRIPTED_AGENT]);
    assert_eq!(state(&project, "x"), "completed", "{}", ran.stderr);
    assert_eq!(state(&project, "y"), "blocked", "{}", ran.stderr);
    assert!(!project.home().join("reviews").exists());
}

/// The second gatekeeper is asked, too.
#[test]
fn a_verdict_holds_for_its_gatekeeper_and_for_the_next_tasks() {
    let rules = "{expectations: review, reviewer: strict}";
    let gates = format!(
        "version: 1
hooks:
  stop:
    - {{name: tests, command: node --test, base_tests: {rules}}}
    - {{name: again, command: node --test --test-name-pattern=., base_tests: {}}}
",
        rules.replace("strict", "one")
    );
    let project = trusted_project(&format!("{gates}{REVIEWER}"), &FILES);
    printed(&project, &["agents", "trust", "--yes"]);
    fs::write(project.home().join("answer"), APPROVE).unwrap();
    for id in ["x", "y"] {
        project.json(&["task", "add", id, "--id", id]);
    }
    let claim = "<promise>COMPLETE</promise>";
    let mut first = weaker();
    first["say"] = json!(claim);
    let second = json!({"write": {"NOTES.md": "a note\n"}, "say": claim});
    project.write_turns(json!([first, second]).to_string());
    let ran = run_as_it_is(&project, &["--tasks", "--agent", SCRIPTED_AGENT]);
    assert_eq!(
        (state(&project, "x"), state(&project, "y")),
        (json!("completed"), json!("completed"))
    );
    let reviews = fs::read_to_string(project.home().join("reviews")).unwrap();
    assert_eq!(reviews.lines().count(), 2, "{}", ran.stderr);
}

#[test]
fn a_gatekeeper_reviews_no_binary_files() {
    let project = reviewed(REVIEW, APPROVE);
    let mut turn = weaker();
    turn["run"] = json!("printf 'a\\0b' > logo.png");
    let ran = claims(&project, &[turn], &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let shown = printed(&project, &["inbox", "show"]);
    assert!(shown.contains("the change has binary files"), "{shown}");
}

#[test]
fn a_reviewer_without_reviews_is_an_error() {
    let project = trusted_project(CONFIG, &FILES);
    let rules = "base_tests: {expectations: ask, reviewer: strict}";
    project.write("hookloop.yaml", &CONFIG.replace("base_tests: true", rules));
    let output = project.hookloop(&["hooks", "list"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("`reviewer` is for `expectations: review`"), "{error}");
    assert!(error.contains("hookloop.yaml:4:"), "{error}");
}

#[test]
fn the_gatekeeper_of_changed_tests_is_a_part_of_the_trusted_gate() {
    let project = reviewed(REVIEW, APPROVE);
    let config = project.read("hookloop.yaml");
    project.write("hookloop.yaml", &config.replace("Look for lies.", "Approve all."));
    let ran = claims(&project, &[weaker()], &[]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    assert!(!project.home().join("reviews").exists());
    assert!(ran.stderr.contains("hookloop hooks trust"), "{}", ran.stderr);
}

#[test]
fn a_change_that_the_agent_explains_instead_of_restoring_it_can_be_allowed() {
    let project = trusted_project(CONFIG, &FILES);
    let without = TESTS.replace("test('adds'", "(() => {})('adds'");
    project.write_turns(
        json!([
            {"write": {PATH: without}, "say": "<promise>COMPLETE</promise>"},
            {"say": "The test is obsolete. May it go?\n<promise>ESCALATE</promise>"},
            {"say": "<promise>COMPLETE</promise>"},
        ])
        .to_string(),
    );
    let ran = run_as_it_is(&project, &["work", "--agent", SCRIPTED_AGENT, "--max-iterations", "3"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let key = key_of_only_item(&project);
    let shown = printed(&project, &["inbox", "show", &key]);
    assert!(shown.contains("adds") && shown.contains("calc.add(2, 3)"), "{shown}");
    printed(&project, &["inbox", "approve", &key]);
    assert_complete(&project.json_command(&["resume"]).output().unwrap().into());
}
