//! Workers and what they share.
//!
//! - [`worker`]: one worker; [`fleet`]: all workers that share a store
//! - [`notify`]: notifications; [`telemetry`]: traces
//! - [`doctor`]: checks of an installation; [`survey`]: a repository that is no project yet

pub mod doctor;
pub mod fleet;
pub mod notify;
pub mod survey;
pub mod telemetry;
pub mod worker;
