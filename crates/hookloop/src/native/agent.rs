//! The agents with native hooks: the places of their settings, their names for events, their guarantees.

use std::path::{Path, PathBuf};

use super::command_line::{SUBCOMMAND, quoted};
use super::settings::SettingsEntry;

/// Gates may run a whole test suite, within hookloop's own limits. The agent's limit is only for a hookloop that hangs.
const TIMEOUT_S: u64 = 3600;
/// Codex allows no more at the end of a session, and warns about hooks with more.
const CODEX_END_TIMEOUT_S: u64 = 3;
const MS_PER_S: u64 = 1000;
/// Claude Code stops after this number of blocks in a row.
const CLAUDE_BLOCKS_MAX: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NativeAgent {
    Claude,
    Codex,
    Gemini,
}

/// Whose sessions the hooks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallScope {
    Project,
    User,
}

impl InstallScope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            InstallScope::Project => "project",
            InstallScope::User => "user",
        }
    }
}

/// The directories of the agents' settings, from the environment.
#[derive(Debug)]
pub(crate) struct AgentHomes {
    pub(crate) home: Option<PathBuf>,
    pub(crate) claude: Option<PathBuf>,
    pub(crate) codex: Option<PathBuf>,
    /// The directory that has `.gemini` in it.
    pub(crate) gemini: Option<PathBuf>,
}

