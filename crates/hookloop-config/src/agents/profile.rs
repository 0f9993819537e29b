//! The agents that hookloop knows by name.

use std::fmt;

/// The protocol of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentDialect {
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

/// How the permissions of an agent bound the commands that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRules {
    /// hookloop does not know the rules of the program.
    Unknown,
    /// The agent runs every command in its own sandbox.
    OwnSandbox,
    /// `allowed_tools` has rules such as `Bash(npm test)`.
    ToolRules,
    /// `allowed_tools` has kinds of tools such as `execute`.
    ToolKinds,
}

impl AgentDialect {
    /// Returns the kind of an agent of this dialect that has no profile.
    pub fn generic_kind(self) -> &'static str {
        match self {
            AgentDialect::Acp => "acp",
            AgentDialect::Scripted => "scripted",
            AgentDialect::Command | AgentDialect::Claude | AgentDialect::Codex => "command",
        }
    }

    pub fn command_rules(self) -> CommandRules {
        match self {
            AgentDialect::Command | AgentDialect::Scripted => CommandRules::Unknown,
            AgentDialect::Codex => CommandRules::OwnSandbox,
            AgentDialect::Claude => CommandRules::ToolRules,
            AgentDialect::Acp => CommandRules::ToolKinds,
        }
    }
}

/// Whether an agent reports the cost of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostReport {
    Always,
    /// Only for models whose price it knows.
    SomeModels,
    Never,
}

/// A known agent, which needs no configuration.
#[derive(Debug)]
pub struct AgentProfile {
    pub name: &'static str,
    pub dialect: AgentDialect,
    pub program: &'static [&'static str],
    /// The npm package of the agent.
    pub package: &'static str,
    /// The oldest version with all options and settings that the adapter uses; `None` if any version has them.
    pub minimum: Option<AgentVersion>,
    pub cost: CostReport,
    /// Files of a repository that make the agent start programs, or give it more permissions.
    pub brings: &'static [&'static str],
    /// Whether the agent has an option to ignore those files, which its adapter then uses.
    pub can_ignore: bool,
    /// Variables that make the agent ask for permission, with ACP.
    pub env: &'static [(&'static str, &'static str)],
    /// The agent's modes for read, edit and full permissions, with ACP.
    pub modes: Option<[&'static str; 3]>,
    /// Whether the agent runs commands in a sandbox of its own, unless its permissions are full.
    pub has_sandbox: bool,
    /// Names in lower case of files and directories that the agent reads as instructions, anywhere in a repository.
    pub instructions: &'static [&'static str],
    /// The default provider of its models, by its name in OpenTelemetry. The agent may be configured for another one.
    pub provider: Option<&'static str>,
    pub login: &'static AgentLogin,
    /// The arguments with which the agent reports its login by its exit code, 0 or 1, and a part of its text for 1.
    pub login_status: Option<(&'static [&'static str], &'static str)>,
    /// The agent loses a conversation that is resumed in the minute of the clock in which it began, so hookloop waits
    /// for the end of that minute.
    pub resumes_after_minute: bool,
    /// The argument with which the agent prints a conversation with the usage of each request. Its own report covers
    /// only the last request of a turn.
    pub export: Option<&'static str>,
}

/// Signs that an agent is logged in. An adapter uses the login of the agent that it adapts.
#[derive(Debug)]
pub struct AgentLogin {
    /// Files below the user's home directory.
    pub files: &'static [&'static str],
    /// A variable that names the directory of the agent's settings, and the file in it.
    pub elsewhere: (&'static str, &'static str),
    /// Variables with a key, or with a choice of a provider. The first one is proposed to the user.
    pub variables: &'static [&'static str],
    /// The command that logs the agent in.
    pub command: &'static str,
    /// Signs of a provider of the user's own, which needs no login.
    pub own_provider: Option<&'static OwnProviderSigns>,
}

/// Signs in an agent's settings that the user has configured a provider.
#[derive(Debug)]
pub struct OwnProviderSigns {
    /// The variable that names the directory of the settings, and the directory below the home directory without it.
    pub directory: (&'static str, &'static str),
    pub file: &'static str,
    /// Words in the file or in the agent's arguments.
    pub words: &'static [&'static str],
}

const CLAUDE_LOGIN: AgentLogin = AgentLogin {
    files: &[".claude/.credentials.json"],
    elsewhere: ("CLAUDE_CONFIG_DIR", ".credentials.json"),
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ],
    command: "claude auth login",
    own_provider: None,
};

const CODEX_LOGIN: AgentLogin = AgentLogin {
    files: &[".codex/auth.json"],
    elsewhere: ("CODEX_HOME", "auth.json"),
    variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
    command: "codex login",
    own_provider: Some(&OwnProviderSigns {
        directory: ("CODEX_HOME", ".codex"),
        file: "config.toml",
        words: &["model_provider", "--oss"],
    }),
};

const OPENCODE_LOGIN: AgentLogin = AgentLogin {
    files: &[".local/share/opencode/auth.json"],
    elsewhere: ("XDG_DATA_HOME", "opencode/auth.json"),
    variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
    command: "opencode auth login",
    own_provider: None,
};

