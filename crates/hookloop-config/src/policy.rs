//! What an operator decided for a machine, above its users and their projects.
//!
//! A policy is a file that neither a user nor a repository can do without: several hold together, and
//! each only tightens. What it says is kept with its place, so that who is refused something can read why.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_core::hook::Hook;
use hookloop_core::session;

use crate::agents::{Dialect, Permissions, Program, Settings};
use crate::limits::Limits;
use crate::located::{At, Line, Said};
use crate::patterns::is_project;
use crate::secret_references::Book;
use crate::telemetry::Order;
use crate::yaml::ConfigError;

/// The policy of a machine: it holds wherever it is there.
pub const SYSTEM_FILE: &str = "/etc/hookloop/policy.yaml";

/// How the names of a policy's gates begin. No other hook has such a name, nor such a group.
pub(crate) const PREFIX: &str = "policy";
/// What a policy calls agents that hookloop does not know, or that are started by another command.
pub(crate) const KINDS: [&str; 3] = ["acp", "command", "scripted"];

/// What a policy does not let happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy at {at} does not allow it: {what}")]
pub struct Forbidden {
    pub at: At,
    pub what: String,
}

/// What one file says.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub path: PathBuf,
    /// Patterns of the only projects that may be worked on; all if there is none.
    pub repositories: Vec<Said<String>>,
    /// Said if what repositories bring does not count.
    pub no_repository_hooks: Option<At>,
    /// Digests of repositories' hooks that were agreed to.
    pub trust: Vec<Said<String>>,
    /// Users whose agreements in a project's log count.
    pub trust_from: Vec<Said<String>>,
    pub gates: Vec<Said<Hook>>,
    /// The widest that anybody may have; without a bound where nothing is said.
    pub limits: Limits,
    /// The same as it is written.
    pub limit_lines: Vec<Said<(String, String)>>,
    /// The only agents that may be started; all if there is none.
    pub agents: Vec<Said<String>>,
    pub permissions: Option<Said<Permissions>>,
    /// Said if work that gates do not pass is never accepted without a person.
    pub no_accepting: Option<At>,
    pub secrets: Book,
    /// Where traces of sessions go, if anywhere.
    pub telemetry: Option<Said<Order>>,
}

/// All policies that hold.
#[derive(Clone, Debug, Default)]
pub struct Policies(Arc<[Policy]>);

/// A file that may hold a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyFile {
    /// It holds if it is there.
    System(PathBuf),
    /// Somebody named it, so it has to be there.
    Named(PathBuf),
}

impl Policies {
    /// All of these policies hold together.
    pub fn new(policies: Vec<Policy>) -> Policies {
        Policies(policies.into())
    }

