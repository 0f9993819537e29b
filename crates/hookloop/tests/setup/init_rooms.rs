//! `hookloop init` and the clean room: it writes what gates need there.

use serde_json::{Value, json};

use super::init::run;
use crate::cli::Project;

const TURNS: &str =
    r#"[{"write": {"note.txt": "1\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;

/// Returns a repository with these files and a gate `tests` that runs `test.sh`.
fn repository(files: &[(&str, &str)]) -> Project {
    let project = Project::bare();
    project.files(&[("Makefile", "test:\n\t@sh test.sh\n"), ("turns.json", TURNS)]);
    project.files(files);
    project.git_init();
    project
}

/// Runs `init --yes --json`; returns the first gate. No room stays on disk.
fn first_gate(project: &Project) -> Value {
    let made = run(project, &["init", "--yes", "--json"]);
    assert!(made.code == 0 && made.stderr.is_empty(), "{made:?}");
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert!(made["trusted"].is_string(), "{made:#}");
    assert_eq!(project.json(&["rooms", "list"]), json!([]));
    made["gates"][0].clone()
}

/// Checks that a session completes with the gates that `init` wrote and trusted.
fn completes(project: &Project, room: &str) {
    let done = run(project, &["run", "x", "--agent", "scripted:turns.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let receipts = project.events_of("receipt_recorded");
    assert!(!receipts.is_empty());
    for receipt in receipts {
        assert_eq!(receipt["data"]["room"]["kind"], room, "{receipt:#}");
    }
}

#[test]
fn a_gate_that_passes_in_the_room_gets_no_room_lines() {
    let project = repository(&[("test.sh", "test ! -e ignored.txt || true\n")]);
    let gate = first_gate(&project);
    let expected =
        json!({"kind": "clean", "trial": "passed", "setup": [], "copy": [], "reason": null});
    assert_eq!(gate["room"], expected, "{gate:#}");
    let config = project.config();
    assert!(!config.contains("room:") && !config.contains("setup:"), "{config}");
    completes(&project, "clean");
}

/// Returns a package in `web` whose gates run `test.js`, with its dependency installed.
fn node_package(test: &str) -> Project {
    let project = Project::bare();
    project.files(&[
        (
            "web/package.json",
            r#"{"name": "shop", "version": "1.0.0", "scripts": {"test": "node test.js", "lint": "node test.js"},
                "dependencies": {"answer": "file:./answer"}}"#,
        ),
        ("web/answer/package.json", r#"{"name": "answer", "version": "1.0.0", "main": "index.js"}"#),
        ("web/answer/index.js", "module.exports = 42;\n"),
        ("web/test.js", test),
        (".gitignore", "node_modules\n.env\n"),
        ("web/.env", "KEY=1\n"),
        ("turns.json", TURNS),
    ]);
    let mut install = project.command("npm");
    install.args(["install", "--offline", "--no-audit", "--no-fund"]);
    assert!(install.current_dir(project.root().join("web")).output().unwrap().status.success());
    project.git_init();
    project
}

#[test]
fn installed_node_packages_become_a_setup_that_gates_share() {
    let project = node_package("if (require('answer') !== 42) process.exit(1);\n");
    let gate = first_gate(&project);
    assert_eq!((&gate["trial"], &gate["cwd"]), (&json!("passed"), &json!("web")), "{gate:#}");
    let room = &gate["room"];
    assert_eq!((&room["setup"], &room["copy"]), (&json!(["npm ci"]), &json!([])), "{gate:#}");
    assert_eq!(room["trial"], "passed", "{gate:#}");
    let config = project.config();
    assert_eq!(config.matches("command: npm ci\n").count(), 1, "{config}");
    let inputs = "inputs: [web/package.json, web/package-lock.json]\n";
    assert!(config.contains(inputs) && config.contains("cwd: \"web\"\n"), "{config}");
    completes(&project, "clean");
    let ran = project.events_of("hook_ran");
    let setups = ran.iter().filter(|event| event["data"]["point"] == "setup");
    assert_eq!(setups.count(), 1, "the session installs the packages itself");
}

/// A trial with a copied file must not use the packages of an earlier trial.
#[test]
fn a_gate_that_needs_packages_and_a_file_gets_both() {
    let test = "require('answer'); require('fs').readFileSync('.' + 'env');\n";
    let project = node_package(test);
    let gate = first_gate(&project);
    let room = &gate["room"];
    let expected = (&json!(["npm ci"]), &json!(["web/.env"]));
    assert_eq!((&room["setup"], &room["copy"]), expected, "{gate:#}");
    completes(&project, "clean");
}

#[test]
fn an_ignored_file_that_a_gate_reads_is_copied() {
    let project = repository(&[
        ("test.sh", "grep -q KEY .env.test\n"),
        (".gitignore", ".env*\n*.log\n"),
        (".env.test", "KEY=1\n"),
        (".env", "KEY=2\n"),
        ("some.log", ""),
    ]);
    let gate = first_gate(&project);
    // The message of grep names this file and no other.
    assert_eq!(gate["room"]["copy"], json!([".env.test"]), "{gate:#}");
    let config = project.config();
    assert!(config.contains("      room: {copy: [.env.test]}\n"), "{config}");
    completes(&project, "clean");
}

#[test]
fn a_gate_that_writes_outside_of_the_room_runs_here_with_the_reason() {
    let project = repository(&[("test.sh", "echo 1 > \"$HOME/notes\"\n")]);
    let gate = first_gate(&project);
    assert_eq!((&gate["room"]["kind"], &gate["room"]["trial"]), (&json!("here"), &json!("failed")));
    let reason = gate["room"]["reason"].as_str().unwrap();
    assert!(reason.contains("notes"), "{gate:#}");
    let config = project.config();
    let comment = format!("    # Passes here and fails in the clean room ({reason}).");
    assert!(config.contains(&comment) && config.contains("      room: here\n"), "{config}");
    completes(&project, "here");
}

#[test]
fn a_project_without_git_is_tried_in_a_room_too() {
    let project = Project::bare();
    project.files(&[
        ("Makefile", "test:\n\t@grep -q KEY .env\n"),
        (".gitignore", ".env\n"),
        (".env", "KEY=1\n"),
        ("turns.json", TURNS),
    ]);
    let gate = first_gate(&project);
    assert_eq!(gate["room"]["trial"], "passed", "{gate:#}");
    assert_eq!(gate["room"]["copy"], json!([".env"]), "{gate:#}");
    assert!(!project.root().join(".git").exists());
    completes(&project, "clean");
}

#[test]
fn red_tests_are_tried_in_the_room_only_for_their_environment() {
    let project = repository(&[("test.sh", "echo the answer is wrong; exit 1\n")]);
    let made = run(&project, &["init", "--yes"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stdout.contains("the same in the clean room"), "{made:?}");
    let config = project.config();
    assert!(config.contains("# Fails now (exit code ") && !config.contains("room:"), "{config}");
}

#[test]
fn a_gate_with_its_results_here_and_in_the_room_is_one_line() {
    let project = repository(&[
        ("test.sh", "grep -q KEY .env.test\n"),
        (".gitignore", ".env*\n"),
        (".env.test", "KEY=1\n"),
    ]);
    let made = run(&project, &["init", "--yes"]);
    let line = made.stdout.lines().find(|line| line.contains("passed   tests")).unwrap();
    let parts = [" s here, ", " s in the clean room with copy: .env.test"];
    assert!(parts.iter().all(|part| line.contains(part)), "{made:?}");
}
