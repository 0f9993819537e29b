//! The agents that hookloop knows by name.

use std::fmt;

/// How one talks to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `claude -p` with events on its output.
    Claude,
    /// `codex exec --json`.
    Codex,
    /// The Agent Client Protocol on its input and output.
    Acp,
    /// The prompt on its input, its final message on its output.
    Command,
    /// Turns from a file.
    Scripted,
}

/// Whether an agent reports what a turn cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostReport {
    Always,
    /// For models whose price it knows.
    SomeModels,
    Never,
}

/// An agent that needs no configuration.
#[derive(Debug)]
pub struct Known {
    pub name: &'static str,
    pub dialect: Dialect,
    pub program: &'static [&'static str],
    /// What brings it: `npm install -g …`.
    pub package: &'static str,
    /// The oldest version that has all options and settings that the adapter uses; none if any does.
    pub minimum: Option<AgentVersion>,
    pub cost: CostReport,
    /// Files of a repository that make it start something, or let it do more.
    pub brings: &'static [&'static str],
    /// Whether it can be told to leave those aside; its adapter does.
    pub can_ignore: bool,
    /// What makes it ask before it does something, with ACP.
    pub env: &'static [(&'static str, &'static str)],
    /// Its modes for those who may read, edit, and do everything, with ACP.
    pub modes: Option<[&'static str; 3]>,
}

const OF_CLAUDE: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/plugins",
    ".claude/skills",
    ".claude/workflows",
    ".mcp.json",
];

/// It asks for nothing otherwise.
const OPENCODE_ASKS: &str = r#"{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask","task":"ask"}"#;

pub const KNOWN: [Known; 6] = [
    Known {
        name: "claude",
        dialect: Dialect::Claude,
        program: &["claude"],
        package: "@anthropic-ai/claude-code",
        // `--permission-prompts`
        minimum: Some(AgentVersion(2, 1, 259)),
        cost: CostReport::Always,
        brings: OF_CLAUDE,
        can_ignore: true,
        env: &[],
        modes: None,
    },
    Known {
        name: "codex",
        dialect: Dialect::Codex,
        program: &["codex"],
        package: "@openai/codex",
        // `mcp_servers.*.default_tools_approval_mode`
        minimum: Some(AgentVersion(0, 122, 0)),
        cost: CostReport::Never,
        // It asks its user itself before it heeds what a repository brings.
        brings: &[],
        can_ignore: true,
        env: &[],
        modes: None,
    },
    Known {
        name: "opencode",
        dialect: Dialect::Acp,
        program: &["opencode", "acp"],
        package: "opencode-ai",
        // `opencode acp` with `OPENCODE_PERMISSION`
        minimum: Some(AgentVersion(1, 0, 0)),
        cost: CostReport::SomeModels,
        brings: &["opencode.json", "opencode.jsonc", ".opencode"],
        // OPENCODE_DISABLE_PROJECT_CONFIG and OPENCODE_PURE leave plugins of the repository in.
        can_ignore: false,
        env: &[("OPENCODE_PERMISSION", OPENCODE_ASKS)],
        modes: None,
    },
    Known {
        name: "gemini",
        dialect: Dialect::Acp,
        program: &["gemini", "--acp"],
        package: "@google/gemini-cli",
        // `--acp`
        minimum: Some(AgentVersion(0, 33, 0)),
        cost: CostReport::Never,
        brings: &[".gemini/settings.json", ".gemini/extensions", ".gemini/.env", ".env"],
        can_ignore: false,
        env: &[],
        modes: Some(["default", "default", "default"]),
    },
    Known {
        name: "codex-acp",
        dialect: Dialect::Acp,
        program: &["codex-acp"],
        package: "@agentclientprotocol/codex-acp",
        minimum: None,
        cost: CostReport::Never,
        // It tells Codex that every directory is trusted.
        brings: &[".codex"],
        can_ignore: false,
        env: &[],
        modes: Some(["read-only", "workspace-write", "agent-full-access"]),
    },
    Known {
        name: "claude-agent-acp",
        dialect: Dialect::Acp,
        program: &["claude-agent-acp"],
        package: "@agentclientprotocol/claude-agent-acp",
        minimum: None,
        cost: CostReport::Always,
        brings: OF_CLAUDE,
        can_ignore: false,
        env: &[],
        modes: Some(["default", "acceptEdits", "bypassPermissions"]),
    },
];

impl Known {
    /// Returns the command that installs or upgrades the agent. Without `@latest` npm takes the newest version whose
    /// `engines` fit this machine's Node, which may be too old for hookloop.
    pub fn install_command(&self) -> String {
        format!("npm install -g {}@latest", self.package)
    }
}

/// Returns the command that installs an agent for somebody who has none, with the names of the others.
pub fn any_install_command() -> (String, String) {
    let [first, others @ ..] = &KNOWN;
    let others: Vec<&str> = others.iter().map(|known| known.name).collect();
    (first.install_command(), others.join(", "))
}

pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The three numbers of a release. What follows them does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentVersion(pub u32, pub u32, pub u32);

impl AgentVersion {
    /// The first version in a text, such as `2.1.325 (Claude Code)` or `codex-cli 0.166.0`.
    pub fn find(text: &str) -> Option<AgentVersion> {
        let is_part = |c: char| !(c.is_ascii_digit() || c == '.');
        let mut words = text.split(is_part).filter(|word| word.contains('.'));
        words.find_map(|word| {
            let mut numbers = word.split('.').map(str::parse);
            match (numbers.next(), numbers.next(), numbers.next()) {
                (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => {
                    Some(AgentVersion(major, minor, patch))
                }
                _ => None,
            }
        })
    }
}

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}
