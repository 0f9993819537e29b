//! Sessions, hooks, gates, policies and the inbox, with the real program and agents that are scripts.
#![expect(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test uses its part")]
mod cli;
#[allow(dead_code, reason = "each test uses its part")]
mod documents;
#[allow(dead_code, reason = "each test uses its part")]
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
