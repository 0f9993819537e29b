//! hookloop inside agents that people start themselves, without the agents: what their hooks say to it, and its entries
//! in their settings.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../cli/mod.rs"]
mod cli;

mod asking;
mod frozen;
mod installing;
