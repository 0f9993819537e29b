//! Errors for agents: the reason, and the next step.

use std::borrow::Cow;

use hookloop_engine::external::agent_tools::AgentToolError;
use serde_json::{Value, json};

use crate::error::{CliError, FailureKind};
use crate::mcp::blocking_pool::Unanswered;

#[derive(Debug)]
pub(crate) struct ToolRefusal {
    /// For programs; docs/reference/mcp-tools.md has the list.
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// The next step of the agent.
    pub(crate) next: Cow<'static, str>,
}

impl ToolRefusal {
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        next: impl Into<Cow<'static, str>>,
    ) -> ToolRefusal {
        ToolRefusal { code, message: message.into(), next: next.into() }
    }

    /// An argument that can't be understood.
    pub(crate) fn argument(message: String) -> ToolRefusal {
        ToolRefusal::new(
            "invalid_argument",
            message,
            "call the tool again with arguments as in its schema",
        )
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "message": self.message, "next": self.next } })
    }
}

impl From<AgentToolError> for ToolRefusal {
    fn from(error: AgentToolError) -> ToolRefusal {
        match error {
            AgentToolError::Refused { code, message, next } => {
                ToolRefusal::new(code, message, next)
            }
            AgentToolError::Engine(error) => CliError::from(error).into(),
        }
    }
}

impl From<CliError> for ToolRefusal {
    fn from(error: CliError) -> ToolRefusal {
        let code = match error.kind() {
            FailureKind::Refused => "refused",
            FailureKind::Usage => "misconfigured",
            FailureKind::Untrusted => "untrusted",
            FailureKind::System => "system",
        };
        // The command line's hint is for the person at it. An agent is never given a command that trusts
        // something: it might type it.
        let next = match error.tip().filter(|tip| !tip.contains("trust")) {
            Some(tip) if error.has_command() => format!("ask your user to run: {tip}"),
            Some(tip) => format!("tell your user: {tip}"),
            None => "tell your user".to_owned(),
        };
        ToolRefusal::new(code, error.message().to_owned(), next)
    }
}

impl From<Unanswered> for ToolRefusal {
    fn from(unanswered: Unanswered) -> ToolRefusal {
        match unanswered {
            Unanswered::Busy => ToolRefusal::new(
                "busy",
                "too many calls at once",
                "wait for answers, then call again",
            ),
            Unanswered::Gone => ToolRefusal::new("cancelled", "the call was cancelled", ""),
            Unanswered::Lost => ToolRefusal::new("system", "the call broke off", "tell your user"),
        }
    }
}
