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
mod record;
pub mod settings;
mod spans;

use hookloop_core::trace::TraceParent;

pub use export::{Exporter, Figures, News};
pub use settings::{Misfit, Target};

pub(crate) use record::Record;

/// Who is shown what sessions do, and what they are part of.
#[derive(Clone, Debug)]
pub struct Tracing {
    pub exporter: Exporter,
    /// The span that new sessions are started in.
    pub parent: Option<TraceParent>,
}
