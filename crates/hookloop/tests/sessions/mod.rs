//! Sessions of the real program with real hooks and agents that are scripts.

mod answers;
mod checkout;
mod commands;
mod ending;
mod gates;
mod governor;
mod lifecycle;
mod prompts;
mod proven;
mod running;
mod scripts;
mod stopping;
mod tasks;
mod visible;

use std::time::Duration;

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject};

use crate::support::builder;

/// Nothing in here takes longer.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Less than the programs of tests last that are broken off, and more than a busy machine delays that.
pub(crate) const BROKEN_OFF: Duration = Duration::from_secs(30);

/// A trusted project in a git repository.
pub(crate) fn trusted_project(config: &str, files: &[(&str, &str)]) -> TestProject {
    let builder = builder().config(config).initialized().repository().trusted();
    files.iter().fold(builder, |builder, (name, text)| builder.file(*name, *text)).build()
}

/// `hookloop run` with these arguments, to its end. Most agents of tests claim to be done and change nothing.
pub(crate) fn run(project: &TestProject, args: &[&str]) -> SessionOutput {
    run_as_it_is(project, &[&["--no-changes-ok"], args].concat())
}

/// The same with nothing but these arguments.
pub(crate) fn run_as_it_is(project: &TestProject, args: &[&str]) -> SessionOutput {
    project.json_command(&[&["run"], args].concat()).output().unwrap().into()
}

/// The same with turns of an agent that is written down.
pub(crate) fn scripted(project: &TestProject, turns: &str, args: &[&str]) -> SessionOutput {
    project.write_turns(turns);
    run(project, &[&["work", "--agent", SCRIPTED_AGENT], args].concat())
}
