//! Decides which hooks of a repository the user has trusted, by content.
//!
//! A clone contains hooks, and its presence alone runs none of them. The user trusts a digest over
//! a hook's definition and over the bytes of every project file that its command names. Any change
//! gives another digest.
//!
//! The trusted bytes are copied beside the project's state, and only the copy runs. So no process
//! can swap a script between the check and the run.

pub mod gates_now;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::digest::sha256_hex;
use hookloop_core::gate_ledger::GateLedger;
use hookloop_core::hook::{
    CommandText, DEFAULT_PRIORITY, DeclaredAction, Hook, HookHandler, HookRegistry, HookSource,
};
use hookloop_core::options::{
    AllowedAnswers, EnvEntry, HookOptions, Length, PipeOutput, RetryPolicy, RoomChoice,
};
use hookloop_core::point::Point;
use hookloop_core::review::Quorum;
use hookloop_process::{WriteOptions, while_no_process_starts, write_whole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::scripts::NamedFiles;

const FILE: &str = "trust.json";
const SCRIPTS: &str = "trusted";
/// Largest size of a script that a command names, in bytes.
const SCRIPT_MAX: u64 = 4 * 1024 * 1024;
const SCRIPTS_PER_HOOK_MAX: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{} has {size} bytes; a script that a hook names has at most {SCRIPT_MAX}", path.display())]
    TooLong { path: PathBuf, size: u64 },
    #[error("hook `{hook}` names more than {SCRIPTS_PER_HOOK_MAX} files of the project")]
    TooMany { hook: String },
    #[error("the hooks of this project are {found}, not {given}")]
    OtherDigest { given: String, found: String },
}

/// The complete definition of one hook, as the user is asked to trust it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookDefinition {
    pub name: String,
    pub task_type: Option<String>,
    pub points: Vec<String>,
    /// The action of the hook, as configured.
    pub what: Value,
    pub when: Option<String>,
    /// Names of variables, with values where the configuration sets them.
    pub env: BTreeMap<String, Option<String>>,
    pub cwd: Option<String>,
    pub sandbox: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The options that differ from their defaults, in words.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Project files that the hook names, with the digests of their bytes.
    pub scripts: BTreeMap<String, String>,
    /// Project links that the hook names, with their targets outside of the project.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
}

impl HookDefinition {
    /// Creates an empty definition for settings of an agent.
    pub fn of_agent(name: String) -> HookDefinition {
        HookDefinition {
            name,
            task_type: None,
            points: Vec::new(),
            what: Value::Null,
            when: None,
            env: BTreeMap::new(),
            cwd: None,
            sandbox: None,
            limits: None,
            options: BTreeMap::new(),
            scripts: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }

    /// Returns the trust of this definition, given the trusted ones.
    pub fn standing(&self, agreed: &[HookDefinition]) -> HookStanding {
        if agreed.contains(self) {
            return HookStanding::Trusted;
        }
        match agreed.iter().any(|known| known.is_of_hook(self)) {
            true => HookStanding::Modified,
            false => HookStanding::Untrusted,
        }
    }

    /// Whether both definitions are of the same hook, in any version.
    pub fn is_of_hook(&self, other: &HookDefinition) -> bool {
        (&self.name, &self.task_type) == (&other.name, &other.task_type)
    }
}

/// The trust of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookStanding {
    /// Built in, or the user's own.
    Own,
    Trusted,
    /// It was trusted and has changed since.
    Modified,
    Untrusted,
}

impl HookStanding {
    pub fn may_run(self) -> bool {
        matches!(self, HookStanding::Own | HookStanding::Trusted)
    }

    pub fn name(self) -> &'static str {
        match self {
            HookStanding::Own => "own",
            HookStanding::Trusted => "trusted",
            HookStanding::Modified => "modified",
            HookStanding::Untrusted => "untrusted",
        }
    }
}

/// The user's trust decisions for one project.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    state: PathBuf,
    agreed: Vec<HookDefinition>,
    /// Definitions of agents.
    agents: Vec<HookDefinition>,
    /// Set if the present hooks and gates are trusted by their digest.
    by_digest: Option<DigestConsent>,
}

