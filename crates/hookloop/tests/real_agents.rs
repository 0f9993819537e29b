//! The real command lines of agents.
#![expect(clippy::unwrap_used, reason = "tests")]

mod documents;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod agents;
