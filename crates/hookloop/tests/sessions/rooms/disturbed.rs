//! Gates that change files on which other gates or the setup depend.

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::{Value, json};

use super::{DONE, assert_complete, assert_refused};
use crate::sessions::{scripted, trusted_project};

const SETUP: &str = "version: 1
hooks:
  setup:
    - {name: packages, command: cp packages.lock packages, inputs: [packages.lock]}
";

/// Returns a project with a lock file, and packages and results that git ignores.
fn project(config: &str, files: &[(&str, &str)]) -> TestProject {
    let ignored = (".gitignore", "packages*\n!packages.lock\nbuild\ndist\nsite\n.env\n");
    trusted_project(config, &[&[ignored, ("packages.lock", "1\n")], files].concat())
}

fn with_setup(rest: &str, files: &[(&str, &str)]) -> TestProject {
    project(&format!("{SETUP}{rest}"), files)
}

/// Runs a session with turns that write files, without retries beyond them.
fn claims(project: &TestProject, turns: &[Value]) -> SessionOutput {
    let claim = "<promise>COMPLETE</promise>";
    let turns: Vec<Value> =
        turns.iter().map(|files| json!({"write": files, "say": claim})).collect();
    let retries = (turns.len() - 1).to_string();
    scripted(project, &Value::from(turns).to_string(), &["--gate-retries", &retries])
}

fn builds(ran: &SessionOutput) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let receipts = ran.all("receipt_recorded");
    receipts.iter().map(|it| (text(&it["gate"]), text(&it["room"]["build"]))).collect()
}

#[test]
fn parallel_hooks_of_a_setup_have_one_result() {
    let config = "version: 1
hooks:
  setup:
    - {name: one, command: 'echo 1 > packages1; echo x > unignored', parallel: true}
    - {name: two, command: 'echo 2 > packages2', parallel: true}
  stop:
    - {name: tests, command: 'grep -q 1 packages1 && grep -q 2 packages2 && test -e unignored'}
";
    let ran = scripted(&project(config, &[]), DONE, &[]);
    assert_complete(&ran);
    assert_eq!(ran.hooks_at("setup").len(), 2);
}

/// The last gate changes a file of the tree, from which a second setup would make its result.
#[test]
fn a_confirmed_setup_has_the_files_of_the_tree() {
    let config = "version: 1
room: {confirm: stop}
hooks:
  setup:
    - {name: packages, command: cp src.txt packages, inputs: [packages.lock]}
  stop:
    - {name: tests, command: 'grep -qx good packages || test -e build || { touch build; exit 1; }'}
    - {name: last, command: 'echo good > src.txt; rm -f .env', room: {copy: [.env]}}
";
    let project = project(config, &[("src.txt", "bad\n"), (".env", "x\n")]);
    let ran = claims(&project, &[json!({"a": "1"}), json!({"b": "1"})]);
    assert_refused(&ran);
    assert!(!ran.all("session_ended")[0].to_string().contains("setup_failed"), "{}", ran.stderr);
}

/// A new setup among the files of a refused run does not make the run cold.
#[test]
fn a_repeated_setup_does_not_make_a_room_cold() {
    let gates = "  stop:
    - {name: first, command: 'test -e build || { touch build; exit 1; }; touch packages'}
    - {name: second, command: 'true'}
";
    let project = with_setup(gates, &[]);
    let ran = claims(&project, &[json!({"a": "1"}), json!({"b": "1"})]);
    assert_complete(&ran);
    assert!(builds(&ran)[2..].iter().all(|(_, build)| build == "warm"), "{:?}", builds(&ran));
    let other = claims(&project, &[json!({"a": "1"})]);
    assert_refused(&other);
}

#[test]
fn a_setup_that_saw_other_surroundings_is_not_reused() {
    let setup = |setup: &str, gate: &str| {
        format!("version: 1\nhooks:\n  setup:\n    - {setup}\n  stop:\n    - {gate}\n")
    };
    let run = |project: &TestProject, mode: &str| -> SessionOutput {
        project.write_turns(DONE);
        let args =
            ["run", "--no-changes-ok", "x", "--agent", SCRIPTED_AGENT, "--gate-retries", "0"];
        project.json_command(&args).env("MODE", mode).output().unwrap().into()
    };
    let config = setup(
        "{name: packages, command: 'echo $MODE > packages', env: [MODE]}",
        "{name: tests, command: 'grep -qx good packages'}",
    );
    let of_env = project(&config, &[]);
    assert_complete(&run(&of_env, "good"));
    assert_refused(&run(&of_env, "bad"));

    let config = setup(
        "{name: packages, command: 'cp .env packages'}",
        "{name: tests, command: 'grep -qx good packages', room: {copy: [.env]}}",
    );
    let of_copy = project(&config, &[(".env", "good\n")]);
    assert_complete(&run(&of_copy, "x"));
    of_copy.write(".env", "bad\n");
    assert_refused(&run(&of_copy, "x"));

    let config = setup(
        "{name: packages, command: 'git tag > packages'}",
        "{name: tests, command: 'test ! -s packages'}",
    );
    let of_tags = project(&config, &[]);
    assert_complete(&run(&of_tags, "x"));
    of_tags.git(&["tag", "v1"]);
    assert_refused(&run(&of_tags, "x"));
}

