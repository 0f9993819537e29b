//! Decides whether an agent may be started, given the settings that a repository contains for it.
//!
//! A clone may define agents, and may contain files that an agent reads: hooks, servers, permissions. None of them
//! counts because it is there. The user trusts content, as with hooks (see [`hookloop_hooks::trust`]). The content
//! is checked before each turn, because an agent may have written it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use hookloop_config::agents::profile::{AGENT_PROFILES, AgentProfile};
use hookloop_config::agents::{AgentPermissions, AgentProgram, AgentSettings};
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::policy::PolicyRefusal;
use hookloop_core::digest::sha256_hex;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookMetadata, HookSource};
use hookloop_core::options::HookOptions;
use hookloop_core::session::{AgentFault, FaultCause};
use hookloop_hooks::trust::{AgentGround, HookDefinition, SeenHook, TrustError};
use hookloop_process::find_program;
use serde_json::json;

use super::readiness::NotReady;

/// The most files of one agent that are read.
const FILES_MAX: usize = 1_000;
const FILE_MAX: u64 = 4 * 1024 * 1024;
const DEPTH_MAX: usize = 8;
/// The most directories above the project that are searched for its repository.
const ABOVE_MAX: usize = 32;

/// Why an agent is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentRefusal {
    #[error(transparent)]
    Unknown(#[from] hookloop_config::agents::NoSuchAgent),
    #[error("this repository defines the agent `{0}`, and you have not agreed to that")]
    Undefined(String),
    #[error(
        "this repository brings {} for {agent}, which {agent} would read, and you have not agreed to that",
        files.join(", ")
    )]
    Brought { agent: String, files: Vec<String> },
    #[error("there is no program `{program}` for the agent `{agent}`{}", installed(others))]
    Missing {
        agent: String,
        program: String,
        /// The command that installs it, if hookloop knows the agent.
        install: Option<String>,
        /// Agents that are installed and allowed.
        others: Vec<String>,
    },
    #[error("`{0}` is not a permission: `read`, `edit` or `full`")]
    Permissions(String),
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error(transparent)]
    Forbidden(#[from] PolicyRefusal),
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
}

impl AgentRefusal {
    /// Returns the command that removes the obstacle, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentRefusal::Undefined(_) | AgentRefusal::Brought { .. } => {
                Some("hookloop agents trust".to_owned())
            }
            AgentRefusal::Missing { install, .. } => install.clone(),
            AgentRefusal::NotReady(why) => Some(why.hint()),
            AgentRefusal::Forbidden(_) => Some("hookloop policy".to_owned()),
            AgentRefusal::Unknown(_)
            | AgentRefusal::Permissions(_)
            | AgentRefusal::Unreadable { .. } => None,
        }
    }

    /// Returns the fault that no further turn removes, if the error is one.
    pub fn fault(&self) -> Option<AgentFault> {
        match self {
            AgentRefusal::NotReady(why) => Some(why.fault()),
            AgentRefusal::Missing { others, .. } => {
                let remedy = match self.hint() {
                    Some(command) => format!("Run `{command}`"),
                    None => "Check the agent's command in your configuration".to_owned(),
                };
                let remedy = match others.first() {
                    Some(other) => format!("{remedy}, or use `--agent {other}`"),
                    None => remedy,
                };
                Some(AgentFault { cause: FaultCause::Missing, remedy })
            }
            _ => None,
        }
    }
}

/// Names the agents that could replace a missing one.
fn installed(others: &[String]) -> String {
    let options: Vec<String> = others.iter().map(|name| format!("`--agent {name}`")).collect();
    match options.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} is installed"),
        [first @ .., last] => format!("; {} and {last} are installed", first.join(", ")),
    }
}

/// The user's choices for an agent beside its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChoices {
    pub model: Option<String>,
    pub permissions: Option<String>,
}

/// An agent that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedAgent {
    pub settings: AgentSettings,
    /// Files of the repository that the agent is told to ignore.
    pub ignored: Vec<String>,
}

