//! Every command and configuration in the documents runs as it is written.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block: its language, what else its fence says, and its text.
struct Block {
    language: String,
    run: bool,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(fence) => {
                let mut words = fence.split(' ');
                let language = words.next().unwrap_or_default().to_owned();
                let run = !words.any(|word| word == "no-run");
                blocks.push(Block { language, run, text: String::new() });
                open = true;
            }
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "{document} has a block without an end");
    blocks
}

/// Runs the shell blocks of a document one after the other, in one new project and home.
fn check_commands(document: &str) {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_hookloop")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shell: Vec<Block> =
        blocks(document).into_iter().filter(|b| b.language == "sh" && b.run).collect();
    assert!(!shell.is_empty(), "{document} has no commands to run");
    for block in shell {
        let script = format!("set -euo pipefail\n{}", block.text);
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&project)
            .env_clear()
            .envs([("PATH", path.as_str()), ("HOME", home.path().to_str().unwrap())])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "in {document}:\n{}\n{said}", block.text);
    }
}

#[test]
fn readme() {
    check_commands("README.md");
}

#[test]
fn tasks() {
    check_commands("docs/tasks.md");
}

#[test]
fn hooks() {
    check_commands("docs/hooks.md");
}

#[test]
fn log() {
    check_commands("docs/log.md");
}

#[test]
fn the_configuration_in_hooks_md_does_what_the_text_says() {
    let yaml = blocks("docs/hooks.md").into_iter().find(|b| b.language == "yaml").unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("hookloop.yaml"), yaml.text).unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hookloop"))
            .args(args)
            .current_dir(home.path())
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["task", "add", "Parser", "--id", "parser"]);
    run(&["task", "block", "parser", "--reason", "which encoding?"]);
    run(&["task", "unblock", "parser"]);
    run(&["task", "complete", "parser"]);
    let tasks = run(&["task", "list"]);
    assert!(tasks.contains("Unblock: Parser (which encoding?)"), "{tasks}");
    assert!(tasks.contains("Write release notes for Parser"), "{tasks}");
    let log = run(&["log"]);
    for event in ["hook.announce.finished", "hook.announce.released", "workflow_completed"] {
        assert!(log.contains(event), "{event} is not in\n{log}");
    }
}

#[test]
fn the_json_in_hooks_md_is_taken_over() {
    let json = blocks("docs/hooks.md").into_iter().find(|b| b.language == "json").unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("hooks.json"), json.text).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_hookloop"))
        .args(["import", "automation-hooks", "hooks.json"])
        .current_dir(home.path())
        .env("HOME", home.path())
        .status()
        .unwrap();
    assert!(status.success());
    let written = std::fs::read_to_string(home.path().join("hookloop.yaml")).unwrap();
    assert!(written.contains("use: auto-create-review-task"), "{written}");
}
