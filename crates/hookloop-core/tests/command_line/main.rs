//! Commands of hooks as their authors and real shells see them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod accepted;
mod refused;
mod shells;
