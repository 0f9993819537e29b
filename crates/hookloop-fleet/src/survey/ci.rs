//! Commands that CI runs: lines of GitHub workflows that look like tests, each with its directory.
//!
//! A step is read once, even if a matrix runs it in several jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hookloop_hooks::test_detection::directories::is_plain;
use hookloop_hooks::test_detection::members::{resolved, yaml};
use hookloop_hooks::test_detection::reading::TestedProject;
use serde::Deserialize;

const WORKFLOWS: &str = ".github/workflows";
/// Largest numbers of workflow files that are read, and of steps that are kept.
const FILES_MAX: usize = 20;
const STEPS_MAX: usize = 12;
/// Longest command line. A longer line is a script.
const LINE_MAX: usize = 120;
/// Words of lines that test or check something.
const TELLING: [&str; 9] =
    ["test", "lint", "check", "clippy", "vet", "tsc", "mypy", "audit", "spec"];
/// Words of lines that test something.
const TESTING: [&str; 2] = ["test", "spec"];
/// Words of lines that prepare something, or that work only in CI.
const NOT_HERE: [&str; 6] = ["${{", "checkout", "install", "apt", "curl", "upload"];
/// Words of lines that publish something or run it on another system. They never become gates.
const NO_GATE: [&str; 7] =
    ["docker", "deploy", "publish", "release", "ssh", "kubectl", "terraform"];
/// Shell syntax that makes a line more than one simple command.
const SHELL_SIGNS: [char; 10] = ['|', '&', ';', '$', '`', '<', '>', '\\', '{', '}'];

/// A line of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiStep {
    pub file: String,
    pub command: String,
    /// The directory of the step, relative to the project's root. `None` is the root.
    pub cwd: Option<String>,
    /// Whether the line runs tests and depends on no other line of its step.
    pub is_test: bool,
}

#[derive(Deserialize)]
struct CiWorkflow {
    #[serde(default)]
    defaults: Option<CiDefaults>,
    #[serde(default)]
    jobs: BTreeMap<String, CiJob>,
}

#[derive(Deserialize)]
struct CiJob {
    #[serde(default)]
    defaults: Option<CiDefaults>,
    #[serde(default)]
    steps: Vec<CiWorkflowStep>,
}

