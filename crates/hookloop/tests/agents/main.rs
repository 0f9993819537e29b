//! The real agents' command lines against a model that says what a test wants: one contract for all.
//!
//! Nothing here is an imitation of an agent. They are looked for in `$HOOKLOOP_AGENTS/node_modules/.bin`
//! (CONTRIBUTING.md says how they get there) and need no network but loopback.
#![expect(clippy::unwrap_used, reason = "tests")]

mod brought;
mod contract;
mod delivery;
#[path = "../documents/mod.rs"]
mod documents;
mod faults;
mod looping;
mod native;
mod stage;
mod tools;
mod worker;

#[allow(dead_code, reason = "each test uses its part")]
#[path = "../support/mod.rs"]
mod support;
