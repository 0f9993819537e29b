//! The commands that an agent may run: by its permissions, and by the rules that `allowed_tools` adds.
//!
//! The start of a run and the prompt both describe [`CommandAccess`], so that they agree.

use std::fmt;

use hookloop_config::agents::profile::CommandRules;
use hookloop_config::agents::{AgentDialect, AgentPermissions, AgentSettings};
use hookloop_core::excerpt::{code_span, first_names};

/// The kind of tools of the Agent Client Protocol that run commands.
pub(crate) const ACP_EXECUTE: &str = "execute";
/// Rules for the tool of Claude Code that runs commands.
const BASH: &str = "Bash";
/// The most commands that a sentence names.
const NAMED_MAX: usize = 10;

/// The commands that an agent may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandAccess {
    All,
    /// All commands, in the agent's own sandbox.
    Sandboxed {
        may_write: bool,
    },
    /// Only these commands, as the agent's rules name them.
    Some(Vec<String>),
    None,
}

impl CommandAccess {
    /// Returns the commands that an agent may run; `None` for a program whose rules hookloop does not know.
    pub fn of(settings: &AgentSettings) -> Option<CommandAccess> {
        let AgentSettings { dialect, permissions, allowed_tools, .. } = settings;
        let has_sandbox = settings.known().is_some_and(|known| known.has_sandbox);
        let may_write = *permissions == AgentPermissions::Edit;
        let access = match (dialect.command_rules(), permissions) {
            (CommandRules::Unknown, _) => return None,
            (_, AgentPermissions::Full) => CommandAccess::All,
            (CommandRules::OwnSandbox, _) => CommandAccess::Sandboxed { may_write },
            (CommandRules::ToolRules, _) => of_rules(allowed_tools),
            (CommandRules::ToolKinds, _)
                if allowed_tools.iter().any(|kind| kind == ACP_EXECUTE) =>
            {
                CommandAccess::All
            }
            // The agent asks only for commands that are to leave its sandbox.
            (CommandRules::ToolKinds, _) if has_sandbox => CommandAccess::Sandboxed { may_write },
            (CommandRules::ToolKinds, _) => CommandAccess::None,
        };
        Some(access)
    }
}

/// Reads the rules of Claude Code: `Bash` allows every command, `Bash(npm test)` this one, `Bash(npm test:*)` those
/// with this prefix.
fn of_rules(allowed_tools: &[String]) -> CommandAccess {
    if allowed_tools.iter().any(|rule| matches!(rule.as_str(), BASH | "Bash(*)" | "Bash(:*)")) {
        return CommandAccess::All;
    }
    let commands: Vec<String> =
        allowed_tools.iter().filter_map(|rule| command_of_rule(rule)).collect();
    if commands.is_empty() { CommandAccess::None } else { CommandAccess::Some(commands) }
}

fn command_of_rule(rule: &str) -> Option<String> {
    let inner = rule.strip_prefix(BASH)?.strip_prefix('(')?.strip_suffix(')')?;
    Some(match inner.strip_suffix(":*") {
        Some(start) => format!("{start} …"),
        None => inner.to_owned(),
    })
}

/// Returns the rule of Claude Code that allows exactly this command; `None` if no rule can name it.
pub fn claude_rule(command: &str) -> Option<String> {
    // Commas and parentheses end a rule, `:*` matches more, and other signs have a meaning for a shell.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./=@%+:".contains(&byte);
    let is_named = !command.trim().is_empty() && command.bytes().all(is_plain);
    (is_named && !command.contains(":*")).then(|| format!("{BASH}({})", command.trim()))
}

