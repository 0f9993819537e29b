//! Tests of rooms with real git: a room has the files of a checkout by hand, after any changes by gates.
#![expect(clippy::unwrap_used, reason = "tests")]

mod campaign;
mod checkouts;
mod cost;
mod fixture;
mod hostile;
mod moves;
mod objects;
mod sessions;
mod setups;
mod slots;
mod visible;
