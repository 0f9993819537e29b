//! Which tests a project has, told by its files.
//!
//! Files are read, nothing is started. Every runner of a language that is found counts: who ran only the first
//! would take half of a project for all of it. A `Makefile` or a `justfile` counts where there is no other,
//! since its `test` most often is one of those by another name. That nothing is found, or that something can't be
//! read, is never a pass.
//!
//! - `reading`: files of the project, and of it alone
//! - `javascript`, `python`, `recipes`, `others`: what each says

pub(crate) mod javascript;
mod others;
pub(crate) mod python;
pub(crate) mod reading;
pub(crate) mod recipes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::doctor::is_on_path;
use reading::Project;

/// The target or recipe that is looked for.
const TEST: &str = "test";

/// How to run tests that a project has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    pub runner: &'static str,
    pub argv: Vec<String>,
    /// Its program is one that can be started.
    pub program_found: bool,
}

/// Why it is not known how to test a project.
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

/// All tests of the project at `root`; at least one. Their programs are looked for in `path`.
pub fn detect(root: &Path, path: &OsStr) -> Result<Vec<TestCommand>, NoTests> {
    let project = Project::new(root)?;
    let mut found: Vec<(&'static str, Vec<&str>)> = Vec::new();
    if project.has("Cargo.toml")? {
        found.push(("cargo", vec!["cargo", "test", "--workspace"]));
    }
    if let Some(manager) = javascript::manager(&project)? {
        found.push((manager.name(), manager.argv()));
    }
    if python::has_pytest(&project)? {
        found.push(("pytest", [python::launcher(&project)?, &["pytest"]].concat()));
    }
    if project.has("go.mod")? {
        found.push(("go", vec!["go", "test", "./..."]));
    }
    found.extend(others::tests(&project)?);
    if found.is_empty() && recipes::has_make(&project, TEST)? {
        found.push(("make", vec!["make", TEST]));
    } else if found.is_empty() && recipes::has_just(&project, TEST)? {
        found.push(("just", vec!["just", TEST]));
    }
    if found.is_empty() {
        return Err(NoTests::NoneFound { root: root.to_owned() });
    }
    let command = |(runner, argv): (&'static str, Vec<&str>)| TestCommand {
        runner,
        program_found: is_there(argv[0], root, path),
        argv: argv.into_iter().map(str::to_owned).collect(),
    };
    Ok(found.into_iter().map(command).collect())
}

/// Whether a command's first word can be started in the project's directory.
pub(crate) fn is_there(program: &str, root: &Path, path: &OsStr) -> bool {
    match program.contains('/') {
        true => root.join(program).is_file(),
        false => is_on_path(program, path),
    }
}

/// The same, where all of them are to be run: one whose program is missing is an error.
pub fn runnable(root: &Path, path: &OsStr) -> Result<Vec<TestCommand>, NoTests> {
    let found = detect(root, path)?;
    match found.iter().find(|command| !command.program_found) {
        Some(TestCommand { runner, argv, .. }) => {
            Err(NoTests::NoProgram { runner, program: argv[0].clone() })
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests;
