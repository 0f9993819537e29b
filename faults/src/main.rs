//! Injects faults into a real cluster under real load, and checks the result independently of the
//! product.
//!
//! - [`campaign`]: a round of a scenario: cluster, workers, faults, healing, verdict
//! - [`scenario`]: the kinds of faults
//! - [`claims`], [`expiry`]: two rounds that test claims instead of servers
//! - [`fleet`]: the worker processes, as seen by the campaign
//! - [`worker`]: the code of a worker process
//! - [`history`]: the operations of the workers, as each worker recorded them
//! - [`night`]: the real program on many machines, with a forge; [`forward`]: their connection to
//!   it
//! - [`stop`]: a directive to the same fleet
//! - [`stream`]: the log, read from each node without the product
//! - [`check`]: comparison of the histories with the log
//! - [`table`]: the result table
//!
//! Every worker is a separate process with its own view, and uses the product as a library. Its
//! history contains the responses it got; the stream contains the truth. The checker reads both,
//! and uses nothing from the product except the hash of its views.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a campaign prints its findings and stops at the first error"
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

/// Injects faults into a cluster and checks the result.
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
