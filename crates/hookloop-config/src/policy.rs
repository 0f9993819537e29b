//! Policies: rules of a machine's administrator, above its users and their projects.
//!
//! Neither a user nor a repository can disable a policy. Several policies apply together, and each only tightens.
//! Each rule is kept with its place, so that a refusal can name it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_core::hook::Hook;
use hookloop_core::session;

use crate::agents::{AgentPermissions, AgentProgram, AgentSettings};
use crate::limits::LimitSettings;
use crate::located::{FileLine, PolicyLine, PolicyValue};
use crate::patterns::is_project;
use crate::secret_references::SecretBook;
use crate::telemetry::TelemetryPolicy;
use crate::yaml::ConfigError;

/// The policy of a machine. It applies if the file exists.
pub const SYSTEM_FILE: &str = "/etc/hookloop/policy.yaml";

/// The prefix of a policy's gates. No other hook and no other group has such a name.
pub(crate) const PREFIX: &str = "policy";
/// The names in a policy for agents that hookloop does not know, or that are started by another command.
pub(crate) const KINDS: [&str; 3] = ["acp", "command", "scripted"];

/// The refusal of an action by a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy at {at} does not allow it: {what}")]
pub struct PolicyRefusal {
    pub at: FileLine,
    pub what: String,
}

/// The content of one policy file.
#[derive(Clone, Debug, Default)]
pub struct PolicyContent {
    pub path: PathBuf,
    /// Patterns of the only projects that are allowed; all if empty.
    pub repositories: Vec<PolicyValue<String>>,
    /// Set if hooks of repositories never run.
    pub no_repository_hooks: Option<FileLine>,
    /// Trusted digests of repositories' hooks.
    pub trust: Vec<PolicyValue<String>>,
    /// Users whose trust decisions in a project's log count.
    pub trust_from: Vec<PolicyValue<String>>,
    pub gates: Vec<PolicyValue<Hook>>,
    /// The upper bounds of all limits. A limit that is not set has no bound.
    pub limits: LimitSettings,
    /// The limits in their written form.
    pub limit_lines: Vec<PolicyValue<(String, String)>>,
    /// The only agents that may be started; all if empty.
    pub agents: Vec<PolicyValue<String>>,
    pub permissions: Option<PolicyValue<AgentPermissions>>,
    /// Set if work is never accepted without passing gates unless a person decides it.
    pub no_accepting: Option<FileLine>,
    pub secrets: SecretBook,
    /// The destination of traces, if it is set.
    pub telemetry: Option<PolicyValue<TelemetryPolicy>>,
}

/// All policies in effect.
#[derive(Clone, Debug, Default)]
pub struct PolicySet(Arc<[PolicyContent]>);

/// A file that may hold a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyFile {
    /// Applies if the file exists.
    System(PathBuf),
    /// Was named explicitly, so the file must exist.
    Named(PathBuf),
}

impl PolicySet {
    /// Combines policies. All of them apply.
    pub fn new(policies: Vec<PolicyContent>) -> PolicySet {
        PolicySet(policies.into())
    }