    pub fn list(&self) -> &[Policy] {
        &self.0
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the project at `root`, a real path, may be worked on; a worker knows where it cloned it from.
    pub fn check_project(&self, root: &Path, cloned_from: Option<&str>) -> Result<(), Forbidden> {
        for policy in self.list() {
            let matches = |said: &Said<String>| is_project(&said.value, root, cloned_from);
            match policy.repositories.first() {
                Some(first) if !policy.repositories.iter().any(matches) => {
                    let what = format!("{} is not among `repositories`", root.display());
                    return Err(Forbidden { at: first.at.clone(), what });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where it says that what repositories bring does not count, if it does not.
    pub fn no_repository_hooks(&self) -> Option<&At> {
        self.list().iter().find_map(|policy| policy.no_repository_hooks.as_ref())
    }

    /// Where a repository's hooks were agreed to, if they were.
    pub fn trusts(&self, digest: &str) -> Option<&At> {
        let said = self.list().iter().flat_map(|policy| &policy.trust);
        said.into_iter().find(|said| said.value == digest).map(|said| &said.at)
    }

    /// Whether agreements in a project's log may count.
    pub fn has_trust_from(&self) -> bool {
        self.list().iter().any(|policy| !policy.trust_from.is_empty())
    }

    /// Whether the agreements of `actor` in a project's log count.
    pub fn trusts_from(&self, actor: &str) -> bool {
        let mut said = self.list().iter().flat_map(|policy| &policy.trust_from);
        said.any(|said| said.value == actor)
    }

    pub fn has_trust(&self) -> bool {
        self.list().iter().any(|policy| !policy.trust.is_empty())
    }

    /// Gates that nobody switches off.
    pub fn gates(&self) -> impl Iterator<Item = &Said<Hook>> {
        self.list().iter().flat_map(|policy| &policy.gates)
    }

    /// The refusal for who wants to switch a hook, if it is a policy's.
    pub fn check_switch(&self, name: &str) -> Result<(), Forbidden> {
        match self.gates().find(|gate| gate.value.name == name) {
            Some(gate) => {
                let what = format!("`{name}` is required, and nobody switches it");
                Err(Forbidden { at: gate.at.clone(), what })
            }
            None => Ok(()),
        }
    }

    /// The widest limits of all.
    pub fn limits(&self) -> Limits {
        let narrower = |limits: Limits, policy: &Policy| limits.within(policy.limits);
        self.list().iter().fold(Limits::boundless(), narrower)
    }

    /// Whether a session may have these limits: one that began before may have had more.
    pub fn check_limits(&self, limits: session::SessionLimits) -> Result<(), Forbidden> {
        let is_wider = |policy: &&Policy| limits.within(policy.limits.session) != limits;
        match self.list().iter().find(is_wider) {
            Some(policy) => {
                let line = policy.limit_lines.first().map_or(1, |said| said.at.line);
                let at = At { path: policy.path.clone(), line };
                Err(Forbidden { at, what: format!("the session began with {limits}") })
            }
            None => Ok(()),
        }
    }

    /// The most that an agent may do without being asked.
    pub fn permissions(&self) -> Option<&Said<Permissions>> {
        let said = self.list().iter().filter_map(|policy| policy.permissions.as_ref());
        said.min_by_key(|said| said.value)
    }

    /// Where it says that `at_retry_limit: accept` does not count, if it does not.
    pub fn no_accepting(&self) -> Option<&At> {
        self.list().iter().find_map(|policy| policy.no_accepting.as_ref())
    }

    /// Whether an agent may be started as it is.
    pub fn check_agent(&self, settings: &Settings) -> Result<(), Forbidden> {
        self.list().iter().try_for_each(|policy| policy.check_agent(settings))
    }

    /// Whether it may be allowed as much as somebody asks for.
    pub fn check_permissions(&self, wanted: Permissions) -> Result<(), Forbidden> {
        match self.permissions() {
            Some(most) if wanted > most.value => {
                let (wanted, most_name) = (wanted.name(), most.value.name());
                let what = format!("`permissions` is `{most_name}` at most, not `{wanted}`");
                Err(Forbidden { at: most.at.clone(), what })
            }
            _ => Ok(()),
        }
    }

    /// Everything that holds, in the order of the files.
    pub fn lines(&self) -> Vec<Line> {
        self.list().iter().flat_map(Policy::lines).collect()
    }
}

impl PolicyFile {
    /// Where it is; none if it need not be there and is not.
    pub(crate) fn present(&self) -> Result<Option<PathBuf>, ConfigError> {
        let (PolicyFile::System(path) | PolicyFile::Named(path)) = self;
        let wrong = |message: String| ConfigError {
            path: path.clone(),
            line: None,
            column: None,
            message: format!("a policy has to be read before anything runs: {message}"),
        };
        let real = match path.canonicalize() {
            Ok(real) => real,
            // One that can't be looked for may be there.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => match self {
                PolicyFile::System(_) if path.symlink_metadata().is_err() => return Ok(None),
                _ => return Err(wrong(error.to_string())),
            },
            Err(error) => return Err(wrong(error.to_string())),
        };
        for place in [Some(real.as_path()), real.parent()].into_iter().flatten() {
            let found = place.metadata().map_err(|error| wrong(error.to_string()))?;
            if found.mode() & 0o022 != 0 {
                let place = place.display();
                return Err(wrong(format!("others can write to {place}; chmod go-w {place}")));
            }
        }
        Ok(Some(path.clone()))
    }
}

impl Policy {
    fn check_agent(&self, settings: &Settings) -> Result<(), Forbidden> {
        let (name, kind) = (&settings.name, kind(settings));
        let is_named = self.agents.iter().any(|said| said.value == kind);
        if let (Some(first), false) = (self.agents.first(), is_named) {
            let what = format!("the agent `{name}` ({kind}) is not among `agents`");
            return Err(Forbidden { at: first.at.clone(), what });
        }
        let Some(most) = self.permissions.as_ref().filter(|said| said.value < Permissions::Full)
        else {
            return Ok(());
        };
        let forbidden = |what: String| Err(Forbidden { at: most.at.clone(), what });
        let permissions = most.value.name();
        // What it does is up to a program that hookloop does not know, so the operator has to name it.
        if KINDS.contains(&kind) && !is_named {
            return forbidden(format!(
                "nobody can hold the agent `{name}` ({kind}) to `permissions: {permissions}`, and `agents` does not name `{kind}`"
            ));
        }
        if !settings.args.is_empty() || !settings.allow.is_empty() {
            return forbidden(format!(
                "`args` and `allow` of the agent `{name}` could let it do more than `permissions: {permissions}`"
            ));
        }
        Ok(())
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut add = |rule: &str, value: String, at: &At| {
            lines.push(Line { rule: rule.to_owned(), value, at: at.clone() });
        };
        for said in &self.repositories {
            add("repositories", said.value.clone(), &said.at);
        }
        if let Some(at) = &self.no_repository_hooks {
            add("repository_hooks", "none".to_owned(), at);
        }
        for said in &self.trust {
            add("trust", said.value.clone(), &said.at);
        }
        for said in &self.trust_from {
            add("trust_from", said.value.clone(), &said.at);
        }
        for gate in &self.gates {
            let points: Vec<&str> = gate.value.points.iter().map(|point| point.name()).collect();
            let points = points.join(", ");
            add(&format!("gates.{points}"), gate.value.name.clone(), &gate.at);
        }
        for Said { value: (name, value), at } in &self.limit_lines {
            add(&format!("limits.{name}"), value.clone(), at);
        }
        for said in &self.agents {
            add("agents", said.value.clone(), &said.at);
        }
        if let Some(said) = &self.permissions {
            add("permissions", said.value.name().to_owned(), &said.at);
        }
        if let Some(at) = &self.no_accepting {
            add("accept_at_retry_limit", "false".to_owned(), at);
        }
        if let Some(said) = &self.telemetry {
            add("telemetry", said.value.to_string(), &said.at);
        }
        lines.extend(self.secrets.lines());
        lines
    }
}

/// What an agent is: one that hookloop knows, if it is started as that is, else what speaks to it.
fn kind(settings: &Settings) -> &'static str {
    let known = settings.known().filter(
        |known| matches!(&settings.program, Program::Words(words) if words == known.program),
    );
    match (known, settings.dialect) {
        (Some(known), _) => known.name,
        (None, Dialect::Acp) => "acp",
        (None, Dialect::Scripted) => "scripted",
        (None, Dialect::Command | Dialect::Claude | Dialect::Codex) => "command",
    }
}
