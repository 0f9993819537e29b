//! Sessions of the real program with real hooks and scripts as agents.

mod allowed_changes;
mod answers;
mod base_tests;
mod check_history;
mod checkout;
mod commands;
mod ending;
mod gates;
mod governor;
mod known_failures;
mod lifecycle;
mod prompts;
mod proven;
mod rooms;
mod running;
mod scripts;
mod stopping;
mod strength;
mod tasks;
mod turn_trees;
mod undoing;
mod visible;

use std::time::Duration;

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};

use crate::support::builder;

/// Time limit of every wait.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Shorter than the interrupted programs of tests would run, and longer than a busy machine delays
/// the interrupt.
pub(crate) const BROKEN_OFF: Duration = Duration::from_secs(30);

/// Returns a trusted project in a git repository.
pub(crate) fn trusted_project(config: &str, files: &[(&str, &str)]) -> TestProject {
    let builder = builder().config(config).initialized().repository().trusted();
    files.iter().fold(builder, |builder, (name, text)| builder.file(*name, *text)).build()
}

/// Runs `hookloop run` with these arguments and `--no-changes-ok`, because most agents here change
/// nothing.
pub(crate) fn run(project: &TestProject, args: &[&str]) -> SessionOutput {
    run_as_it_is(project, &[&["--no-changes-ok"], args].concat())
}

/// Runs `hookloop run` with only these arguments.
pub(crate) fn run_as_it_is(project: &TestProject, args: &[&str]) -> SessionOutput {
    project.json_command(&[&["run"], args].concat()).output().unwrap().into()
}

/// Runs `hookloop run` with the scripted turns of an agent.
pub(crate) fn scripted(project: &TestProject, turns: &str, args: &[&str]) -> SessionOutput {
    project.write_turns(turns);
    run(project, &[&["work", "--agent", SCRIPTED_AGENT], args].concat())
}
