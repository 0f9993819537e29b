//! How people come by the program, and by what belongs to it.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../cli/mod.rs"]
mod cli;

mod pages;
