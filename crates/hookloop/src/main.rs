//! hookloop: hooks, gates and a task graph for coding agents.

mod cli;
mod error;
mod ids;
mod output;
mod progress;
mod wire;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let json = cli.wants_json();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}
