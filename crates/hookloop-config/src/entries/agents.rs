//! The parts of the configuration that are about agents.

use std::collections::BTreeMap;

use hookloop_core::hook::HookSource;
use hookloop_core::options::EnvEntry;
use hookloop_core::session::{AgentFallback, ConversationPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::hook_entry::HooksByPoint;
use super::values::{self, EnvEntries, Located, OneOrMany};
use crate::agents::profile::{AGENT_PROFILES, known};
use crate::agents::{AgentDialect, AgentPermissions, AgentProgram, AgentSettings};
use crate::yaml::{ConfigComplaint, check_name};

/// Agents by their names.
pub(crate) type AgentEntries = BTreeMap<String, Spanned<AgentEntry>>;

/// The default number of failed turns in a row after which the next agent is asked.
const FALLBACK_AFTER: u32 = 3;

/// Agent: a known one with other settings, or any program
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentEntry {
    /// Type of the agent: `claude`, `codex`, `opencode`, `gemini`, `codex-acp`, `claude-agent-acp`, `acp` for another
    /// agent with the Agent Client Protocol, or `command` for any program [default: the agent's name]
    #[serde(rename = "type")]
    agent_type: Option<Located<String>>,
    /// Command that starts the agent: a shell command, or a list of a program and its arguments
    /// [default: the program of the type, from the PATH]
    command: Option<Located<OneOrMany>>,
    /// Model of the agent [default: the agent's own choice]
    model: Option<String>,
    /// Further arguments of the command [default: none]
    #[serde(default)]
    args: Vec<String>,
    /// Environment variables beside yours: names with values, or a list of names of secrets [default: none]
    env: Option<Located<EnvEntries>>,
    /// Permissions of the agent without a prompt: `read`, `edit`, or `full` in your own configuration only
    /// [default: `edit`]
    permissions: Option<Located<PermissionsEntry>>,
    /// Hooks of `before_submit` and `after_submit` for the agent's work, instead of those of the task's type or the
    /// project [default: none]
    #[serde(default)]
    hooks: HooksByPoint,
    /// Tools that the agent may use beside its permissions: for `claude` rules such as `Bash(cargo test:*)`, with ACP
    /// kinds of tools such as `execute` [default: none]
    #[serde(default)]
    allowed_tools: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PermissionsEntry {
    Read,
    Edit,
    Full,
}

impl From<PermissionsEntry> for AgentPermissions {
    fn from(entry: PermissionsEntry) -> AgentPermissions {
        match entry {
            PermissionsEntry::Read => AgentPermissions::Read,
            PermissionsEntry::Edit => AgentPermissions::Edit,
            PermissionsEntry::Full => AgentPermissions::Full,
        }
    }
}

/// Reads the agents of a file.
pub(crate) fn read(
    entries: AgentEntries,
    source: HookSource,
) -> Result<Vec<AgentSettings>, ConfigComplaint> {
    let read = |(name, entry): (String, Spanned<AgentEntry>)| {
        check_name(&name, entry.referenced)?;
        entry.value.read(name, entry.referenced, source)
    };
    entries.into_iter().map(read).collect()
}

/// Takes the hooks that agents have of their own.
pub(crate) fn own_hooks(entries: &mut AgentEntries) -> Vec<(String, HooksByPoint)> {
    let take = |(name, entry): (&String, &mut Spanned<AgentEntry>)| {
        (name.clone(), std::mem::take(&mut entry.value.hooks))
    };
    entries.iter_mut().map(take).collect()
}

impl AgentEntry {
    fn read(
        self,
        name: String,
        at: Location,
        source: HookSource,
    ) -> Result<AgentSettings, ConfigComplaint> {
        let mut settings = self.base(&name, at)?;
        if let Some(Located { value, .. }) = self.command {
            settings.program = match value {
                OneOrMany::One(line) => AgentProgram::Line(line),
                OneOrMany::Many(words) => AgentProgram::Words(words),
            };
        }
        if let Some(Located { value, at }) = self.permissions {
            settings.permissions = match value {
                PermissionsEntry::Full if source == HookSource::Project => {
                    let message = "a repository lets no agent do everything: \
                        write it in your own configuration, or use --permissions full";
                    return Err(ConfigComplaint::new(at, message));
                }
                permissions => permissions.into(),
            };
        }
        // A user's own file may set any variable.
        let read = match source {
            HookSource::Project => values::environment,
            HookSource::User | HookSource::Operator | HookSource::Builtin => values::variables,
        };
        let env = self.env.map(read).transpose()?.unwrap_or_default();
        for entry in env {
            match entry {
                EnvEntry::Set { name, value } => settings.env.push((name, value)),
                // The agent has the user's variables anyway; only secrets have to be named.
                EnvEntry::Inherited(name) => settings.named.push(name),
            }
        }
        (settings.name, settings.source) = (name, source);
        settings.model = self.model;
        settings.args = self.args;
        settings.allowed_tools = self.allowed_tools;
        Ok(settings)
    }

    fn base(&self, name: &str, at: Location) -> Result<AgentSettings, ConfigComplaint> {
        let (agent_type, at) = match &self.agent_type {
            Some(named) => (named.value.as_str(), named.at),
            None => (name, at),
        };
        if let Some(known) = known(agent_type) {
            return Ok(AgentSettings::of_known(known));
        }
        let dialect = match agent_type {
            "acp" => AgentDialect::Acp,
            "command" => AgentDialect::Command,
            _ => {
                let names: Vec<&str> = AGENT_PROFILES.iter().map(|known| known.name).collect();
                let names = names.join("`, `");
                let message = format!("`type` is one of `{names}`, `acp` and `command`");
                return Err(ConfigComplaint::new(at, message));
            }
        };
        if self.command.is_none() {
            let message = format!("`type: {agent_type}` needs a `command`");
            return Err(ConfigComplaint::new(at, message));
        }
        Ok(AgentSettings { dialect, base: None, ..AgentSettings::of_known(&AGENT_PROFILES[0]) })
    }
}

/// Turns that continue the conversation of the previous turn
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConversationEntry {
    Fresh,
    Feedback,
    Continue,
}

impl From<ConversationEntry> for ConversationPolicy {
    fn from(entry: ConversationEntry) -> ConversationPolicy {
        match entry {
            ConversationEntry::Fresh => ConversationPolicy::Fresh,
            ConversationEntry::Feedback => ConversationPolicy::Feedback,
            ConversationEntry::Continue => ConversationPolicy::Continue,
        }
    }
}

/// Reads the name of an agent. A repository defines agents under `agents`, where a person can trust them.
pub(crate) fn agent(named: Located<String>) -> Result<String, ConfigComplaint> {
    let Located { value: name, at } = named;
    match name.contains(':') {
        true => {
            let message = format!("`{name}`: name an agent here, and define it under `agents`");
            Err(ConfigComplaint::new(at, message))
        }
        false => Ok(name),
    }
}

/// Reads the fallback agents, which replace an agent that keeps failing.
pub(crate) fn fallback(
    named: Located<OneOrMany>,
    after: Option<u32>,
) -> Result<AgentFallback, ConfigComplaint> {
    let at = named.at;
    let names = named.value.into_list().into_iter();
    let agents = names.map(|value| agent(Located { value, at })).collect::<Result<_, _>>()?;
    Ok(AgentFallback { agents, after: after.unwrap_or(FALLBACK_AFTER).max(1) })
}