/// The origin of the trust in a digest of hooks and gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestConsent {
    /// The user, for this run only (`--trust`).
    Once,
    /// A policy, for as long as it applies.
    Policy,
}

#[derive(Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    agreed: Vec<HookDefinition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<HookDefinition>,
}

/// A hook whose definition was read, with the bytes of its scripts at that time.
#[derive(Clone, Debug)]
pub struct SeenHook {
    pub definition: HookDefinition,
    pub digest: String,
    pub bytes: BTreeMap<String, Vec<u8>>,
    pub named: NamedFiles,
}

/// Returns the path of the file with the trust decisions.
pub fn file(state: &Path) -> PathBuf {
    state.join(FILE)
}

impl Trust {
    /// Loads the trust decisions for the project with its state at `state`.
    pub fn load(state: &Path) -> Result<Trust, TrustError> {
        let path = file(state);
        let file = match fs::read(&path) {
            Ok(text) => {
                let unreadable = |error: serde_json::Error| TrustError::Unreadable {
                    path: path.clone(),
                    reason: error.to_string(),
                };
                serde_json::from_slice::<TrustFile>(&text).map_err(unreadable)?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => TrustFile::default(),
            Err(source) => return Err(TrustError::Io { path, source }),
        };
        let (agreed, agents) = (file.agreed, file.agents);
        Ok(Trust { state: state.to_owned(), agreed, agents, by_digest: None })
    }

    /// Returns the origin of the trust in this run's digest, if there is one.
    pub fn by_digest(&self) -> Option<DigestConsent> {
        self.by_digest
    }

    pub fn agreed(&self) -> &[HookDefinition] {
        &self.agreed
    }

    /// Trusts these hooks and gates for this run only. `digest` must be theirs.
    pub fn accept(&mut self, digest: &str, offer: &HookOffer) -> Result<(), TrustError> {
        let found = offer.digest();
        if found != digest {
            return Err(TrustError::OtherDigest { given: digest.to_owned(), found });
        }
        self.agreed = offer.definitions();
        self.by_digest = Some(DigestConsent::Once);
        Ok(())
    }

    /// Trusts these hooks and gates if `agreed` returns true for their digest.
    pub fn accept_if(&mut self, offer: &HookOffer, agreed: impl FnOnce(&str) -> bool) {
        if agreed(&offer.digest()) {
            self.agreed = offer.definitions();
            self.by_digest = Some(DigestConsent::Policy);
        }
    }

    /// Returns the trust of a hook that was just read.
    pub fn standing_of(&self, hook: &Hook, seen: &SeenHook) -> HookStanding {
        if needs_trust(hook, seen) { self.standing(seen) } else { HookStanding::Own }
    }

    pub fn standing(&self, seen: &SeenHook) -> HookStanding {
        seen.definition.standing(&self.agreed)
    }

    /// Trusts exactly these hooks, and no others of the project.
    ///
    /// Copies of their scripts are stored, to run them and to show later changes.
    pub fn agree(&mut self, offer: &HookOffer) -> Result<(), TrustError> {
        for seen in &offer.seen {
            self.keep(seen)?;
        }
        self.agreed = offer.definitions();
        self.save()
    }

    /// Returns the stored copy of a script by its digest, or `None` if it is missing or changed.
    pub fn kept_script(&self, digest: &str, name: &str) -> Option<Vec<u8>> {
        let path = kept_path(&self.state, digest, name);
        let unread = |error: &std::io::Error| {
            tracing::warn!(path = %path.display(), %error, "the kept copy of a script can't be read");
        };
        let bytes = fs::read(&path).inspect_err(unread).ok()?;
        (sha256_hex(&bytes) == digest).then_some(bytes)
    }

    /// Returns the trusted definitions of agents.
    pub fn agents(&self) -> &[HookDefinition] {
        &self.agents
    }

    pub fn has_agent(&self, definition: &HookDefinition) -> bool {
        self.agents.contains(definition)
    }

    /// Trusts exactly these definitions of agents.
    pub fn agree_to_agents(&mut self, definitions: Vec<HookDefinition>) -> Result<(), TrustError> {
        self.agents = definitions;
        self.save()
    }

    fn save(&self) -> Result<(), TrustError> {
        let (agreed, agents) = (self.agreed.clone(), self.agents.clone());
        let text = serde_json::to_vec_pretty(&TrustFile { version: 1, agreed, agents });
        write(&self.state.join(FILE), &text.unwrap_or_default(), 0o600)
    }

    /// Stores the scripts of a trusted hook where only hookloop writes, and returns their paths.
    pub fn keep(&self, seen: &SeenHook) -> Result<BTreeMap<String, PathBuf>, TrustError> {
        let mut kept = BTreeMap::new();
        for (name, bytes) in &seen.bytes {
            let digest = &seen.definition.scripts[name];
            let path = kept_path(&self.state, digest, name);
            // A copy that differs, is missing or cannot be read is replaced.
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                let directory = path.parent().unwrap_or(&self.state);
                let mut builder = fs::DirBuilder::new();
                builder.recursive(true).mode(0o700);
                builder.create(directory).map_err(|source| io(directory, source))?;
                write(&path, bytes, 0o700)?;
            }
            kept.insert(name.clone(), path);
        }
        Ok(kept)
    }
}

