//! Measures hookloop against the smallest programs that do the same work, side by side in one run,
//! because the machine is shared and only ratios last.
//!
//! - [`bare`]: a task graph straight on SQLite
//! - [`figures`]: medians, percentiles, tables
//! - [`hooks`]: hooks that do nothing, against a loop of the shell
//! - [`loops`]: what the loop adds to an agent, against a loop of the shell
//! - [`mcp`]: calls of tools, against a program that sends them back
//! - [`nats`]: events and claims straight on JetStream
//! - [`ours`]: the same through the product
//! - [`pair`]: two sides of one measurement, taken in turns
//! - [`processes`]: commands as processes, round robin
//! - [`scale`]: what more of something costs a server
//! - [`servers`]: what servers use meanwhile
//! - [`workers`]: light workers, by the thousand
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::missing_panics_doc,
    reason = "a measuring tool: a failure ends it, and it prints what it finds"
)]

pub mod bare;
pub mod figures;
pub mod hooks;
pub mod loops;
pub mod mcp;
pub mod nats;
pub mod ours;
pub mod pair;
pub mod processes;
pub mod scale;
pub mod servers;
pub mod workers;