#[derive(Deserialize)]
struct CiDefaults {
    #[serde(default)]
    run: Option<RunDefaults>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RunDefaults {
    #[serde(default)]
    working_directory: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CiWorkflowStep {
    #[serde(default)]
    run: Option<String>,
    #[serde(default)]
    working_directory: Option<String>,
}

pub(super) fn steps(root: &Path, troubles: &mut Vec<String>) -> Vec<CiStep> {
    let Ok(project) = TestedProject::new(root) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(root.join(WORKFLOWS)) else { return Vec::new() };
    let names = entries.take(FILES_MAX).flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_plain =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_workflow = |name: &String| name.ends_with(".yml") || name.ends_with(".yaml");
    let mut names: Vec<String> = names.filter(|name| is_workflow(name) && is_plain(name)).collect();
    names.sort();
    let mut found: Vec<CiStep> = Vec::new();
    for name in names {
        let file = format!("{WORKFLOWS}/{name}");
        let read = project.read(&file).and_then(|text| {
            let text = text.unwrap_or_default();
            if text.trim().is_empty() {
                Ok(Vec::new())
            } else {
                Ok(commands(&file, &yaml(&file, &text)?))
            }
        });
        match read {
            Ok(steps) => {
                for step in steps {
                    let is_known =
                        |known: &CiStep| known.command == step.command && known.cwd == step.cwd;
                    if found.len() < STEPS_MAX && !found.iter().any(is_known) {
                        found.push(step);
                    }
                }
            }
            Err(error) => troubles.push(error.to_string()),
        }
    }
    found.retain(|step| step.cwd.as_ref().is_none_or(|cwd| root.join(cwd).is_dir()));
    found
}

/// Returns the lines under `run:` that look like tests or checks.
fn commands(file: &str, workflow: &CiWorkflow) -> Vec<CiStep> {
    let mut found = Vec::new();
    let of = |defaults: &Option<CiDefaults>| {
        defaults.as_ref().and_then(|defaults| defaults.run.as_ref()?.working_directory.clone())
    };
    for job in workflow.jobs.values() {
        for step in &job.steps {
            let Some(script) = &step.run else { continue };
            let directory = step.working_directory.clone().or_else(|| of(&job.defaults));
            let directory = directory.or_else(|| of(&workflow.defaults)).unwrap_or_default();
            // Skips directories that only CI knows or that are outside the repository.
            let Some(cwd) = resolved("", &directory).filter(|cwd| is_plain(cwd)) else { continue };
            let has_moved = script.lines().any(moves);
            for command in script.lines().map(str::trim).filter(|line| is_telling(line)) {
                let is_test = !has_moved && is_test(command);
                let cwd = Some(cwd.clone()).filter(|cwd| !cwd.is_empty());
                found.push(CiStep {
                    file: file.to_owned(),
                    command: command.to_owned(),
                    cwd,
                    is_test,
                });
            }
        }
    }
    found
}

/// Whether a line changes the effect of the lines after it.
fn moves(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    matches!(word, "cd" | "pushd" | "export" | "source" | "." | "if" | "for" | "while")
}

fn is_telling(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_plain = line.len() <= LINE_MAX && !line.contains(|c: char| c.is_control());
    is_plain && has(&TELLING) && !has(&NOT_HERE) && !line.starts_with('#') && !moves(line)
}

fn is_test(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    // A first word such as `NAME=value` or `"…"` needs a shell.
    let is_program =
        |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+".contains(c));
    let is_command =
        line.split_whitespace().next().is_some_and(is_program) && !line.starts_with("echo");
    is_command
        && has(&TESTING)
        && !has(&NO_GATE)
        && !line.contains(SHELL_SIGNS)
        && !line.contains(": ")
        && !line.contains(" #")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<CiStep> {
        commands("ci.yml", &yaml("ci.yml", text).unwrap())
    }

    #[test]
    fn test_commands_are_found_in_single_and_multiline_ci_steps() {
        let text = "
on: [push]
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
        let found = read(text);
        let found: Vec<&str> = found.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(found, ["cargo nextest run", "npm run test:unit", "pytest -q tests"]);
    }

    #[test]
    fn a_step_runs_in_its_directory_or_in_the_default_of_its_job_or_workflow() {
        let text = "
defaults: {run: {working-directory: all}}
jobs:
  one:
    strategy: {matrix: {version: [3.10, 3.11, 3.12]}}
    defaults: {run: {working-directory: ./backend/, shell: bash}}
    steps:
      - run: pytest
      - run: tox
        working-directory: backend/api
      - run: make test
        working-directory: backend/api
  two:
    steps:
      - run: npm test
      - {run: go test ./..., working-directory: '${{ matrix.module }}'}
      - {run: go test ./..., working-directory: ../other}
      - {run: go vet ./..., working-directory: .}
";
        let found = read(text);
        let found: Vec<_> =
            found.iter().map(|step| (step.cwd.as_deref(), step.command.as_str())).collect();
        let expected = [
            (Some("backend"), "pytest"),
            (Some("backend/api"), "make test"),
            (Some("all"), "npm test"),
            (None, "go vet ./..."),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_ci_line_that_depends_on_other_lines_or_programs_is_no_gate() {
        let is_gate = |script: &str| {
            let text = format!("jobs: {{a: {{steps: [{{run: {script:?}}}]}}}}");
            read(&text).iter().any(|step| step.is_test)
        };
        assert!(is_gate("npm ci\nnpm test"));
        for script in [
            "cd app\nnpm test",
            "npm test | tee log",
            "A=1 npm test",
            "docker run app test",
            "npm run lint",
            "echo test",
        ] {
            assert!(!is_gate(script), "{script}");
        }
    }
}
