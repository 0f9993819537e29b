//! Faults on a real cluster under real work, and a checker that believes nobody.
//!
//! - [`campaign`]: a round of a scenario: cluster, workers, faults, healing, verdict
//! - [`scenario`]: the faults, one kind each
//! - [`claims`], [`expiry`]: two rounds that are about claims rather than about servers
//! - [`fleet`]: the processes of the workers, as the campaign sees them
//! - [`worker`]: what such a process does
//! - [`history`]: what the workers did, as each of them wrote it down
//! - [`night`]: the real program on many machines, with a forge; [`forward`]: their way to it
//! - [`stop`]: an order to the same fleet
//! - [`stream`]: the log, read from each node without the product
//! - [`check`]: what histories and log say about each other
//! - [`table`]: the figures
//!
//! Every worker is a process of its own with a view of its own, and uses the product as a library.
//! What it was told is in its history; what is true is in the stream. The checker knows both and asks
//! the product for nothing but the hash of its views.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a campaign: what it can't do ends it, and what it finds is printed"
)]

mod campaign;
mod check;
mod claims;
mod expiry;
mod fleet;
mod forward;
mod history;
mod night;
mod scenario;
mod stop;
mod stream;
mod table;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs faults against a cluster and checks what came of it.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(campaign::Args),
    Night(night::Args),
    Stop(stop::Args),
    #[command(hide = true)]
    Forward(forward::Args),
    #[command(hide = true)]
    Worker(worker::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => campaign::run(&args),
        Command::Night(args) => night::run(&args),
        Command::Stop(args) => stop::run(&args),
        Command::Forward(args) => {
            forward::run(&args);
            ExitCode::SUCCESS
        }
        Command::Worker(args) => {
            worker::run(&args);
            ExitCode::SUCCESS
        }
    }
}
