//! Sends sessions as traces to a collector that speaks OTLP over HTTP.
//!
//! A trace is made of a session's timeline, which is made of the log: the loop calls nothing here. The process that
//! resumes a session therefore also sends the spans of a process that was killed. A span that is sent twice has the
//! same id.
//!
//! - [`settings`]: the destination, by the policy, the environment and the user's file
//! - `spans`: from a timeline to spans; `attributes`: their attributes
//! - `otlp`: spans on the wire, and the collector's answer
//! - [`export`]: the thread that sends them

mod attributes;
pub mod export;
mod otlp;
pub mod settings;
mod spans;

pub use export::{Exporter, Figures, News};
pub use settings::{Misfit, Target};
