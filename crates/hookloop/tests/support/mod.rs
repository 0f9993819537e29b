//! A project of its own for a test, and the real program on it.
//!
//! - [`account`]: what a project holds, comparable between runs
//! - [`deaths`]: programs that die at every step
//! - [`journal`]: random commands, and what has to be remembered of them
//! - [`reactions`]: what has to follow from events
//! - [`serving`]: the program while it serves

pub(crate) mod account;
pub(crate) mod deaths;
pub(crate) mod journal;
pub(crate) mod reactions;
pub(crate) mod serving;

use hookloop_testkit::{TestProject, TestProjectBuilder};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hookloop");

/// A project for the program, which may warn, with the `PATH` of the test.
pub(crate) fn builder() -> TestProjectBuilder {
    TestProject::builder(PROGRAM).allow_warnings().inherited_path()
}

/// A project with `config` as its hookloop.yaml, after `init`.
pub(crate) fn project_with(config: &str) -> TestProject {
    builder().config(config).initialized().build()
}

/// A directory that is not a project yet.
pub(crate) fn empty_project() -> TestProject {
    builder().build()
}

/// The result of SQLite's check of the project's database.
pub(crate) fn sqlite_integrity(project: &TestProject) -> String {
    let connection = rusqlite::Connection::open(project.database_path()).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// A number from the environment, else `default`.
pub(crate) fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
