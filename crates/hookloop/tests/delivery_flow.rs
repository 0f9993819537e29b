//! From finished work to a merged branch, with real git and a forge on localhost.
#![expect(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test uses its part")]
mod delivery_project;
mod nats;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod delivery;
