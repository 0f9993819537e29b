//! What CI runs, as a hint: lines of GitHub's workflows that look like tests.
//!
//! Line by line, without a parser: a hint that is missed is no harm, and one that is taken wrongly is a comment.

use std::fs;
use std::path::Path;

use crate::delivery::tests_of::reading::Project;

const WORKFLOWS: &str = ".github/workflows";
/// Workflows that are looked at, and steps that are told.
const FILES_MAX: usize = 20;
const STEPS_MAX: usize = 6;
/// A longer line is a script.
const LINE_MAX: usize = 120;
/// Words that a line has which tests or checks something.
const TELLING: [&str; 9] =
    ["test", "lint", "check", "clippy", "vet", "tsc", "mypy", "audit", "spec"];
/// What no gate can be: it prepares, or is only there on CI.
const NOT_HERE: [&str; 6] = ["${{", "checkout", "install", "apt", "curl", "upload"];

/// A line of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub file: String,
    pub command: String,
}

pub(super) fn steps(root: &Path, troubles: &mut Vec<String>) -> Vec<Step> {
    let Ok(project) = Project::new(root) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(root.join(WORKFLOWS)) else { return Vec::new() };
    let names = entries.take(FILES_MAX).flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_plain =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_workflow = |name: &String| name.ends_with(".yml") || name.ends_with(".yaml");
    let mut names: Vec<String> = names.filter(|name| is_workflow(name) && is_plain(name)).collect();
    names.sort();
    let mut found: Vec<Step> = Vec::new();
    for name in names {
        let file = format!("{WORKFLOWS}/{name}");
        match project.read(&file) {
            Ok(text) => {
                for command in commands(&text.unwrap_or_default()) {
                    if found.len() < STEPS_MAX && found.iter().all(|step| step.command != command) {
                        found.push(Step { file: file.clone(), command });
                    }
                }
            }
            Err(error) => troubles.push(error.to_string()),
        }
    }
    found
}

/// Lines under `run:` that look like tests.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // How far in the key of the block is whose lines follow.
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let said = line.trim();
        if let Some(key) = block {
            if depth > key || said.is_empty() {
                found.extend(telling(said));
                continue;
            }
            block = None;
        }
        let item = said.strip_prefix("- ").unwrap_or(said);
        let Some(rest) = item.strip_prefix("run:") else { continue };
        match rest.trim() {
            "|" | "|-" | ">" | ">-" => block = Some(depth),
            rest => found.extend(telling(rest.trim_matches(['"', '\'']))),
        }
    }
    found
}

fn telling(line: &str) -> Option<String> {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_plain = line.len() <= LINE_MAX && !line.contains(|c: char| c.is_control());
    (is_plain && has(&TELLING) && !has(&NOT_HERE) && !line.starts_with('#'))
        .then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_test_something_are_found_in_both_forms() {
        let text = "
jobs:
  test:
    steps:
      - uses: actions/checkout@v4
      - run: cargo nextest run
      - name: Two
        run: |
          npm ci
          npm run test:unit
          # npm test
      - run: 'pytest -q tests'
      - run: echo done
      - run: cargo install cargo-audit
      - run: make test TOKEN=${{ secrets.T }}
";
        assert_eq!(commands(text), ["cargo nextest run", "npm run test:unit", "pytest -q tests"]);
    }
}
