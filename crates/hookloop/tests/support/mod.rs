//! A separate project for each test, and the real program.
//!
//! - [`account`]: the content of a project, comparable between runs
//! - [`deaths`]: crashes of a program at every step
//! - [`journal`]: random commands and the events that they must leave
//! - [`reactions`]: the expected effects of events
//! - [`serving`]: a running server process

pub(crate) mod account;
pub(crate) mod deaths;
pub(crate) mod journal;
pub(crate) mod reactions;
pub(crate) mod serving;

use hookloop_testkit::{TestProject, TestProjectBuilder};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hookloop");

/// Returns a builder for a project with the `PATH` of the test; hookloop may print warnings.
pub(crate) fn builder() -> TestProjectBuilder {
    TestProject::builder(PROGRAM).allow_warnings().inherited_path()
}

/// Returns a project with `config` as its hookloop.yaml, after `init`.
pub(crate) fn project_with(config: &str) -> TestProject {
    builder().config(config).initialized().build()
}

/// Returns a directory that is not a project yet.
pub(crate) fn empty_project() -> TestProject {
    builder().build()
}

/// Returns the result of SQLite's integrity check of the project's database.
pub(crate) fn sqlite_integrity(project: &TestProject) -> String {
    let connection = rusqlite::Connection::open(project.database_path()).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// Returns a number from the environment, else `default`.
pub(crate) fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
