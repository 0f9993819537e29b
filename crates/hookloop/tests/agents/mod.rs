//! The real agents' command lines against a scripted model: one contract for all.
//!
//! No agent is simulated here. The tests look for agents in `$HOOKLOOP_AGENTS/node_modules/.bin`
//! (CONTRIBUTING.md explains how to install them), and need no network except loopback.

mod brought;
mod contract;
mod delivery;
mod faults;
mod looping;
mod native;
mod stage;
mod tools;
mod worker;
