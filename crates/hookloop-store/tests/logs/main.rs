//! Tests of the event logs and of the view, against real engines.
#![expect(clippy::unwrap_used, reason = "tests")]

#[macro_use]
mod conformance;

mod claims;
mod embedded;
mod jetstream;
mod jetstream_errors;
mod jetstream_follow;
mod remote_view;