#[test]
fn parallel_gates_that_change_the_setup_run_one_by_one() {
    for first in ["", "    - {name: first, command: 'true'}\n"] {
        let gates = format!(
            "  stop:
{first}    - {{name: a, command: 'echo 2 >> packages', parallel: true}}
    - {{name: b, command: 'cmp packages packages.lock || sleep 0.1', parallel: true}}
"
        );
        let ran = scripted(&with_setup(&gates, &[]), DONE, &["--gate-retries", "0"]);
        assert_complete(&ran);
    }
}

/// Gates of `validation` run after those of `stop`, in the same room.
#[test]
fn the_setup_runs_again_before_the_gates_of_the_next_point() {
    let gates = "  stop:
    - {name: first, command: 'echo 2 >> packages'}
  validation:
    - {name: second, command: 'cmp packages packages.lock'}
";
    let ran = scripted(&with_setup(gates, &[]), DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
}

#[test]
fn a_repeated_setup_leaves_files_of_earlier_gates() {
    let gates = "  stop:
    - {name: build, command: 'mkdir -p dist && cp packages dist/app && touch packages'}
    - {name: tests, command: 'cmp dist/app packages', needs: [build]}
";
    let ran = scripted(&with_setup(gates, &[]), DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
    assert_eq!(ran.hooks_at("setup").len(), 2);
}

#[test]
fn a_gate_that_changes_the_setup_has_all_its_attempts() {
    let gates = "  stop:
    - name: tests
      command: 'touch packages; test -e build || { touch build; exit 1; }'
      retry: {attempts: 3, backoff: 1ms}
";
    let ran = scripted(&with_setup(gates, &[]), DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
}

/// The setup copied a package. A new module of the package would have been copied, too.
#[test]
fn a_setup_runs_again_when_a_package_that_it_copied_changes() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'mkdir -p site && cp -r pkg site/', inputs: [packages.lock]}
  stop:
    - {name: tests, command: 'diff -r pkg site/pkg && grep -q ok state'}
";
    for changed in [json!({"pkg/new.py": "x = 1\n"}), json!({"pkg/v.py": "v = 2\n"})] {
        let files = [("pkg/v.py", "v = 1\n"), ("state", "no\n")];
        let project = project(config, &files);
        let mut second = changed.clone();
        second["state"] = json!("ok\n");
        let ran = claims(&project, &[json!({"a": "1"}), second]);
        assert_complete(&ran);
        assert_eq!(ran.hooks_at("setup").len(), 2, "{changed}");
    }
}

/// A later gate may pass on a file that an earlier one makes from something else than the tree.
#[test]
fn a_gate_after_one_that_runs_is_not_reused() {
    let config = "version: 1
hooks:
  stop:
    - {name: first, command: 'echo {{iteration}} > build'}
    - {name: second, command: 'grep -qx 1 build'}
";
    let project = project(config, &[]);
    assert_complete(&scripted(&project, DONE, &["--gate-retries", "0"]));
    let turns = r#"[{"say": "not yet"}, {"say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &["--gate-retries", "0"]);
    assert_refused(&ran);
    assert_eq!(ran.hooks_at("stop"), ["first", "second"]);
}

#[test]
fn a_variable_that_a_gate_names_is_part_of_its_proof() {
    let config = "version: 1
hooks:
  stop:
    - {name: tests, command: 'test \"$GEMINI_MODE\" = good', env: [GEMINI_MODE]}
";
    let project = project(config, &[]);
    let run = |mode: &str| -> SessionOutput {
        project.write_turns(DONE);
        let args =
            ["run", "--no-changes-ok", "x", "--agent", SCRIPTED_AGENT, "--gate-retries", "0"];
        project.json_command(&args).env("GEMINI_MODE", mode).output().unwrap().into()
    };
    assert_complete(&run("good"));
    assert_refused(&run("bad"));
}

/// The second run would pass among the files that the first one left.
#[test]
fn a_red_gate_of_disturbed_parallel_gates_stays_red() {
    let config = "version: 1
hooks:
  stop:
    - {name: a, parallel: true, command: 'test -e build || { touch build; echo x > report; exit 1; }'}
    - {name: b, parallel: true, command: 'true'}
";
    let ran = scripted(&project(config, &[]), DONE, &["--gate-retries", "0"]);
    assert_refused(&ran);
}

#[test]
fn a_setup_that_fails_at_a_later_claim_needs_a_human() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'grep -q 1 packages.lock && cp packages.lock packages', inputs: [packages.lock]}
  stop:
    - {name: tests, command: 'grep -q ok state'}
";
    let project = project(config, &[("state", "no\n")]);
    let turns = [json!({"a": "1"}), json!({"packages.lock": "2\n"}), json!({"state": "ok\n"})];
    let ran = claims(&project, &turns);
    assert_refused(&ran);
    assert_eq!(ran.turns().len(), 2, "the agent got another turn");
    assert!(ran.all("session_ended")[0].to_string().contains("setup_failed"), "{}", ran.stderr);
}
