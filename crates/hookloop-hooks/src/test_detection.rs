//! Detects the tests of a project by its files.
//!
//! Files are only read. Every runner of a language counts, because the first one may cover only
//! half of the project. A `Makefile` or a `justfile` counts only where no other runner is found,
//! since its `test` target usually calls one. No tests, or an unreadable file, is never a pass.
//!
//! - `reading`: files inside the project
//! - `directories`: subdirectories with projects of their own
//! - `members`: the patterns by which a workspace names its members
//! - `cargo`, `javascript`, `python`, `recipes`, `others`: the runners of each ecosystem

pub mod cargo;
pub mod directories;
pub mod javascript;
pub mod members;
mod others;
pub mod python;
pub mod reading;
pub mod recipes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hookloop_process::find_program;
use reading::TestedProject;

/// The name of the target or recipe that runs tests.
const TEST: &str = "test";

/// A command that runs tests of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    pub runner: &'static str,
    pub argv: Vec<String>,
    /// The program that the command needs.
    pub program: String,
    /// Whether the program is installed.
    pub program_found: bool,
}

impl TestCommand {
    /// Returns the command as a shell line.
    pub fn line(&self) -> String {
        match self.argv.as_slice() {
            [shell, flag, line] if shell == "sh" && flag == "-c" => line.clone(),
            words => words.join(" "),
        }
    }
}

/// The tools that a workspace member inherits from its root.
#[derive(Clone, Copy, Debug, Default)]
pub struct InheritedTools {
    pub manager: Option<javascript::PackageManager>,
    pub launcher: python::PythonLauncher,
}

/// The reason why a project has no known test command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTests {
    #[error("no tests were found in {}: write `command: …` in place of `use: run_tests`", .root.display())]
    NoneFound { root: PathBuf },
    #[error(
        "the tests of {runner} can't be run, since `{program}` is not in PATH: install it, or write `command: …` in \
         place of `use: run_tests`"
    )]
    NoProgram { runner: &'static str, program: String },
    #[error("which tests there are can't be told: `{file}` {why}")]
    Unreadable { file: String, why: String },
}

/// Returns all tests of the project at `root`, at least one. `path` is the search path.
pub(crate) fn detect(root: &Path, path: &OsStr) -> Result<Vec<TestCommand>, NoTests> {
    detect_with(root, path, InheritedTools::default())
}

/// Returns all tests of the project at `root`, a workspace member with these inherited tools.
pub fn detect_with(
    root: &Path,
    path: &OsStr,
    inherited: InheritedTools,
) -> Result<Vec<TestCommand>, NoTests> {
    let project = TestedProject::new(root)?;
    let owned = |argv: Vec<&str>| argv.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    if project.has(cargo::FILE)? {
        found.push(("cargo", owned(vec!["cargo", "test", "--workspace"])));
    }
    if let Some(command) = javascript::command(&project, TEST, inherited.manager)? {
        found.push((command.manager.name(), command.argv));
    }
    found.extend(python::tests(&project, path, inherited.launcher)?);
    if project.has("go.mod")? {
        found.push(("go", owned(vec!["go", "test", "./..."])));
    }
    found.extend(others::tests(&project)?.into_iter().map(|(runner, argv)| (runner, owned(argv))));
    if found.is_empty() && recipes::has_make(&project, TEST)? {
        found.push(("make", owned(vec!["make", TEST])));
    } else if found.is_empty() && recipes::has_just(&project, TEST)? {
        found.push(("just", owned(vec!["just", TEST])));
    }
    if found.is_empty() {
        return Err(NoTests::NoneFound { root: root.to_owned() });
    }
    let command = |(runner, argv): (&'static str, Vec<String>)| {
        let program = if runner == "cmake" { runner.to_owned() } else { argv[0].clone() };
        TestCommand { runner, program_found: is_there(&program, root, path), program, argv }
    };
    Ok(found.into_iter().map(command).collect())
}

/// Whether a program can be started in the project's directory.
pub fn is_there(program: &str, root: &Path, path: &OsStr) -> bool {
    match program.contains('/') {
        true => root.join(program).is_file(),
        false => find_program(program, path).is_some(),
    }
}

/// Returns all tests of the project at `root`. A missing program is an error.
pub fn runnable(root: &Path, path: &OsStr) -> Result<Vec<TestCommand>, NoTests> {
    let found = detect(root, path)?;
    match found.iter().find(|command| !command.program_found) {
        Some(TestCommand { runner, program, .. }) => {
            Err(NoTests::NoProgram { runner, program: program.clone() })
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests;