/// Returns the agent of that name as it may be started now, or the reason why it may not.
pub fn fit(
    rules: &EffectiveConfig,
    name: &str,
    wanted: &AgentChoices,
    ground: AgentGround<'_>,
) -> Result<AllowedAgent, AgentRefusal> {
    let mut settings = rules.agent(name)?;
    rules.policy.check_agent(&settings)?;
    if let Some(definition) = defined(ground.root, &settings)?
        && !ground.trust.has_agent(&definition)
    {
        return Err(AgentRefusal::Undefined(name.to_owned()));
    }
    if wanted.model.is_some() {
        settings.model.clone_from(&wanted.model);
    }
    if let Some(permissions) = &wanted.permissions {
        let wrong = |_| AgentRefusal::Permissions(permissions.clone());
        settings.permissions = permissions.parse().map_err(wrong)?;
        rules.policy.check_permissions(settings.permissions)?;
    }
    let mut ignored = Vec::new();
    if let Some(brought) = brought(ground.root, &settings)? {
        let files: Vec<String> = brought.scripts.keys().cloned().collect();
        let brings_nothing = rules.policy.no_repository_hooks();
        settings.takes_repository = brings_nothing.is_none() && ground.trust.has_agent(&brought);
        let can_ignore = settings.known().is_some_and(|known| known.can_ignore);
        match (settings.takes_repository, can_ignore, brings_nothing) {
            (true, ..) => {}
            (false, true, _) => ignored = files,
            (false, false, Some(at)) => {
                let what = format!("{name} would read {}", files.join(", "));
                return Err(PolicyRefusal { at: at.clone(), what }.into());
            }
            (false, false, None) => {
                return Err(AgentRefusal::Brought { agent: name.to_owned(), files });
            }
        }
    }
    if let Some(program) = settings.word()
        && !is_there(program, ground)
    {
        let install = settings.known().map(AgentProfile::install_command);
        let others = others_than(name, rules, ground);
        let (agent, program) = (name.to_owned(), program.to_owned());
        return Err(AgentRefusal::Missing { agent, program, install, others });
    }
    Ok(AllowedAgent { settings, ignored })
}

/// Returns the agents other than `name` that are installed, allowed by every policy and trusted.
fn others_than(name: &str, rules: &EffectiveConfig, ground: AgentGround<'_>) -> Vec<String> {
    let is_agreed = |settings: &AgentSettings| match defined(ground.root, settings) {
        Ok(definition) => definition.is_none_or(|definition| ground.trust.has_agent(&definition)),
        Err(_) => false,
    };
    let is_usable = |other: &String| {
        let Ok(settings) = rules.agent(other) else { return false };
        let is_installed = settings.word().is_some_and(|program| is_there(program, ground));
        let is_allowed = rules.policy.check_agent(&settings).is_ok();
        *other != name && is_installed && is_allowed && is_agreed(&settings)
    };
    present(rules, ground).into_iter().filter(is_usable).collect()
}

fn is_there(program: &str, ground: AgentGround<'_>) -> bool {
    match program.contains('/') {
        true => ground.root.join(program).is_file(),
        false => find_program(program, ground.path).is_some(),
    }
}

