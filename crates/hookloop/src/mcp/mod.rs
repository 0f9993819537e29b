//! The MCP server: what an agent can ask for by tools, over stdio and HTTP.
//!
//! - [`tools`]: each tool, what it takes and what it answers
//! - [`resources`]: what can be read
//! - [`refusal`]: errors that tell an agent what to do next
//! - [`desk`]: where the answers come from, off the async runtime
//! - [`lanes`]: the threads for that, and how many
//! - [`handler`]: all of it as rmcp wants it
//! - [`gate`]: which text is a message for it, with [`open`], the requests at work
//! - [`stdio`]: a message a line

mod desk;
mod gate;
mod handler;
mod lanes;
mod open;
mod refusal;
mod resources;
mod stdio;
mod tools;

pub(crate) use desk::{Counter, Door, Stamp};
pub(crate) use gate::refuse;
pub(crate) use handler::Handler;
pub(crate) use lanes::{Lanes, Reply, Unanswered};
pub(crate) use stdio::serve;
