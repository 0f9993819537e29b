//! What an agent's own hooks come to: a session begins with its conversation, or with what its user asks, and
//! ends when the work is proven.

use crate::project::Project;
use crate::session::StartError;
use crate::session::real::Stop;

/// An agent's hook has called.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// `claude`, `codex` or `gemini`.
    pub agent: &'a str,
    /// The agent's own name for its conversation.
    pub conversation: &'a str,
    pub moment: Moment<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment<'a> {
    /// The conversation begins, or goes on after a pause.
    Start,
    /// Its user has asked for something.
    Prompt,
    /// The agent is about to end its turn, with these words.
    Stop { message: &'a str },
    /// The conversation is over.
    End,
}

/// What the agent is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// There is nothing to say.
    Nothing,
    /// Text for the agent.
    Context(String),
    /// The agent goes on, and is told this.
    Block { reason: String },
    /// The agent may stop; its user is told this.
    Pass { note: Option<String> },
}

/// Performs what is due until the agent is.
pub fn visit(_project: &Project, _visit: &Visit<'_>, _stop: &Stop) -> Result<Reply, StartError> {
    Ok(Reply::Nothing)
}
