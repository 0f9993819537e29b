//! Commands of hooks as their authors write them and as real shells run them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod accepted;
mod refused;
mod shells;
