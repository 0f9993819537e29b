//! Sends sessions as traces to a collector, with OTLP over HTTP.
//!
//! A trace is built from a session's timeline, and the timeline from the log. The loop calls
//! nothing here. So a process that resumes a session also sends the spans of the process that was
//! killed. A span that is sent twice has the same id.
//!
//! - [`settings`]: the destination, from the policy, the environment or the user's file
//! - `spans`: from a timeline to spans
//! - `attributes`: the attributes of spans
//! - `otlp`: the wire format, and the collector's response
//! - [`export`]: the thread that sends spans

mod attributes;
pub mod export;
mod otlp;
pub mod settings;
mod spans;

pub use export::{ExportFigures, ExportNews, TraceExporter};
pub use settings::{ExportMisfit, ExportTarget};
