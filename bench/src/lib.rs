//! Measures hookloop against the smallest programs that do the same work. Both run side by side,
//! because the machine is shared and only ratios are comparable between runs.
//!
//! - [`bare`]: a task graph directly on SQLite
//! - [`figures`]: medians, percentiles, tables
//! - [`hooks`]: hooks that do nothing, compared with a shell loop
//! - [`loops`]: overhead of the loop around an agent, compared with a shell loop
//! - [`mcp`]: tool calls, compared with a program that echoes them
//! - [`nats`]: events and claims directly on JetStream
//! - [`ours`]: the same operations through the product
//! - [`pair`]: two sides of one measurement, run alternately
//! - [`processes`]: commands as processes, round robin
//! - [`scale`]: growth of a server's cost with its load
//! - [`servers`]: resource usage of servers during a measurement
//! - [`workers`]: thousands of light workers
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
