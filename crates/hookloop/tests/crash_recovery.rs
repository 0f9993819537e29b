//! hookloop crashes at any moment, and the next process continues.
#![expect(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test uses its part")]
mod delivery_project;
mod nats;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod crash_delivery;
mod crash_points;
mod crash_sessions;
mod kill9;
mod newer;
