use hookloop_core::id::SessionId;
use hookloop_engine::caller::record_agent;
use hookloop_engine::external::agent_tools::BoundSession;

use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::CliResult;
use crate::mcp::{ToolService, serve};

/// Run the MCP server on standard input and output
///
/// The agent starts this command. Add it with `claude mcp add hookloop -- hookloop mcp`, or
/// `codex mcp add hookloop -- hookloop mcp`. docs/mcp.md describes the tools.
#[derive(clap::Args)]
pub(crate) struct McpArgs {
    /// Session that started the agent
    #[arg(long, value_name = "ID", requires = "run", hide = true)]
    session: Option<SessionId>,

    /// Run number of the session
    #[arg(long, value_name = "N", requires = "session", hide = true)]
    run: Option<u32>,
}

/// Returns the session whose agent has started this server by itself.
fn around() -> Option<(SessionId, u32)> {
    let variable = |name| std::env::var(name).ok();
    let session = variable("HOOKLOOP_SESSION")?.parse().ok()?;
    Some((session, variable("HOOKLOOP_RUN")?.parse().ok()?))
}

impl McpArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let bound = self.session.zip(self.run).or_else(around);
        let bound = bound.map(|(session, run)| BoundSession { session, run });
        if let (None, Ok(state)) = (&bound, state_home()) {
            record_agent(&state, "mcp");
        }
        serve(ToolService::new(context.opener().bound(bound)))
    }
}
