//! Runs workers, and the parts of hookloop that look at more than one session or project.
//!
//! This crate never prints: the program shows the results.
//!
//! - [`worker`]: one worker, from claims to merges
//! - [`fleet`]: all workers that share a store: their directives, budget and presence
//! - [`notify`]: notifications about problems that need a person
//! - [`telemetry`]: traces of sessions
//! - [`doctor`]: checks of an installation, without changes
//! - [`survey`]: the tests and tools of a repository that is no project yet

pub mod doctor;
pub mod fleet;
pub mod notify;
pub mod survey;
pub mod telemetry;
pub mod worker;
