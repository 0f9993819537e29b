//! Which tests a project has, told by its files.
//!
//! Files are read, nothing is started. Every runner of a language that is found counts: who ran only the first
//! would take half of a project for all of it. A `Makefile` or a `justfile` counts where there is no other,
//! since its `test` most often is one of those by another name. That nothing is found, or that something can't be
//! read, is never a pass.
//!
//! - `reading`: files of the project, and of it alone
//! - `javascript`, `python`, `recipes`: what each says

mod javascript;
mod python;
mod reading;
mod recipes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::doctor::is_on_path;
use reading::Project;

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
        found.push(("pytest", vec!["pytest"]));
    }
    if project.has("go.mod")? {
        found.push(("go", vec!["go", "test", "./..."]));
    }
    if found.is_empty() && recipes::has_make(&project)? {
        found.push(("make", vec!["make", "test"]));
    } else if found.is_empty() && recipes::has_just(&project)? {
        found.push(("just", vec!["just", "test"]));
    }
    if found.is_empty() {
        return Err(NoTests::NoneFound { root: root.to_owned() });
    }
    let command = |(runner, argv): (&'static str, Vec<&str>)| TestCommand {
        runner,
        program_found: is_on_path(argv[0], path),
        argv: argv.into_iter().map(str::to_owned).collect(),
    };
    Ok(found.into_iter().map(command).collect())
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