const GEMINI_LOGIN: AgentLogin = AgentLogin {
    files: &[".gemini/oauth_creds.json", ".gemini/.env"],
    elsewhere: ("GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
    variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
    command: "gemini",
    own_provider: None,
};

const CLAUDE_INSTRUCTIONS: &[&str] = &["claude.md", "claude.local.md", ".claude", ".mcp.json"];
const CODEX_INSTRUCTIONS: &[&str] = &["agents.md", "agents.override.md", ".codex"];

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

/// Without this setting opencode asks for no permission.
const OPENCODE_ASKS: &str = r#"{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask","task":"ask"}"#;

pub const AGENT_PROFILES: [AgentProfile; 6] = [
    AgentProfile {
        name: "claude",
        dialect: AgentDialect::Claude,
        program: &["claude"],
        package: "@anthropic-ai/claude-code",
        // `--permission-prompts`
        minimum: Some(AgentVersion(2, 1, 259)),
        cost: CostReport::Always,
        brings: OF_CLAUDE,
        can_ignore: true,
        env: &[],
        modes: None,
        has_sandbox: false,
        instructions: CLAUDE_INSTRUCTIONS,
        provider: Some("anthropic"),
        login: &CLAUDE_LOGIN,
        login_status: Some((&["auth", "status"], "\"loggedIn\": false")),
        resumes_after_minute: false,
        export: None,
    },
    AgentProfile {
        name: "codex",
        dialect: AgentDialect::Codex,
        program: &["codex"],
        package: "@openai/codex",
        // `mcp_servers.*.default_tools_approval_mode`
        minimum: Some(AgentVersion(0, 122, 0)),
        cost: CostReport::Never,
        // Codex itself asks its user before it reads a repository's settings.
        brings: &[],
        can_ignore: true,
        env: &[],
        modes: None,
        has_sandbox: true,
        instructions: CODEX_INSTRUCTIONS,
        provider: Some("openai"),
        login: &CODEX_LOGIN,
        login_status: Some((&["login", "status"], "Not logged in")),
        resumes_after_minute: false,
        export: None,
    },
    AgentProfile {
        name: "opencode",
        dialect: AgentDialect::Acp,
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
        has_sandbox: false,
        instructions: &["agents.md", "opencode.json", "opencode.jsonc", ".opencode"],
        provider: None,
        login: &OPENCODE_LOGIN,
        login_status: None,
        resumes_after_minute: false,
        export: Some("export"),
    },
    AgentProfile {
        name: "gemini",
        dialect: AgentDialect::Acp,
        program: &["gemini", "--acp"],
        package: "@google/gemini-cli",
        // `--acp`
        minimum: Some(AgentVersion(0, 33, 0)),
        cost: CostReport::Never,
        brings: &[".gemini/settings.json", ".gemini/extensions", ".gemini/.env", ".env"],
        can_ignore: false,
        env: &[],
        modes: Some(["default", "default", "default"]),
        has_sandbox: false,
        instructions: &["gemini.md", ".gemini"],
        provider: Some("gcp.gemini"),
        login: &GEMINI_LOGIN,
        login_status: None,
        // google-gemini/gemini-cli#28775. The conversation is lost at the second resume anyway, unless the settings have
        // `general.sessionRetention.enabled: false`.
        resumes_after_minute: true,
        export: None,
    },
    AgentProfile {
        name: "codex-acp",
        dialect: AgentDialect::Acp,
        program: &["codex-acp"],
        package: "@agentclientprotocol/codex-acp",
        minimum: None,
        cost: CostReport::Never,
        // codex-acp configures Codex to trust every directory.
        brings: &[".codex"],
        can_ignore: false,
        env: &[],
        modes: Some(["read-only", "workspace-write", "agent-full-access"]),
        has_sandbox: true,
        instructions: CODEX_INSTRUCTIONS,
        provider: Some("openai"),
        login: &CODEX_LOGIN,
        login_status: None,
        resumes_after_minute: false,
        export: None,
    },
    AgentProfile {
        name: "claude-agent-acp",
        dialect: AgentDialect::Acp,
        program: &["claude-agent-acp"],
        package: "@agentclientprotocol/claude-agent-acp",
        minimum: None,
        cost: CostReport::Always,
        brings: OF_CLAUDE,
        can_ignore: false,
        env: &[],
        modes: Some(["default", "acceptEdits", "bypassPermissions"]),
        has_sandbox: false,
        instructions: CLAUDE_INSTRUCTIONS,
        provider: Some("anthropic"),
        login: &CLAUDE_LOGIN,
        login_status: None,
        resumes_after_minute: false,
        export: None,
    },
];

impl AgentProfile {
    /// Returns the command that installs or upgrades the agent. Without `@latest` npm takes the newest version whose
    /// `engines` fit this machine's Node, which may be too old for hookloop.
    pub fn install_command(&self) -> String {
        format!("npm install -g {}@latest", self.package)
    }
}

/// Returns the command that installs a first agent, and the names of the other known agents.
pub fn any_install_command() -> (String, String) {
    let [first, others @ ..] = &AGENT_PROFILES;
    let others: Vec<&str> = others.iter().map(|known| known.name).collect();
    (first.install_command(), others.join(", "))
}

pub fn known(name: &str) -> Option<&'static AgentProfile> {
    AGENT_PROFILES.iter().find(|known| known.name == name)
}

/// The three numbers of a release. A suffix is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentVersion(pub u32, pub u32, pub u32);

impl AgentVersion {
    /// Returns the first version in a text, such as `2.1.325 (Claude Code)` or `codex-cli 0.166.0`.
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