impl CommandAccess {
    /// Returns a sentence for the user about an agent of that name.
    pub fn for_user(&self, agent: &str) -> String {
        match self {
            CommandAccess::All => format!("{agent} may run every command"),
            CommandAccess::Sandboxed { may_write: true } => {
                format!(
                    "{agent} may change the project's files and run commands in its own sandbox"
                )
            }
            CommandAccess::Sandboxed { may_write: false } => {
                format!("{agent} may run commands in its own sandbox, which refuses to write")
            }
            CommandAccess::Some(commands) => {
                format!(
                    "{agent} may change the project's files and run only: {}",
                    commands.join(", ")
                )
            }
            CommandAccess::None => format!(
                "{agent} may change the project's files and run no commands: hookloop runs the gates"
            ),
        }
    }
}

/// Returns a sentence for the agent.
impl fmt::Display for CommandAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandAccess::All => f.write_str("You may run commands."),
            CommandAccess::Sandboxed { may_write: true } => {
                f.write_str("You may run commands in your sandbox, without network.")
            }
            CommandAccess::Sandboxed { may_write: false } => {
                f.write_str("You may run commands that read. Your sandbox refuses to write files.")
            }
            CommandAccess::Some(commands) => {
                let named: Vec<String> =
                    commands.iter().map(|command| code_span(command)).collect();
                let named = first_names(&named, NAMED_MAX);
                write!(f, "Of commands you may run only {named}. Others are refused.")
            }
            CommandAccess::None => f.write_str(
                "You may not run commands: they are refused. hookloop runs the gates for you.",
            ),
        }
    }
}

/// The permissions of an agent in words for the user, to put behind `may`.
#[derive(Debug)]
pub struct AgentPowers<'s>(pub &'s AgentSettings);

impl AgentPowers<'_> {
    /// Returns the allowed tools that run no commands.
    fn other_tools(&self) -> Vec<&str> {
        let AgentSettings { dialect, allowed_tools, .. } = self.0;
        let runs_commands = |tool: &str| match dialect.command_rules() {
            CommandRules::ToolRules => tool == BASH || command_of_rule(tool).is_some(),
            CommandRules::ToolKinds => tool == ACP_EXECUTE,
            CommandRules::Unknown | CommandRules::OwnSandbox => false,
        };
        allowed_tools.iter().map(String::as_str).filter(|tool| !runs_commands(tool)).collect()
    }
}

