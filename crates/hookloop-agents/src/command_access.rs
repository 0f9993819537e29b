//! The commands that an agent may run: by its permissions, and by the rules that `allowed_tools` adds.

use std::fmt;

use hookloop_config::agents::profile::CommandRules;
use hookloop_config::agents::{AgentPermissions, AgentSettings};
use hookloop_core::excerpt::first_names;

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
        let access = match (dialect.command_rules(), permissions) {
            (CommandRules::Unknown, _) => return None,
            (_, AgentPermissions::Full) => CommandAccess::All,
            (CommandRules::OwnSandbox, permissions) => {
                CommandAccess::Sandboxed { may_write: *permissions == AgentPermissions::Edit }
            }
            (CommandRules::ToolRules, _) => of_rules(allowed_tools),
            (CommandRules::ToolKinds, _)
                if allowed_tools.iter().any(|kind| kind == ACP_EXECUTE) =>
            {
                CommandAccess::All
            }
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
    let command = |rule: &String| {
        let inner = rule.strip_prefix(BASH)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(match inner.strip_suffix(":*") {
            Some(start) => format!("{start} …"),
            None => inner.to_owned(),
        })
    };
    let commands: Vec<String> = allowed_tools.iter().filter_map(command).collect();
    if commands.is_empty() { CommandAccess::None } else { CommandAccess::Some(commands) }
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
                    commands.iter().map(|command| format!("`{command}`")).collect();
                let named = first_names(&named, NAMED_MAX);
                write!(f, "Of commands you may run only {named}. Others are refused.")
            }
            CommandAccess::None => f.write_str(
                "You may not run commands: they are refused. hookloop runs the gates for you.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(
        name: &str,
        permissions: AgentPermissions,
        allowed_tools: &[&str],
    ) -> Option<CommandAccess> {
        let allowed_tools = allowed_tools.iter().map(ToString::to_string).collect();
        let settings = AgentSettings::of_name(name).unwrap();
        CommandAccess::of(&AgentSettings { permissions, allowed_tools, ..settings })
    }

    #[test]
    fn a_rule_names_one_command_or_is_none() {
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
        assert_eq!(access("opencode", Edit, &[]), Some(CommandAccess::None));
        assert_eq!(access("gemini", Edit, &["execute"]), Some(CommandAccess::All));
        assert_eq!(access("command:x", Full, &[]), None);
    }
}
