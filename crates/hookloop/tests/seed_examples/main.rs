//! The examples and test cases of the specifications, through the command line; [`table`] has all requirements.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../cli/mod.rs"]
mod cli;

mod actions;
mod agents_of_types;
mod answers;
mod built_in;
mod configuration;
mod events;
mod failures;
mod sessions;
mod table;
mod workflows;
