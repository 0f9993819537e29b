//! The tools that a session gives to its agent: `hookloop mcp`, bound to that session.

use std::path::PathBuf;

use hookloop_core::id::SessionId;
use hookloop_hooks::exec_context::ExecContext;
use serde_json::{Value, json};

/// The name of the server in agents' settings.
pub(crate) const SERVER: &str = "hookloop";

/// The tools of the server. None of them runs a command, or changes a file.
pub const TOOLS: [&str; 14] = [
    "hook_register",
    "hook_evaluate",
    "hook_list",
    "hook_clear",
    "iteration_start",
    "iteration_validate",
    "iteration_next",
    "iteration_complete",
    "checkpoint_create",
    "checkpoint_resume",
    "task_get",
    "task_list",
    "task_add",
    "task_update",
];

/// Variables of the user's environment that locate the state. Some agents do not pass them on to servers.
const ENVIRONMENT: [&str; 3] = ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOOKLOOP_STORE"];

/// The command that starts the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerCommand {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl McpServerCommand {
    /// Returns the tools of a session; `None` if the path of this program is unknown or not valid UTF-8.
    pub fn of(runner: &ExecContext, session: &SessionId, run: u32) -> Option<McpServerCommand> {
        let unnamed = |error: &std::io::Error| {
            tracing::warn!(%error, "agents have no tools: the program's file is unknown");
        };
        let program = std::env::current_exe().inspect_err(unnamed).ok();
        let program = program.filter(|program| program.is_file())?;
        let root = runner.home().to_str()?;
        let run = run.to_string();
        let args = ["-C", root, "mcp", "--session", session.as_str(), "--run", &run];
        let known = runner.environment().iter();
        let env = known.filter_map(|(name, value)| {
            let name = name.to_str().filter(|name| ENVIRONMENT.contains(name))?;
            Some((name.to_owned(), value.to_str()?.to_owned()))
        });
        Some(McpServerCommand {
            program,
            args: args.map(str::to_owned).to_vec(),
            env: env.collect(),
        })
    }

    /// Returns the server in the JSON that most agents use.
    pub fn json(&self) -> Value {
        let env: serde_json::Map<String, Value> =
            self.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let server = json!({ "command": self.program, "args": self.args, "env": env });
        json!({ "mcpServers": { SERVER: server } })
    }
}

/// Returns whether a title in an agent's request for permission names a tool of hookloop.
pub(crate) fn is_ours(title: &str) -> bool {
    let shapes = |tool: &str| {
        [
            format!("mcp__{SERVER}__{tool}"),
            format!("mcp.{SERVER}.{tool}"),
            format!("{SERVER}_{tool}"),
            format!("{SERVER}/{tool}"),
            format!("{SERVER}.{tool}"),
            format!("{tool} ({SERVER} MCP Server)"),
        ]
    };
    TOOLS.iter().any(|tool| shapes(tool).iter().any(|shape| shape == title.trim()))
}
