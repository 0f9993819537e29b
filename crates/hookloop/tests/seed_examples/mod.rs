//! The examples and test cases of the specifications, run through the command line. [`table`] lists
//! all requirements.

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
