//! The real agents' command lines against a model that says what a test wants: one contract for all.
//!
//! Nothing here is an imitation of an agent. They are looked for in `$HOOKLOOP_AGENTS/node_modules/.bin`
//! (CONTRIBUTING.md says how they get there) and need no network but loopback.

mod brought;
mod contract;
mod delivery;
mod faults;
mod looping;
mod native;
mod stage;
mod tools;
mod worker;