impl NativeAgent {
    /// In a hook's environment: the directory that the agent was started in.
    pub(crate) fn directory_variable(self) -> Option<&'static str> {
        match self {
            NativeAgent::Claude => Some("CLAUDE_PROJECT_DIR"),
            NativeAgent::Gemini => Some("GEMINI_PROJECT_DIR"),
            NativeAgent::Codex => None,
        }
    }

    pub(crate) const ALL: [NativeAgent; 3] =
        [NativeAgent::Claude, NativeAgent::Codex, NativeAgent::Gemini];

    pub(crate) fn name(self) -> &'static str {
        match self {
            NativeAgent::Claude => "claude",
            NativeAgent::Codex => "codex",
            NativeAgent::Gemini => "gemini",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<NativeAgent> {
        NativeAgent::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// Returns the directory of a project's settings.
    pub(crate) fn project_directory(self, root: &Path) -> PathBuf {
        root.join(format!(".{}", self.name()))
    }

    /// Returns the directory of a user's settings.
    pub(crate) fn user_directory(self, homes: &AgentHomes) -> Option<PathBuf> {
        let home = || homes.home.as_ref().map(|home| self.project_directory(home));
        match self {
            NativeAgent::Claude => homes.claude.clone().or_else(home),
            NativeAgent::Codex => homes.codex.clone().or_else(home),
            NativeAgent::Gemini => {
                homes.gemini.as_ref().map(|home| self.project_directory(home)).or_else(home)
            }
        }
    }

    pub(crate) fn settings_file(self) -> &'static str {
        match self {
            NativeAgent::Claude | NativeAgent::Gemini => "settings.json",
            NativeAgent::Codex => "hooks.json",
        }
    }

    /// Returns the events that hookloop needs, by the agent's names.
    fn events(self) -> [&'static str; 4] {
        match self {
            NativeAgent::Claude | NativeAgent::Codex => {
                ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
            }
            NativeAgent::Gemini => ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"],
        }
    }

    /// Returns the entries for a hookloop that `program` starts.
    pub(crate) fn entries(self, program: &str) -> Vec<SettingsEntry> {
        let entry = |event| SettingsEntry {
            event,
            command: self.command(program, event),
            timeout: self.timeout(event),
        };
        self.events().into_iter().map(entry).collect()
    }

    fn command(self, program: &str, event: &str) -> String {
        let line = format!("{} {SUBCOMMAND} {event} --agent {}", quoted(program), self.name());
        match self {
            NativeAgent::Claude | NativeAgent::Codex => line,
            // Gemini reads every exit code above 1 as a refusal, even a shell's 127 if hookloop is missing.
            NativeAgent::Gemini => format!("{line} || exit 1"),
        }
    }

    fn timeout(self, event: &str) -> u64 {
        match (self, event) {
            (NativeAgent::Codex, "SessionEnd") => CODEX_END_TIMEOUT_S,
            (NativeAgent::Gemini, _) => TIMEOUT_S * MS_PER_S,
            _ => TIMEOUT_S,
        }
    }

    /// Returns the most times in a row that the agent lets a hook block its stop; `None` without such a limit.
    pub(crate) fn blocks_max(self) -> Option<u32> {
        match self {
            NativeAgent::Claude => Some(CLAUDE_BLOCKS_MAX),
            NativeAgent::Codex | NativeAgent::Gemini => None,
        }
    }

    /// Returns the command that gives the agent hookloop's tools.
    pub(crate) fn mcp_line(self) -> &'static str {
        match self {
            NativeAgent::Claude => "claude mcp add hookloop -- hookloop mcp",
            NativeAgent::Codex => "codex mcp add hookloop -- hookloop mcp",
            NativeAgent::Gemini => "gemini mcp add hookloop hookloop mcp",
        }
    }

    /// Returns the guarantees of hooks in the agent.
    pub(crate) fn terms(self) -> &'static [(HookForce, &'static str)] {
        match self {
            NativeAgent::Claude => &[
                (
                    HookForce::Enforced,
                    "stop gates: the agent can't end its turn while a gate blocks. The limit of hookloop \
                    (gate_retries, 5) applies before the agent's own limit, 8 blocks in a row",
                ),
                (
                    HookForce::Enforced,
                    "pending output and the current task, at the start and with each prompt",
                ),
                (
                    HookForce::Advisory,
                    "project settings: interactive sessions run no hooks until you trust the folder in Claude Code; \
                    `claude -p` does not ask",
                ),
                (
                    HookForce::Advisory,
                    "session_end: its hooks get 60 s, and do not run when the agent is killed",
                ),
                (
                    HookForce::Impossible,
                    "gates for a user who interrupts the agent or sets `disableAllHooks`",
                ),
            ],
            NativeAgent::Codex => &[
                (
                    HookForce::Enforced,
                    "stop gates, after you trust the hooks. Codex has no limit of its own; the limit of hookloop \
                    (gate_retries, 5) applies",
                ),
                (
                    HookForce::Enforced,
                    "pending output and the current task, at the start and with each prompt",
                ),
                (
                    HookForce::Advisory,
                    "untrusted hooks are skipped silently: start `codex` here and choose `Trust all`, or use `/hooks`; \
                    `codex exec` needs --dangerously-bypass-hook-trust. After each change of an entry, Codex asks again",
                ),
                (
                    HookForce::Advisory,
                    "project settings: the folder must be trusted too (`projects.\"…\".trust_level`)",
                ),
                (HookForce::Advisory, "session_end: its hooks are ended after 3 s"),
                (
                    HookForce::Impossible,
                    "gates for a user who interrupts the agent or revokes the trust",
                ),
            ],
            NativeAgent::Gemini => &[
                (
                    HookForce::Enforced,
                    "stop gates, as AfterAgent hooks. The limit of hookloop (gate_retries, 5) applies before Gemini's \
                    loop detector, which ends a turn of equal answers",
                ),
                (
                    HookForce::Enforced,
                    "pending output and the current task, at the start and with each prompt; Gemini writes < and > \
                    of this text as &lt; and &gt;",
                ),
                (
                    HookForce::Advisory,
                    "project settings: with folder trust on, Gemini reads none of them until you trust the folder",
                ),
                (HookForce::Advisory, "session_end: its hooks do not run when the agent is killed"),
                (
                    HookForce::Impossible,
                    "gates for a user who interrupts the agent or sets `hooksConfig.enabled: false`",
                ),
            ],
        }
    }
}

/// How far hooks reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookForce {
    Enforced,
    Advisory,
    Impossible,
}

impl HookForce {
    pub(crate) fn name(self) -> &'static str {
        match self {
            HookForce::Enforced => "enforced",
            HookForce::Advisory => "advisory",
            HookForce::Impossible => "impossible",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_line::program_of;
    use super::*;

    #[test]
    fn installed_hook_entries_are_recognized_by_their_command() {
        for agent in NativeAgent::ALL {
            for program in
                ["hookloop", "/opt/h/hookloop", "/home/a b/it's/hookloop", "/x/$y;`z`\"/hookloop"]
            {
                for entry in agent.entries(program) {
                    assert_eq!(program_of(&entry.command).as_deref(), Some(program), "{entry:?}");
                }
            }
        }
        for other in [
            "",
            "hookloop",
            "hookloop hook Stop",
            "hookloop run x --agent claude",
            "echo hookloop hook Stop --agent x",
            "myhookloop hook Stop --agent claude",
            "'hookloop hook Stop --agent claude",
        ] {
            assert_eq!(program_of(other), None, "{other}");
        }
    }
}
