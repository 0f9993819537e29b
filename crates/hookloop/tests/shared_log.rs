//! Several processes and machines on one log, with real servers.
#![expect(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test uses its part")]
mod delivery_project;
mod documents;
mod nats;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod many_processes;
mod nats_integrity;
mod nats_safety;
mod nats_secure;
mod nats_sessions;
mod network;
mod two_machines;
mod worker;
