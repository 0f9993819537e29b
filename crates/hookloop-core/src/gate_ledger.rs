//! The gates that a person trusted, and the differences of a later set of gates.
//!
//! A record holds everything that makes a gate strong. Fields with an order (`on_failure`,
//! `any_of`, `needs`, `timeout`, `retry`, `enabled`, whether there is a `when`) are called weaker
//! or stronger. Any other difference is a change.
//!
//! Gates are compared for each task type and each agent that has a list of its own. Such a list
//! replaces the project's, so an empty list removes gates without touching any of them.

mod comparison;
mod record;
#[cfg(test)]
mod tests;

pub use comparison::compare;
pub use record::{GateChange, GateChangeKind, GateLedger, GateList, GateRecord, GateScope};