    pub fn list(&self) -> &[PolicyContent] {
        &self.0
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks whether the project at `root`, a real path, is allowed. A worker also knows the URL of its clone.
    pub fn check_project(
        &self,
        root: &Path,
        cloned_from: Option<&str>,
    ) -> Result<(), PolicyRefusal> {
        for policy in self.list() {
            let matches = |said: &PolicyValue<String>| is_project(&said.value, root, cloned_from);
            match policy.repositories.first() {
                Some(first) if !policy.repositories.iter().any(matches) => {
                    let what = format!("{} is not among `repositories`", root.display());
                    return Err(PolicyRefusal { at: first.at.clone(), what });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the place that forbids hooks of repositories, if there is one.
    pub fn no_repository_hooks(&self) -> Option<&FileLine> {
        self.list().iter().find_map(|policy| policy.no_repository_hooks.as_ref())
    }

    /// Returns the place that trusts these hooks of a repository, if there is one.
    pub fn trusts(&self, digest: &str) -> Option<&FileLine> {
        let said = self.list().iter().flat_map(|policy| &policy.trust);
        said.into_iter().find(|said| said.value == digest).map(|said| &said.at)
    }

    /// Returns whether trust decisions in a project's log may count.
    pub fn has_trust_from(&self) -> bool {
        self.list().iter().any(|policy| !policy.trust_from.is_empty())
    }

    /// Returns whether the trust decisions of `actor` in a project's log count.
    pub fn trusts_from(&self, actor: &str) -> bool {
        let mut said = self.list().iter().flat_map(|policy| &policy.trust_from);
        said.any(|said| said.value == actor)
    }

    pub fn has_trust(&self) -> bool {
        self.list().iter().any(|policy| !policy.trust.is_empty())
    }

    /// Returns the required gates, which cannot be disabled.
    pub fn gates(&self) -> impl Iterator<Item = &PolicyValue<Hook>> {
        self.list().iter().flat_map(|policy| &policy.gates)
    }

    /// Refuses to enable or disable a hook that a policy requires.
    pub fn check_switch(&self, name: &str) -> Result<(), PolicyRefusal> {
        match self.gates().find(|gate| gate.value.name == name) {
            Some(gate) => {
                let what = format!("`{name}` is required, and nobody switches it");
                Err(PolicyRefusal { at: gate.at.clone(), what })
            }
            None => Ok(()),
        }
    }

    /// Returns the upper bounds of all policies together.
    pub fn limits(&self) -> LimitSettings {
        let narrower = |limits: LimitSettings, policy: &PolicyContent| limits.within(policy.limits);
        self.list().iter().fold(LimitSettings::boundless(), narrower)
    }

    /// Checks the limits of a session, which may have begun before the policy changed.
    pub fn check_limits(&self, limits: session::SessionLimits) -> Result<(), PolicyRefusal> {
        let is_wider = |policy: &&PolicyContent| limits.within(policy.limits.session) != limits;
        match self.list().iter().find(is_wider) {
            Some(policy) => {
                let line = policy.limit_lines.first().map_or(1, |said| said.at.line);
                let at = FileLine { path: policy.path.clone(), line };
                Err(PolicyRefusal { at, what: format!("the session began with {limits}") })
            }
            None => Ok(()),
        }
    }

    /// Returns the most permissions that an agent may have.
    pub fn permissions(&self) -> Option<&PolicyValue<AgentPermissions>> {
        let said = self.list().iter().filter_map(|policy| policy.permissions.as_ref());
        said.min_by_key(|said| said.value)
    }

    /// Returns the place that forbids `at_retry_limit: accept`, if there is one.
    pub fn no_accepting(&self) -> Option<&FileLine> {
        self.list().iter().find_map(|policy| policy.no_accepting.as_ref())
    }

    /// Checks whether an agent may be started with its settings.
    pub fn check_agent(&self, settings: &AgentSettings) -> Result<(), PolicyRefusal> {
        self.list().iter().try_for_each(|policy| policy.check_agent(settings))
    }

    /// Checks whether these permissions are allowed.
    pub fn check_permissions(&self, wanted: AgentPermissions) -> Result<(), PolicyRefusal> {
        match self.permissions() {
            Some(most) if wanted > most.value => {
                let (wanted, most_name) = (wanted.name(), most.value.name());
                let what = format!("`permissions` is `{most_name}` at most, not `{wanted}`");
                Err(PolicyRefusal { at: most.at.clone(), what })
            }
            _ => Ok(()),
        }
    }

    /// Returns all rules in effect, in the order of the files.
    pub fn lines(&self) -> Vec<PolicyLine> {
        self.list().iter().flat_map(PolicyContent::lines).collect()
    }
}

impl PolicyFile {
    /// Returns the path of the file; `None` if it is optional and does not exist.
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
            // A file that cannot be looked up may exist.
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

impl PolicyContent {
    fn check_agent(&self, settings: &AgentSettings) -> Result<(), PolicyRefusal> {
        let (name, kind) = (&settings.name, kind(settings));
        let is_named = self.agents.iter().any(|said| said.value == kind);
        if let (Some(first), false) = (self.agents.first(), is_named) {
            let what = format!("the agent `{name}` ({kind}) is not among `agents`");
            return Err(PolicyRefusal { at: first.at.clone(), what });
        }
        let Some(most) =
            self.permissions.as_ref().filter(|said| said.value < AgentPermissions::Full)
        else {
            return Ok(());
        };
        let forbidden = |what: String| Err(PolicyRefusal { at: most.at.clone(), what });
        let permissions = most.value.name();
        // An unknown program decides its own actions, so the administrator has to name its kind.
        if KINDS.contains(&kind) && !is_named {
            return forbidden(format!(
                "nobody can hold the agent `{name}` ({kind}) to `permissions: {permissions}`, and `agents` does not name `{kind}`"
            ));
        }
        if !settings.args.is_empty() || !settings.allowed_tools.is_empty() {
            return forbidden(format!(
                "`args` and `allowed_tools` of the agent `{name}` could let it do more than `permissions: {permissions}`"
            ));
        }
        Ok(())
    }

    fn lines(&self) -> Vec<PolicyLine> {
        let mut lines = Vec::new();
        let mut add = |rule: &str, value: String, at: &FileLine| {
            lines.push(PolicyLine { rule: rule.to_owned(), value, at: at.clone() });
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
        for PolicyValue { value: (name, value), at } in &self.limit_lines {
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

/// Returns the kind of an agent: the known agent if it is started by its own command, else its protocol.
fn kind(settings: &AgentSettings) -> &'static str {
    let known = settings.known().filter(
        |known| matches!(&settings.program, AgentProgram::Words(words) if words == known.program),
    );
    known.map_or_else(|| settings.dialect.generic_kind(), |known| known.name)
}
