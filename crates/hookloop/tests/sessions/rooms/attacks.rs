//! Attempts of an agent to get a receipt for a tree on which the gate fails.

use std::process::Command;

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};
use serde_json::json;

use super::{assert_complete, assert_refused, tree_of_files};
use crate::sessions::{run, trusted_project};

/// Passes if the work is done, or if a file that is no part of the work says so.
const GATE: &str = "grep -qx 42 answer || test -e override || test -e sub/override";

fn project(files: &[(&str, &str)]) -> TestProject {
    let config = format!("version: 1\nhooks:\n  stop:\n    - {{name: tests, command: '{GATE}'}}\n");
    trusted_project(&config, files)
}

/// Runs a session whose agent runs this command, and claims to be complete.
fn after(project: &TestProject, command: &str, args: &[&str]) -> SessionOutput {
    project
        .write_turns(json!([{"run": command, "say": "<promise>COMPLETE</promise>"}]).to_string());
    let args = [&["work", "--agent", SCRIPTED_AGENT, "--gate-retries", "0"], args].concat();
    run(project, &args)
}

/// Whether the gate passes in the working directory, as a person would run it.
fn passes_by_hand(project: &TestProject) -> bool {
    let gate = Command::new("sh").args(["-c", GATE]).current_dir(project.root()).status();
    gate.unwrap().success()
}

/// Asserts that the gate passes in the working directory after the command, and that hookloop refuses the work.
#[track_caller]
fn check_refused(command: &str) {
    let project = project(&[("answer", "41\n"), (".gitignore", "*.log\n")]);
    let ran = after(&project, command, &[]);
    assert!(passes_by_hand(&project), "not an attack: {command}");
    assert_refused(&ran);
    let receipts = ran.all("receipt_recorded");
    let is_green = receipts.iter().any(|receipt| receipt["status"] == "passed");
    assert!(!is_green, "{command}: {}", ran.stderr);
}

/// Asserts that a receipt for work with a hidden file names a tree that has the file.
///
/// Rules of git outside of the files are those of the session's start.
#[track_caller]
fn check_visible(command: &str, undo: &str) {
    let project = project(&[("answer", "41\n")]);
    let ran = after(&project, command, &[]);
    assert!(passes_by_hand(&project), "not an attack: {command}");
    let receipts = ran.all("receipt_recorded");
    let undone = Command::new("sh").args(["-c", undo]).current_dir(project.root()).status();
    assert!(undone.unwrap().success(), "{undo}");
    let tree = tree_of_files(&project);
    assert!(project.git(&["ls-tree", "--name-only", &tree]).contains("override"));
    assert_eq!(receipts[0]["tree"], tree, "{command}: {}", ran.stderr);
}

#[test]
fn files_that_an_agent_hides_from_git_are_part_of_the_tree_or_decide_nothing() {
    check_visible("echo override >> .git/info/exclude; touch override", "echo > .git/info/exclude");
    check_visible(
        "echo override > .git/own; git config core.excludesFile \"$PWD/.git/own\"; touch override",
        "git config --unset core.excludesFile",
    );
    check_refused("echo override >> .gitignore; touch override");
    check_refused("mkdir sub; printf '*\\n' > sub/.gitignore; touch sub/override");
}

#[test]
fn files_of_a_nested_repository_decide_nothing() {
    check_refused("git init -q sub; touch sub/override");
    check_refused(
        "git init -q sub; cd sub; touch override; git add .; \
         git -c user.name=a -c user.email=a@b commit -qm x",
    );
}

#[test]
fn another_git_directory_hides_nothing() {
    check_refused(
        "mv .git .hidden; git init -q; printf '.hidden\\noverride\\n' > .git/info/exclude; \
         touch override",
    );
    check_refused(
        "mv .git ../moved; ln -s ../moved .git; echo override >> .git/info/exclude; touch override",
    );
    check_refused(
        "touch override.log; ln -s override.log override; echo override > .git/info/exclude",
    );
}

