//! Several gates in one room, one after the other: no gate decides the files of the next one.

use super::{DONE, assert_complete, assert_refused};
use crate::sessions::{scripted, trusted_project};

fn statuses(ran: &hookloop_testkit::SessionOutput) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let receipts = ran.all("receipt_recorded");
    receipts.iter().map(|receipt| (text(&receipt["gate"]), text(&receipt["status"]))).collect()
}

/// In a clean checkout of the tree, the second gate fails.
#[test]
fn a_gate_runs_on_its_tree_although_an_earlier_gate_changed_files() {
    for change in ["echo 42 > answer", "rm wrong", "echo 42 > new", "ln -sf right answer"] {
        let config = format!(
            "version: 1
hooks:
  stop:
    - {{name: first, command: '{change}'}}
    - {{name: second, command: 'test -e new || {{ grep -q 42 answer || test ! -e wrong; }}'}}
"
        );
        let files = [("answer", "41\n"), ("wrong", "1\n"), ("right", "42\n")];
        let project = trusted_project(&config, &files);
        let ran = scripted(&project, DONE, &["--gate-retries", "0"]);
        assert_refused(&ran);
        let expected = [("first", "passed"), ("second", "failed")];
        assert_eq!(statuses(&ran), expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{change}");
    }
}

/// A second gate often tests the result that the first one built.
#[test]
fn a_gate_sees_ignored_files_of_an_earlier_gate() {
    let config = "version: 1
hooks:
  stop:
    - {name: build, command: 'mkdir -p out && cp answer out/answer'}
    - {name: tests, command: 'grep -q 42 out/answer'}
";
    let project = trusted_project(config, &[("answer", "42\n"), (".gitignore", "/out\n")]);
    assert_complete(&scripted(&project, DONE, &[]));
}

/// The second gate passes only among the files of the first one.
#[test]
fn parallel_gates_that_change_files_of_the_tree_run_again_one_by_one() {
    for file in ["answer", "new"] {
        let config = format!(
            "version: 1
hooks:
  stop:
    - {{name: first, parallel: true, command: 'echo 42 > {file}'}}
    - name: second
      parallel: true
      command: 'for i in $(seq 40); do grep -qs 42 {file} && exit 0; sleep 0.05; done; exit 1'
"
        );
        let project = trusted_project(&config, &[("answer", "41\n")]);
        let ran = scripted(&project, DONE, &["--gate-retries", "0"]);
        assert_refused(&ran);
        let expected = [("first", "passed"), ("second", "failed")];
        assert_eq!(statuses(&ran), expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{file}");
        let mut hooks = ran.hooks_at("stop");
        hooks.sort_unstable();
        assert_eq!(hooks, ["first", "first", "second", "second"], "{file}");
    }
}

#[test]
fn a_gate_after_parallel_gates_does_not_disturb_them() {
    let config = "version: 1
hooks:
  stop:
    - {name: first, parallel: true, command: grep -q 41 answer}
    - {name: second, parallel: true, command: grep -q 41 answer}
    - {name: third, command: 'echo 42 > answer'}
";
    let project = trusted_project(config, &[("answer", "41\n")]);
    let ran = scripted(&project, DONE, &[]);
    assert_complete(&ran);
    assert_eq!(ran.hooks_at("stop").len(), 3);
}

#[test]
fn each_attempt_of_a_gate_runs_on_the_files_of_the_tree() {
    for change in ["echo 42 > answer", "touch done"] {
        let config = format!(
            "version: 1
hooks:
  stop:
    - name: tests
      retry: {{attempts: 3, backoff: 1ms}}
      command: 'test -e done || grep -q 42 answer || {{ {change}; exit 1; }}'
"
        );
        let project = trusted_project(&config, &[("answer", "41\n")]);
        let ran = scripted(&project, DONE, &["--gate-retries", "0"]);
        assert_refused(&ran);
        assert_eq!(ran.all("receipt_recorded")[0]["attempts"], 3, "{change}");
    }
}

/// The temporary directory of the room is emptied between attempts. Later attempts have one, too.
#[test]
fn a_further_attempt_has_a_report_and_a_temporary_directory() {
    let config = "version: 1
hooks:
  stop:
    - name: tests
      retry: {attempts: 2, backoff: 1ms}
      command: >-
        if test -e tries; then n=2; else n=1; fi; touch tries; echo x > $TMPDIR/file &&
        echo \"<testsuite name='s'><testcase name='c'/></testsuite>\" > $HOOKLOOP_REPORT && test $n = 2
";
    let files = [("answer", "41\n"), (".gitignore", "tries\n")];
    let project = trusted_project(config, &files);
    let ran = scripted(&project, DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
    let receipt = ran.all("receipt_recorded")[0];
    assert_eq!((&receipt["attempts"], &receipt["checks"]["passed"]), (&2.into(), &1.into()));
}

/// A gate that must run needs the files that the gates before it leave.
#[test]
fn gates_before_one_that_runs_are_not_reused() {
    let config = |tests: &str| {
        format!(
            "version: 1
hooks:
  stop:
    - {{name: build, command: 'mkdir -p out && cp answer out/answer'}}
    - {{name: tests, command: '{tests}'}}
    - {{name: docs, command: 'test -e answer'}}
"
        )
    };
    let files = [("answer", "42\n"), (".gitignore", "/out\n")];
    let project = trusted_project(&config("grep -q 42 out/answer"), &files);
    // The configuration is a file of the tree.
    let ignored = "/out\nhookloop.yaml\n";
    project.write(".gitignore", ignored);
    project.git(&["rm", "--cached", "--quiet", "hookloop.yaml"]);
    assert_complete(&scripted(&project, DONE, &[]));
    project.write("hookloop.yaml", &config("grep -qx 42 out/answer"));
    project.ok(&["hooks", "trust", "--yes"]);
    let ran = scripted(&project, DONE, &[]);
    assert_complete(&ran);
    let hooks = ran.hooks_at("stop");
    assert_eq!(hooks, ["build", "tests", "docs"], "the gate after it has other files before it");
}

/// A setup may rewrite a lock file. The gates still run on the tree of the work.
#[test]
fn gates_do_not_see_files_of_the_tree_that_the_setup_changed() {
    let config = "version: 1
hooks:
  setup:
    - {name: packages, command: 'echo 42 > answer; echo 1 > packages'}
  stop:
    - {name: tests, command: 'grep -qx 41 answer && grep -qx 1 packages'}
";
    let project = trusted_project(config, &[("answer", "41\n"), (".gitignore", "packages\n")]);
    assert_complete(&scripted(&project, DONE, &[]));
}