impl SeenHook {
    /// Returns the project file that the command would run and that does not exist.
    pub fn missing_script(&self) -> Option<&str> {
        self.named.absent.as_deref()
    }

    /// Returns the bytes of a project script that the hook names.
    pub fn script(&self, name: &str) -> Option<&[u8]> {
        self.bytes.get(name).map(Vec::as_slice)
    }

    /// Reads a hook of the project at `root`: its definition, and the files that it names.
    pub fn look(root: &Path, hook: &Hook) -> Result<SeenHook, TrustError> {
        let named = NamedFiles::look(root, hook);
        let mut bytes = BTreeMap::new();
        for name in named.files.values() {
            if bytes.contains_key(name) {
                continue;
            }
            if bytes.len() == SCRIPTS_PER_HOOK_MAX {
                return Err(TrustError::TooMany { hook: hook.name.clone() });
            }
            let path = root.join(name);
            let size = fs::metadata(&path).map_err(|source| io(&path, source))?.len();
            if size > SCRIPT_MAX {
                return Err(TrustError::TooLong { path, size });
            }
            let read = fs::read(&path).map_err(|source| io(&path, source))?;
            bytes.insert(name.clone(), read);
        }
        let scripts = bytes.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes))).collect();
        let definition = definition(hook, &named, scripts);
        let digest = definition_digest(&definition);
        Ok(SeenHook { definition, digest, bytes, named })
    }
}

/// Returns the definition of a hook with these links and script digests.
pub(crate) fn definition(
    hook: &Hook,
    named: &NamedFiles,
    scripts: BTreeMap<String, String>,
) -> HookDefinition {
    let sandbox = hook.options.sandbox.as_ref();
    HookDefinition {
        name: hook.name.clone(),
        task_type: hook.task_type.clone(),
        points: hook.points.iter().map(|point| Point::name(point).to_owned()).collect(),
        what: what(&hook.handler),
        when: hook.options.when.clone(),
        env: hook.options.env.iter().map(variable).collect(),
        cwd: hook.options.cwd.clone(),
        sandbox: sandbox
            .map(|sandbox| json!({ "no_network": sandbox.no_network, "write": sandbox.write })),
        limits: Some(hook.options.limits.to_string()).filter(|limits| !limits.is_empty()),
        options: options(hook),
        links: named.links.clone(),
        scripts,
    }
}

pub(crate) fn definition_digest(definition: &HookDefinition) -> String {
    sha256_hex(serde_json::to_vec(definition).unwrap_or_default())
}

/// Returns the path of the stored copy of a script.
pub(crate) fn kept_path(state: &Path, digest: &str, name: &str) -> PathBuf {
    state.join(SCRIPTS).join(digest).join(file_name(name))
}

