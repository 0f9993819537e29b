//! The MCP server: the tools and resources that agents call, over stdio and HTTP.
//!
//! - [`tools`]: each tool, its arguments and its answer
//! - [`resources`]: the resources that an agent can read
//! - [`refusal`]: errors that name the agent's next step
//! - [`project_opener`]: the project, opened when a call first needs it
//! - [`tool_service`]: runs calls off the async runtime, on the threads of [`blocking_pool`]
//! - [`handler`]: the server as rmcp expects it
//! - [`gate`]: rejects text that is not a message; [`open_requests`]: the requests that wait for an answer
//! - [`stdio`]: one message a line

mod blocking_pool;
mod gate;
mod handler;
mod open_requests;
mod project_opener;
mod refusal;
mod resources;
mod stdio;
mod tool_service;
mod tools;

pub(crate) use blocking_pool::{BlockingPool, Unanswered, WorkReply};
pub(crate) use gate::refuse;
pub(crate) use handler::McpHandler;
pub(crate) use project_opener::{FileStamp, ProjectOpener};
pub(crate) use stdio::serve;
pub(crate) use tool_service::ToolService;
