//! hookloop: hooks, gates and a task graph for coding agents.

mod cli;
mod error;
mod ids;
mod mcp;
mod output;
mod progress;
mod web;
mod wire;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use hookloop_engine::process::{KEEPER_ARGUMENT, STEP_ARGUMENT, confine, keep};

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(argument) if argument == KEEPER_ARGUMENT => return keep(),
        Some(argument) if argument == STEP_ARGUMENT => return confine(),
        _ => {}
    }
    // As `Cli::parse()`, but the parser is not taken apart again: the process ends soon enough.
    let mut parser = std::mem::ManuallyDrop::new(cli::Cli::command());
    let matches = parser.get_matches_mut();
    let cli = match cli::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.format(&mut parser).exit(),
    };
    let json = cli.wants_json();
    match cli.run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(json),
    }
}
