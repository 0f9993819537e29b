//! How people come by the program: a release of the program under test, installed in every way that there is.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../cli/mod.rs"]
mod cli;

mod archive;
mod container;
mod installer;
mod npm;
mod pages;
mod release;
mod source;