impl fmt::Display for AgentPowers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0;
        match (settings.dialect, settings.permissions) {
            (AgentDialect::Command, _) => {
                return f.write_str("do what the program does: hookloop does not restrict it");
            }
            (AgentDialect::Scripted, _) => return f.write_str("play the turns in its file"),
            (_, AgentPermissions::Full) => {
                return f.write_str("do EVERYTHING that you can, without being asked");
            }
            (_, AgentPermissions::Read | AgentPermissions::Edit) => {}
        }
        let is_known = settings.base.is_some();
        // The requests of an unknown agent are not known.
        let unasked = if is_known { "" } else { "do what it does not ask for, " };
        let is_reader = settings.permissions == AgentPermissions::Read;
        let files = if is_reader { "read files" } else { "read and change files here" };
        match CommandAccess::of(settings) {
            Some(CommandAccess::All) => write!(f, "{unasked}{files}, and run every command")?,
            Some(CommandAccess::Sandboxed { may_write: true }) => {
                f.write_str("change files here and run commands, in its sandbox without network")?;
            }
            Some(CommandAccess::Sandboxed { may_write: false }) => {
                f.write_str("read files and run commands that change nothing, in its sandbox")?;
            }
            Some(CommandAccess::Some(commands)) => {
                let named = first_names(&commands, NAMED_MAX);
                write!(f, "{unasked}{files}, and run only: {named}")?;
            }
            Some(CommandAccess::None) if is_known && is_reader => {
                f.write_str("read files; it may not change any or run commands")?;
            }
            Some(CommandAccess::None) if is_known => {
                write!(f, "{files}; it may not run commands")?;
            }
            Some(CommandAccess::None) | None => write!(f, "{unasked}and {files}")?,
        }
        match self.other_tools().as_slice() {
            [] => Ok(()),
            tools => write!(f, "; allowed tools: {}", tools.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(
        name: &str,
        permissions: AgentPermissions,
        allowed_tools: &[&str],
    ) -> AgentSettings {
        let allowed_tools = allowed_tools.iter().map(ToString::to_string).collect();
        let settings = AgentSettings::of_name(name).unwrap();
        AgentSettings { permissions, allowed_tools, ..settings }
    }

    fn access(
        name: &str,
        permissions: AgentPermissions,
        allowed_tools: &[&str],
    ) -> Option<CommandAccess> {
        CommandAccess::of(&settings(name, permissions, allowed_tools))
    }

    #[test]
    fn only_a_single_plain_command_becomes_an_allow_rule() {
        assert_eq!(claude_rule("npm test").as_deref(), Some("Bash(npm test)"));
        assert_eq!(
            claude_rule("cargo test --workspace").as_deref(),
            Some("Bash(cargo test --workspace)")
        );
        for command in ["", " ", "a, b", "a)", "a:*", "a && b", "echo $HOME", "a\nb", "a `b`"] {
            assert_eq!(claude_rule(command), None, "{command}");
        }
    }

    #[test]
    fn agent_powers_name_the_allowed_commands() {
        use AgentPermissions::{Edit, Full, Read};
        let check = |name, permissions, allowed_tools: &[&str], expected: &str| {
            let settings = settings(name, permissions, allowed_tools);
            assert_eq!(AgentPowers(&settings).to_string(), expected, "{name}");
        };
        check("claude", Edit, &[], "read and change files here; it may not run commands");
        check("claude", Read, &[], "read files; it may not change any or run commands");
        let rules = ["Bash(npm test)", "Bash(go test:*)", "WebFetch"];
        let some = "read and change files here, and run only: npm test, go test …; allowed tools: \
                    WebFetch";
        check("claude", Edit, &rules, some);
        check("claude", Edit, &["Bash"], "read and change files here, and run every command");
        check("claude", Full, &["Bash"], "do EVERYTHING that you can, without being asked");
        let sandbox = "change files here and run commands, in its sandbox without network";
        check("codex", Edit, &[], sandbox);
        check("codex-acp", Edit, &[], sandbox);
        let read = "read files; it may not change any or run commands; allowed tools: fetch";
        check("gemini", Read, &["fetch"], read);
        check("acp:mine", Read, &[], "do what it does not ask for, and read files");
        let all = "do what it does not ask for, read and change files here, and run every command";
        check("acp:mine", Edit, &["execute"], all);
    }

    #[test]
    fn each_agent_may_run_the_commands_that_its_permissions_allow() {
        use AgentPermissions::{Edit, Full, Read};
        let some = |commands: &[&str]| {
            Some(CommandAccess::Some(commands.iter().map(ToString::to_string).collect()))
        };
        assert_eq!(access("claude", Edit, &[]), Some(CommandAccess::None));
        assert_eq!(access("claude", Edit, &["Bash(npm test)"]), some(&["npm test"]));
        assert_eq!(access("claude", Read, &["Bash(go test:*)", "WebFetch"]), some(&["go test …"]));
        assert_eq!(access("claude", Edit, &["Bash"]), Some(CommandAccess::All));
        assert_eq!(access("claude", Full, &[]), Some(CommandAccess::All));
        let sandboxed = |may_write| Some(CommandAccess::Sandboxed { may_write });
        assert_eq!(access("codex", Edit, &[]), sandboxed(true));
        assert_eq!(access("codex", Read, &[]), sandboxed(false));
        assert_eq!(access("codex-acp", Edit, &[]), sandboxed(true));
        assert_eq!(access("codex-acp", Read, &["fetch"]), sandboxed(false));
        assert_eq!(access("codex-acp", Edit, &["execute"]), Some(CommandAccess::All));
        assert_eq!(access("opencode", Edit, &[]), Some(CommandAccess::None));
        assert_eq!(access("gemini", Edit, &["execute"]), Some(CommandAccess::All));
        assert_eq!(access("command:x", Full, &[]), None);
    }
}
