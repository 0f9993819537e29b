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

/// An agent: one that hookloop knows, with other settings, or any program.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentEntry {
    /// Which it is: `claude`, `codex`, `opencode`, `gemini`, `codex-acp`, `claude-agent-acp`, `acp` for any
    /// other that speaks the Agent Client Protocol, `command` for any program. The name, if it is not given.
    kind: Option<Located<String>>,
    /// What to start, if it is not what is on the PATH: a line for `sh`, or a program and its arguments as
    /// a list.
    command: Option<Located<OneOrMany>>,
    model: Option<String>,
    /// Further arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Variables that it has beside yours: names with values, or the names of secrets.
    env: Option<Located<EnvEntries>>,
    /// What it may do without being asked: `read`, `edit` or (in your own configuration only) `full`;
    /// `edit` if it is not given.
    permissions: Option<Located<PermissionsEntry>>,
    /// Hooks of `before_submit` and `after_submit` for its work, instead of those of the task's type or the project.
    #[serde(default)]
    hooks: HooksByPoint,
    /// What it may do beside: for `claude` rules such as `Bash(cargo test:*)`, with ACP kinds of tools such
    /// as `execute`.
    #[serde(default)]
    allow: Vec<String>,
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
        (settings.model, settings.args, settings.allow) = (self.model, self.args, self.allow);
        Ok(settings)
    }

    fn base(&self, name: &str, at: Location) -> Result<AgentSettings, ConfigComplaint> {
        let (kind, at) = match &self.kind {
            Some(kind) => (kind.value.as_str(), kind.at),
            None => (name, at),
        };
        if let Some(known) = known(kind) {
            return Ok(AgentSettings::of_known(known));
        }
        let dialect = match kind {
            "acp" => AgentDialect::Acp,
            "command" => AgentDialect::Command,
            _ => {
                let names: Vec<&str> = AGENT_PROFILES.iter().map(|known| known.name).collect();
                let names = names.join("`, `");
                let message = format!("`kind` is one of `{names}`, `acp` and `command`");
                return Err(ConfigComplaint::new(at, message));
            }
        };
        if self.command.is_none() {
            return Err(ConfigComplaint::new(at, format!("`kind: {kind}` needs a `command`")));
        }
        Ok(AgentSettings { dialect, base: None, ..AgentSettings::of_known(&AGENT_PROFILES[0]) })
    }
}

/// Which turns go on in the conversation of the turn before.
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
