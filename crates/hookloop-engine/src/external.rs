//! External sessions: agents that hookloop did not start.
//!
//! Such an agent calls hookloop by MCP tools or by its own hooks. Its session is performed between
//! two calls: `SessionDriver::advance` performs steps until the agent's turn, and the next call ends that
//! turn. Between two calls the session exists only in the log.
//!
//! - [`agent_tools`]: the requests that an agent can make by tools
//! - `bound`: the requests of an agent that a session started
//! - `agent_messages`: the types of requests and answers
//! - `iterate`: a loop that its agent leads
//! - [`native`]: the calls of an agent's own hooks
//! - `external_session`: an external session while it is performed
//! - `baseline`: the files at the start of its turn

mod agent_messages;
pub mod agent_tools;
mod baseline;
mod bound;
mod external_session;
mod iterate;
pub mod native;
