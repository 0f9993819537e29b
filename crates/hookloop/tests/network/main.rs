//! The program behind a company's proxy: a proxy that records, and servers with certificates of a private authority.
#![expect(clippy::unwrap_used, reason = "tests")]

mod certificates;
mod doctor;
mod proxy;
mod servers;

#[allow(dead_code, reason = "each test uses its part")]
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "each test uses its part")]
#[path = "../delivery/yard.rs"]
mod yard;

#[path = "../nats/mod.rs"]
mod nats;