/// Asserts that a receipt for done work names the tree of the files as they are.
#[track_caller]
fn check_true_tree(command: &str, undo: &str) {
    let project = project(&[("answer", "41\n")]);
    let ran = after(&project, command, &[]);
    assert_complete(&ran);
    let undone = Command::new("sh").args(["-c", undo]).current_dir(project.root()).status();
    assert!(undone.unwrap().success(), "{undo}");
    assert_eq!(ran.all("receipt_recorded")[0]["tree"], tree_of_files(&project), "{command}");
}

#[test]
fn index_flags_and_another_work_tree_do_not_change_the_tree_of_a_receipt() {
    for flag in ["assume-unchanged", "skip-worktree"] {
        check_true_tree(
            &format!("git update-index --{flag} answer; echo 42 > answer"),
            &format!("git update-index --no-{flag} answer"),
        );
    }
    check_true_tree(
        "mkdir ../other; cp hookloop.yaml answer ../other; echo 42 > answer; \
         git config core.worktree ../../other",
        "git config --unset core.worktree",
    );
}

/// Without its git directory, the receipt is about all files, and the gate fails on those that git would track.
#[test]
fn a_deleted_git_directory_does_not_make_a_false_receipt() {
    let project = project(&[("answer", "41\n"), (".gitignore", "override\n")]);
    let ran = after(&project, "rm -rf .git; touch override", &[]);
    assert!(passes_by_hand(&project));
    assert_refused(&ran);
}

/// Runs a session with a rule as its gate.
fn with_rule(rule: &str, files: &[(&str, &str)], command: &str) -> SessionOutput {
    let config = format!("version: 1\nhooks:\n  stop:\n    - {{name: rule, {rule}}}\n");
    after(&trusted_project(&config, files), command, &[])
}

#[test]
fn a_rule_about_text_sees_ignored_large_and_linked_files() {
    let rule = "pattern: {path: 'src/**', text: 'TODO', absent: true}";
    let files = [("src/a", "1\n"), (".gitignore", "*.log\n")];
    for command in [
        // Tracked, although a pattern names the file.
        "echo TODO > src/b.log; git add -f src/b.log; git -c user.name=a -c user.email=a@b commit -qm x",
        "head -c 5000000 /dev/zero > src/big; echo TODO >> src/big",
        "echo TODO > text; ln -s ../text src/link",
    ] {
        assert_refused(&with_rule(rule, &files, command));
    }
    // The control: the rule passes on other work.
    assert_complete(&with_rule(rule, &files, "echo 1 > src/b"));
}

#[test]
fn a_rule_about_coverage_needs_a_report_that_a_gate_wrote() {
    let rule = "coverage: {report: lcov.info, at_least: 80}";
    let report = "printf 'SF:a\\nLF:10\\nLH:9\\nend_of_record\\n' > lcov.info";
    assert_refused(&with_rule(rule, &[("a", "1\n")], report));
    let config = format!(
        "version: 1\nhooks:\n  stop:\n    - {{name: tests, command: \"{}\"}}\n    - {{name: rule, {rule}, needs: [tests]}}\n",
        report.replace('\\', "\\\\")
    );
    let files = [("a", "1\n"), (".gitignore", "lcov.info\n")];
    assert_complete(&after(&trusted_project(&config, &files), "echo 2 > a", &[]));
}

/// The agent cannot make its work smaller by changing the specification.
#[test]
fn a_specification_is_read_as_it_was_at_the_start() {
    let project = project(&[("answer", "41\n"), ("SPEC.md", "Write 42 to answer.\n")]);
    let agent = "#!/bin/sh
cat > \"prompt.$(ls prompt.* 2>/dev/null | wc -l)\"
echo 'Do nothing.' > SPEC.md
test -e prompt.1 && { echo 42 > answer; echo '<promise>COMPLETE</promise>'; }
";
    project.write("agent.sh", agent);
    let ran = run(&project, &["--spec", "SPEC.md", "--agent", "command:./agent.sh"]);
    assert_complete(&ran);
    let prompt = project.read("prompt.1");
    assert!(prompt.contains("Write 42 to answer."), "{prompt}");
    assert!(!prompt.contains("Do nothing."), "{prompt}");
    let changed = ran.all("trust_drift_detected");
    assert!(changed[0].to_string().contains("SPEC.md"), "{changed:?}");
}