/// Whether a hook needs the user's trust.
///
/// It does if it starts a process or makes a decision, and the repository contains the hook or a
/// file that the hook names.
pub fn needs_trust(hook: &Hook, seen: &SeenHook) -> bool {
    is_weighty(hook)
        && match hook.source {
            HookSource::Builtin => false,
            // A user's or a policy's hook that names files of the repository runs the repository's
            // code.
            HookSource::User | HookSource::Operator => {
                !seen.bytes.is_empty() || !seen.named.links.is_empty()
            }
            HookSource::Project => true,
        }
}

/// Whether a hook starts a process or sends a request.
pub(crate) fn starts_something(hook: &Hook) -> bool {
    match hook.handler {
        HookHandler::Command(_) | HookHandler::Http { .. } | HookHandler::Gatekeepers { .. } => {
            true
        }
        HookHandler::Builtin(builtin) => !builtin.is_reaction(),
        HookHandler::Declared(_) | HookHandler::Rule(_) => false,
    }
}

/// Whether a hook can have effects that need trust.
///
/// It starts a process, sends a request, or makes a decision that belongs to a person.
fn is_weighty(hook: &Hook) -> bool {
    match &hook.handler {
        HookHandler::Declared(actions) => actions.iter().any(DeclaredAction::decides),
        _ => starts_something(hook),
    }
}

/// Reads all hooks that need the user's trust.
pub(crate) fn look_at_all(root: &Path, hooks: &HookRegistry) -> Result<Vec<SeenHook>, TrustError> {
    let mut all = Vec::new();
    for hook in hooks.list().iter().filter(|hook| is_weighty(hook)) {
        let seen = SeenHook::look(root, hook)?;
        if needs_trust(hook, &seen) {
            all.push(seen);
        }
    }
    Ok(all)
}

/// The user's trust in a project, with the directories of the project and its state.
#[derive(Clone, Copy, Debug)]
pub struct TrustScope<'a> {
    pub home: &'a Path,
    pub state: &'a Path,
    pub trust: &'a Trust,
}

/// The parts of a repository that a user trusts at once: hooks that need trust, and all gates.
#[derive(Clone, Debug)]
pub struct HookOffer {
    pub seen: Vec<SeenHook>,
    pub gates: GateLedger,
}

impl HookOffer {
    /// Reads the hooks and gates of the project at `root`.
    pub fn look(root: &Path, rules: &EffectiveConfig) -> Result<HookOffer, TrustError> {
        let seen = look_at_all(root, &rules.hooks)?;
        Ok(HookOffer { seen, gates: gates_now::gates(root, rules, &[])? })
    }

    /// Returns the digest of the hooks and gates, which `--trust` and policies name.
    pub fn digest(&self) -> String {
        let mut digests: Vec<&str> = self.seen.iter().map(|seen| seen.digest.as_str()).collect();
        digests.sort_unstable();
        let mut text = digests.join("\n");
        // The user's own gates are not part of the repository's offer.
        let mut gates = self.gates.clone();
        gates.gates.retain(|gate| !gate.is_users);
        text.push('\n');
        text.push_str(&sha256_hex(serde_json::to_vec(&gates).unwrap_or_default()));
        format!("sha256:{}", sha256_hex(text.as_bytes()))
    }

    fn definitions(&self) -> Vec<HookDefinition> {
        self.seen.iter().map(|seen| seen.definition.clone()).collect()
    }
}

/// Returns the digest of all hook definitions without the bytes of their scripts.
///
/// A session freezes the scripts separately ([`crate::frozen_hooks`]).
pub fn policy_digest(root: &Path, hooks: &HookRegistry) -> String {
    let definition = |hook: &Hook| {
        let seen = SeenHook::look(root, hook).map(|seen| seen.definition);
        let seen = seen.map(|seen| HookDefinition { scripts: BTreeMap::new(), ..seen });
        seen.map_err(|error| error.to_string()).map_or_else(Value::String, |seen| json!(seen))
    };
    let all: Vec<Value> = hooks.list().iter().filter(|hook| hook.enabled).map(definition).collect();
    sha256_hex(serde_json::to_vec(&all).unwrap_or_default())
}

/// Returns the absolute paths of the project files that a hook runs.
pub fn scripts(root: &Path, hook: &Hook) -> Vec<PathBuf> {
    script_names(root, hook).iter().map(|name| root.join(name)).collect()
}

