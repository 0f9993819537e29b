//! Guests: agents that hookloop did not start. They come by tools (MCP) or by hooks of their own, and take the
//! turns of a session that is performed between their visits.
//!
//! - [`desk`]: what an agent can ask for by tools; `bound`: the same where a session started the agent
//! - `words`: what is asked there, and answered; `iterate`: a loop that its agent leads
//! - [`native`]: what an agent's own hooks come to
//! - `visited`: a session of a guest, while it is performed; `baseline`: the files when its turn began

mod baseline;
mod bound;
pub mod desk;
mod iterate;
pub mod native;
mod visited;
mod words;
