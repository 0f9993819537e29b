//! Guests: agents that hookloop did not start. They come by tools (MCP) or by hooks of their own, and take the
//! turns of a session that is performed between their visits.
//!
//! - [`desk`]: what an agent can ask for by tools; `bound`: the same where a session started the agent
//! - [`native`]: what an agent's own hooks come to
//! - `visited`: a session of a guest, while it is performed

mod bound;
pub mod desk;
pub mod native;
mod visited;