/// Returns the project files that a hook runs, relative to the project's directory.
pub fn script_names(root: &Path, hook: &Hook) -> Vec<String> {
    NamedFiles::look(root, hook).files.into_values().collect()
}

pub fn what(handler: &HookHandler) -> Value {
    match handler {
        HookHandler::Command(CommandText::Shell(line)) => json!({ "shell": line }),
        HookHandler::Command(CommandText::Exec(args)) => json!({ "exec": args }),
        HookHandler::Http { url } => json!({ "http": url }),
        HookHandler::Rule(rule) => json!({ "rule": rule.to_string() }),
        HookHandler::Builtin(builtin) => json!({ "use": builtin.name() }),
        HookHandler::Gatekeepers { agents, quorum, terms } => {
            let quorum = if *quorum == Quorum::All { "all" } else { "any" };
            json!({ "gatekeeper": agents, "quorum": quorum, "terms": terms })
        }
        HookHandler::Declared(actions) if actions.iter().any(DeclaredAction::decides) => {
            let action = |action: &DeclaredAction| json!({ action.kind: action.payload.source() });
            json!({ "actions": actions.iter().map(action).collect::<Vec<_>>() })
        }
        HookHandler::Declared(_) => Value::Null,
    }
}

/// Returns the options that decide when a hook runs and how its failure counts.
fn options(hook: &Hook) -> BTreeMap<String, String> {
    let (options, defaults) = (&hook.options, HookOptions::default());
    let retry = |retry: RetryPolicy| {
        let pause = Length { ms: retry.backoff_ms };
        let jitter = if retry.jitter { ", with jitter" } else { "" };
        format!("{} runs, {pause} between{jitter}", retry.attempts)
    };
    let given = [
        ("priority", (hook.priority != DEFAULT_PRIORITY).then(|| hook.priority.to_string())),
        ("timeout", options.timeout_ms.map(|ms| Length { ms }.to_string())),
        ("answers", (options.answers == AllowedAnswers::Json).then(|| "json".to_owned())),
        ("on_failure", (options.on_failure != defaults.on_failure).then(|| "open".to_owned())),
        (
            "pipe_output",
            match options.pipe_output {
                PipeOutput::Never => None,
                PipeOutput::Always => Some("true".to_owned()),
                PipeOutput::OnFailure => Some("on_failure".to_owned()),
            },
        ),
        ("needs", (!options.needs.is_empty()).then(|| options.needs.join(", "))),
        ("parallel", options.parallel.then(|| "true".to_owned())),
        ("room", (options.room.choice == RoomChoice::Here).then(|| "here".to_owned())),
        ("copy", (!options.room.copy.is_empty()).then(|| options.room.copy.join(", "))),
        (
            "confirm",
            (options.room.confirm != defaults.room.confirm)
                .then(|| options.room.confirm.name().to_owned()),
        ),
        ("report", (!options.report.is_empty()).then(|| options.report.join(", "))),
        ("inputs", (!options.inputs.is_empty()).then(|| options.inputs.join(", "))),
        ("base_tests", options.base_tests.as_ref().map(ToString::to_string)),
        ("strength", options.strength.as_ref().map(ToString::to_string)),
        ("exclusive", options.exclusive.clone()),
        ("retry", (options.retry != defaults.retry).then(|| retry(options.retry))),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn variable(entry: &EnvEntry) -> (String, Option<String>) {
    match entry {
        EnvEntry::Inherited(name) => (name.clone(), None),
        EnvEntry::Set { name, value } => (name.clone(), Some(value.clone())),
    }
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Writes a record or a script atomically. A script can be run at once.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), TrustError> {
    let options = WriteOptions { mode, ..WriteOptions::DURABLE };
    while_no_process_starts(|| write_whole(path, bytes, options)).map_err(|source| io(path, source))
}

fn io(path: &Path, source: std::io::Error) -> TrustError {
    TrustError::Io { path: path.to_owned(), source }
}

/// The directory, the trust and the search path of an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentGround<'a> {
    pub root: &'a Path,
    pub trust: &'a Trust,
    /// The search path of programs.
    pub path: &'a OsStr,
}
