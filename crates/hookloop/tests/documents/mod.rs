//! The fenced blocks of the documents.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::path::{Path, PathBuf};

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
