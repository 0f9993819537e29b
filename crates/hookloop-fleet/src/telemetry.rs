//! Sessions as traces, for a collector that speaks OTLP over HTTP.
//!
//! A trace is made of a session's timeline, and that of its log: the loop calls nothing in here. So what a program did
//! that was killed is shown by whoever goes on with its session, and what is shown twice is the same span.
//!
//! - [`settings`]: where to, by the user's file, the environment and the policy
//! - `record`: a session's timeline, as far as the log has come
//! - `spans`: from a timeline to spans; `attributes`: what they say
//! - `otlp`: spans on the wire, and what a collector answers
//! - [`export`]: the thread that sends them

mod attributes;
pub mod export;
mod otlp;
pub mod settings;
mod spans;

pub use export::{Exporter, Figures, News};
pub use settings::{Misfit, Target};