/// Returns the configured and the named agents, and the known ones that are installed.
pub fn present(rules: &EffectiveConfig, ground: AgentGround<'_>) -> Vec<String> {
    let named = rules.session.fallback.iter().flat_map(|fallback| &fallback.agents);
    let named = rules.session.agent.iter().chain(named).cloned();
    let configured = rules.agents.iter().map(|settings| settings.name.clone());
    let is_installed = |known: &&AgentProfile| is_there(known.program[0], ground);
    let installed = AGENT_PROFILES.iter().filter(is_installed);
    let installed = installed.map(|known| known.name.to_owned());
    let mut names = Vec::new();
    for name in configured.chain(named).chain(installed) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns everything that the user can trust: agents that the repository defines, and its files for known agents.
pub fn all(root: &Path, rules: &EffectiveConfig) -> Result<Vec<HookDefinition>, AgentRefusal> {
    let mut found = Vec::new();
    for settings in &rules.agents {
        found.extend(defined(root, settings)?);
    }
    for known in &AGENT_PROFILES {
        found.extend(brought(root, &AgentSettings::of_known(known))?);
    }
    Ok(found)
}

/// Returns the project files that an agent's command runs, and links that lead out of the project.
fn named(root: &Path, settings: &AgentSettings) -> Result<HookDefinition, AgentRefusal> {
    let program = match &settings.program {
        AgentProgram::Line(line) => CommandText::Shell(line.clone()),
        AgentProgram::Words(words) => CommandText::Exec([&words[..], &settings.args].concat()),
    };
    let hook = Hook {
        name: settings.name.clone(),
        points: Vec::new(),
        task_type: None,
        source: settings.source,
        priority: 0,
        enabled: true,
        metadata: HookMetadata::default(),
        handler: HookHandler::Command(program),
        options: HookOptions::default(),
    };
    let wrong = |error: TrustError| AgentRefusal::Unreadable {
        path: root.to_owned(),
        why: error.to_string(),
    };
    SeenHook::look(root, &hook).map(|seen| seen.definition).map_err(wrong)
}

/// Returns the definition of an agent by a repository, if it needs trust. Another model, or fewer permissions, needs
/// none.
fn defined(root: &Path, settings: &AgentSettings) -> Result<Option<HookDefinition>, AgentRefusal> {
    let is_tame = settings.args.is_empty()
        && settings.env.is_empty()
        && settings.named.is_empty()
        && settings.allowed_tools.is_empty()
        && settings.permissions <= AgentPermissions::default()
        && settings.known().is_some_and(|known| {
            // No other program may use the name of a known agent.
            let is_itself = known.name == settings.name
                || hookloop_config::agents::profile::known(&settings.name).is_none();
            is_itself
                && matches!(&settings.program, AgentProgram::Words(words) if words == known.program)
        });
    if settings.source != HookSource::Project || is_tame {
        return Ok(None);
    }
    let HookDefinition { scripts, links, .. } = named(root, settings)?;
    let command = match &settings.program {
        AgentProgram::Line(line) => json!({ "shell": line }),
        AgentProgram::Words(words) => json!({ "exec": words }),
    };
    let env = settings.env.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let env = env.chain(settings.named.iter().map(|name| (name.clone(), None)));
    let options = [
        ("type", settings.base.map(str::to_owned)),
        ("model", settings.model.clone()),
        ("permissions", Some(settings.permissions.name().to_owned())),
        // As lists, so that the boundaries between items count.
        ("args", (!settings.args.is_empty()).then(|| json!(settings.args).to_string())),
        (
            "allowed_tools",
            (!settings.allowed_tools.is_empty()).then(|| json!(settings.allowed_tools).to_string()),
        ),
    ];
    let options = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(Some(HookDefinition {
        scripts,
        links,
        what: command,
        env: env.collect(),
        options: options.collect(),
        ..HookDefinition::of_agent(format!("agent {}", settings.name))
    }))
}

/// Returns the files of the repository that the agent would read as settings.
fn brought(root: &Path, settings: &AgentSettings) -> Result<Option<HookDefinition>, AgentRefusal> {
    let Some(known) = settings.known() else { return Ok(None) };
    let mut files = BTreeMap::new();
    for directory in directories(root) {
        for name in known.brings {
            look(root, &directory.join(name), DEPTH_MAX, &mut files)?;
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    let name = format!("what the repository brings for {}", known.name);
    Ok(Some(HookDefinition { scripts: files, ..HookDefinition::of_agent(name) }))
}

/// Returns the project's directory and those above it in the same repository.
fn directories(root: &Path) -> Vec<PathBuf> {
    let all: Vec<&Path> = root.ancestors().take(ABOVE_MAX).collect();
    let top = all.iter().position(|directory| directory.join(".git").exists()).unwrap_or(0);
    all.into_iter().take(top + 1).map(Path::to_owned).collect()
}

fn look(
    root: &Path,
    path: &Path,
    depth: usize,
    files: &mut BTreeMap<String, String>,
) -> Result<(), AgentRefusal> {
    let wrong = |why: &str| AgentRefusal::Unreadable { path: path.to_owned(), why: why.to_owned() };
    let failed = |error: std::io::Error| wrong(&error.to_string());
    let Ok(itself) = fs::symlink_metadata(path) else { return Ok(()) };
    if itself.is_dir() {
        if depth == 0 {
            return Err(wrong("this is deeper than an agent's settings"));
        }
        for entry in fs::read_dir(path).map_err(failed)?.flatten() {
            // Packages that the agent installed for itself are not searched.
            if entry.file_name() != "node_modules" {
                look(root, &entry.path(), depth - 1, files)?;
            }
        }
        return Ok(());
    }
    // The target of a link counts. A link to a directory, or to nothing, cannot be trusted.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file || files.len() == FILES_MAX {
        return Err(wrong("this is no file of an agent's settings that can be agreed to"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(wrong("this is longer than an agent's settings"));
    }
    let name = path.strip_prefix(root).unwrap_or(path);
    files.insert(name.display().to_string(), sha256_hex(&bytes));
    Ok(())
}
