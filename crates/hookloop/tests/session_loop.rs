//! Sessions, hooks, gates, policies and the inbox, with the real program and scripts as agents.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cli;
mod documents;
mod nats;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod hooks;
mod inbox;
mod operators;
mod policy;
mod reactions;
mod sessions;
mod usage;
