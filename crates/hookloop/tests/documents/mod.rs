//! The fenced blocks of the documents, and running those that are commands.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block: its language, what else its fence says, and its text.
pub(crate) struct Block {
    pub(crate) language: String,
    /// The file that the text is for, or what else tells blocks apart.
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

/// The text of the block with that name.
pub(crate) fn block(document: &str, name: &str) -> String {
    let found = blocks(document).into_iter().find(|block| block.name == name);
    found.unwrap_or_else(|| panic!("{document} has no block `{name}`")).text
}

/// Runs the shell blocks of a document one after the other, in one new project and home.
pub(crate) fn check_commands(document: &str) {
    check_commands_with(document, str::to_owned);
}

/// The same with each block changed a little before it is run.
pub(crate) fn check_commands_with(document: &str, change: impl Fn(&str) -> String) {
    let home = tempfile::tempdir().unwrap();
    check_commands_at(home.path(), document, change);
}

/// The same in a home that is there. The project is `project` in it.
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
        // A script is a process of its own: an agent that it plays is that process, not the test.
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

/// The names in the first column of a table, by the section that it is in and its place there.
pub(crate) fn table(document: &str, section: &str, place: usize) -> BTreeSet<String> {
    let rows = rows(document, section, place);
    rows.iter().flat_map(|row| names(&row[0])).collect()
}

/// The rows of a table, by the section that it is in (none: before the first) and its place there; each has the text
/// of its cells.
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

/// The words that stand as code in a text.
pub(crate) fn names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A port that is free together with the one for monitoring that goes with it.
pub(crate) fn free_port() -> u16 {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = 29_000 + (std::process::id() % 1_500) as u16;
    (start..).find(|port| is_free(*port) && is_free(port + 4_000)).unwrap()
}
