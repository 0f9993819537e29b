//! The real command lines of agents.
#![expect(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test uses its part")]
mod documents;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod agents;
