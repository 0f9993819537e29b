//! The MCP server: what an agent can ask for by tools, over stdio and HTTP.
//!
//! - [`tools`]: each tool, what it takes and what it answers
//! - [`resources`]: what can be read
//! - [`refusal`]: errors that tell an agent what to do next
//! - [`desk`]: where the answers come from, off the async runtime
//! - [`handler`]: all of it as rmcp wants it
//! - [`stdio`]: a line a message, and what a line may be

mod desk;
mod handler;
mod refusal;
mod resources;
mod stdio;
mod tools;

pub(crate) use desk::{Counter, Door};
pub(crate) use handler::Handler;
pub(crate) use stdio::serve;
