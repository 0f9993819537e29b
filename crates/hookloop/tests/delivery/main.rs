//! Delivery by the real program: real git, real hooks, agents that are scripts, and a remote that is a bare repository.
#![expect(clippy::unwrap_used, reason = "tests")]

mod approving;
mod campaign;
mod context;
mod forge;
mod gatekeepers;
mod interrupted;
mod machines;
mod no_forge;
mod protected;
mod queue;
mod remediation;
mod submit;
mod train;
mod types;
mod vanished;
#[allow(dead_code, reason = "tests/network uses the rest")]
mod yard;

#[allow(dead_code, reason = "each test uses its part")]
#[path = "../support/mod.rs"]
mod support;

#[path = "../nats/mod.rs"]
mod nats;
