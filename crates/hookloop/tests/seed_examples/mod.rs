//! The examples and test cases of the specifications, through the command line; [`table`] has all requirements.

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
