//! The fenced blocks of the documents, and a runner for their commands.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block: its language, the other words of its fence, and its text.
pub(crate) struct Block {
    pub(crate) language: String,
    /// The name of the file for the text, or another label of the block.
    pub(crate) name: String,
    pub(crate) run: bool,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(fence) => {
                let mut words = fence.split(' ');
                let language = words.next().unwrap_or_default().to_owned();
                let name = words.next().unwrap_or_default().to_owned();
                blocks.push(Block { language, run: name != "no-run", name, text: String::new() });
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

/// Returns the text of the block with this name.
pub(crate) fn block(document: &str, name: &str) -> String {
    let found = blocks(document).into_iter().find(|block| block.name == name);
    found.unwrap_or_else(|| panic!("{document} has no block `{name}`")).text
}

/// Runs the shell blocks of a document in order, in one new project and home.
pub(crate) fn check_commands(document: &str) {
    check_commands_with(document, str::to_owned);
}

/// Like [`check_commands`], but changes each block before it runs.
pub(crate) fn check_commands_with(document: &str, change: impl Fn(&str) -> String) {
    let home = tempfile::tempdir().unwrap();
    check_commands_at(home.path(), document, change);
}

/// Like [`check_commands_with`], in an existing home. The project is its directory `project`.
pub(crate) fn check_commands_at(home: &Path, document: &str, change: impl Fn(&str) -> String) {
    let project = home.join("project");
    std::fs::create_dir(&project).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_hookloop")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shell: Vec<Block> =
        blocks(document).into_iter().filter(|b| b.language == "sh" && b.run).collect();
    assert!(!shell.is_empty(), "{document} has no commands to run");
    for block in shell {
        let script = format!("set -euo pipefail\n{}", change(&block.text));
        // A script runs as a separate process, so an agent that it simulates is that process, not
        // the test.
        let file = home.join("block.sh");
        std::fs::write(&file, script).unwrap();
        let output = Command::new("bash")
            .arg(&file)
            .current_dir(&project)
            .env_clear()
            .envs([("PATH", path.as_str()), ("HOME", home.to_str().unwrap()), ("USER", "ada")])
            .env("NATS_SERVER", hookloop_testbed::nats_server())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "in {document}:\n{}\n{printed}\n{said}", block.text);
    }
}

/// Returns the names in the first column of a table, found by its section and its position there.
pub(crate) fn table(document: &str, section: &str, place: usize) -> BTreeSet<String> {
    let rows = rows(document, section, place);
    rows.iter().flat_map(|row| names(&row[0])).collect()
}

/// Returns the rows of a table, found by its section (empty: before the first) and its position
/// there. Each row has the text of its cells.
pub(crate) fn rows(document: &str, section: &str, place: usize) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let is_there = |line: &&str| section.is_empty() || line.strip_prefix("## ") == Some(section);
    let lines = text.lines().skip_while(|line| !is_there(line)).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let tables = lines.split(|line| !line.starts_with('|')).filter(|lines| !lines.is_empty());
    let table = tables.into_iter().nth(place);
    let table = table.unwrap_or_else(|| panic!("{document} has no such table in {section}"));
    let cells = |line: &&str| -> Vec<String> {
        let line = line.trim_matches('|').replace("\\|", "\u{0}");
        line.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
    };
    table.iter().skip(2).map(cells).collect()
}

/// Returns the words of a text that are in backticks.
pub(crate) fn names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns a port that is free together with its monitoring port.
pub(crate) fn free_port() -> u16 {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = 29_000 + (std::process::id() % 1_500) as u16;
    (start..).find(|port| is_free(*port) && is_free(port + 4_000)).unwrap()
}
