//! `policy.yaml`: the policy of an administrator.

use std::collections::BTreeMap;
use std::path::Path;

use hookloop_core::hook::{Hook, HookHandler, HookRegistry, HookSource};
use hookloop_core::point::Point;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use crate::agents::profile::AGENT_PROFILES;
use crate::entries::agents::PermissionsEntry;
use crate::entries::hook_entry::{HookForm, HooksByPoint};
use crate::entries::hooks::{HookReader, WorkflowActions};
use crate::entries::limits::LimitEntries;
use crate::entries::secrets::{SecretEntries, SecretEntry, book};
use crate::entries::telemetry::TelemetryOrder;
use crate::entries::values::Located;
use crate::limits::LimitSettings;
use crate::located::{FileLine, PolicyValue};
use crate::patterns::glob;
use crate::policy::{KINDS, PREFIX, PolicyContent, PolicyFile, PolicySet};
use crate::yaml::{ConfigComplaint, ConfigError, check_version, from_yaml, read};

/// The most entries of a list.
const LIST_MAX: usize = 1_024;

/// `policy.yaml`: rules of a machine, above its users and their projects
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "policy.yaml", inline)]
pub(crate) struct PolicyDocument {
    /// Version of the file format: 1
    #[schemars(with = "u64", range(min = 1, max = 1))]
    version: Spanned<u64>,
    /// Allowed projects: patterns of their real paths, or of the URLs that workers clone them from [default: all]
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    repositories: Option<Spanned<Vec<Spanned<String>>>>,
    /// Hooks and agents of repositories: used after a person trusts them (`trusted`), or never (`none`)
    /// [default: `trusted`]
    repository_hooks: Option<Located<RepositoryHooks>>,
    /// Digests of trusted hooks of repositories, as printed by `hookloop hooks trust --show` [default: none]
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    trust: Vec<Spanned<String>>,
    /// Users whose last `hookloop hooks trust` in the project's log also counts on this machine [default: none]
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    trust_from: Vec<Spanned<String>>,
    /// Required gates by hook point, which run for every task and agent and cannot be disabled [default: none]
    #[serde(default)]
    #[schemars(with = "PolicyGates")]
    gates: HooksByPoint,
    /// Maximum limits of users and projects
    #[serde(default)]
    limits: LimitEntries,
    /// Types of the allowed agents [default: all]
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    agents: Option<Spanned<Vec<Spanned<String>>>>,
    /// Maximum permissions of an agent without a prompt: `read`, `edit` or `full` [default: `full`]
    permissions: Option<Located<PermissionsEntry>>,
    /// Whether `at_retry_limit: accept` is allowed [default: true]
    accept_at_retry_limit: Option<Located<bool>>,
    /// Sources of secrets, by project and name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, SecretEntry>>")]
    secrets: SecretEntries,
    /// Export of traces of sessions
    telemetry: Option<Located<TelemetryOrder>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RepositoryHooks {
    Trusted,
    None,
}

/// Required gates by hook point
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Gates")]
struct PolicyGates {
    /// Gates that run when the agent reports completion [default: none]
    stop: Option<Vec<HookForm>>,
    /// Gates that run before a submission [default: none]
    before_submit: Option<Vec<HookForm>>,
    /// Gates that run before a merge [default: none]
    before_merge: Option<Vec<HookForm>>,
}

/// The places of limits, which the values do not have.
#[derive(Default, Deserialize)]
struct LimitPlaces {
    #[serde(default)]
    limits: BTreeMap<String, Spanned<Value>>,
}

/// Reads all policies. A file that cannot be read is an error: no session may run without it.
pub fn load(files: &[PolicyFile]) -> Result<PolicySet, ConfigError> {
    let mut policies = Vec::new();
    for file in files {
        if let Some(path) = file.present()? {
            let number = policies.len();
            policies.push(read(&path, |text| parse(text, &path, number))?);
        }
    }
    Ok(PolicySet::new(policies))
}

/// Returns the JSON Schema of a policy, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(PolicyDocument).to_value()
}

/// Reads a policy. `number` is its position among several.
fn parse(text: &str, path: &Path, number: usize) -> Result<PolicyContent, ConfigComplaint> {
    let file: PolicyDocument = from_yaml(text)?;
    check_version(&file.version)?;
    let at = |location: Location| FileLine { path: path.to_owned(), line: location.line() };
    let said = |word: Spanned<String>| PolicyValue { value: word.value, at: at(word.referenced) };
    let list = |words: Option<Spanned<Vec<Spanned<String>>>>, key: &str| match words {
        Some(words) if words.value.is_empty() || words.value.len() > LIST_MAX => {
            let message = format!("`{key}` names 1 to {LIST_MAX}; leave it out for all");
            Err(ConfigComplaint::new(words.referenced, message))
        }
        words => Ok(words.map(|words| words.value).unwrap_or_default()),
    };
    let repositories = list(file.repositories, "repositories")?;
    let agents = list(file.agents, "agents")?;
    repositories.iter().try_for_each(check_pattern)?;
    agents.iter().try_for_each(check_agent)?;
    file.trust.iter().try_for_each(check_digest)?;
    let limits = file.limits.over(LimitSettings::boundless())?;
    let places: LimitPlaces = from_yaml(text)?;
    let limit_line = |(name, limit): (String, Spanned<Value>)| {
        let value = limit.value.as_str().map_or_else(|| limit.value.to_string(), str::to_owned);
        PolicyValue { value: (name, value), at: at(limit.referenced) }
    };
    let base = path.parent().unwrap_or(Path::new("/"));
    Ok(PolicyContent {
        path: path.to_owned(),
        repositories: repositories.into_iter().map(said).collect(),
        no_repository_hooks: file
            .repository_hooks
            .filter(|word| matches!(word.value, RepositoryHooks::None))
            .map(|word| at(word.at)),
        trust: file.trust.into_iter().map(said).collect(),
        trust_from: file.trust_from.into_iter().map(said).collect(),
        gates: gates(file.gates, number)?
            .into_iter()
            .map(|(hook, location)| PolicyValue { value: hook, at: at(location) })
            .collect(),
        limits,
        limit_lines: places.limits.into_iter().map(limit_line).collect(),
        agents: agents.into_iter().map(said).collect(),
        permissions: file
            .permissions
            .map(|word| PolicyValue { value: word.value.into(), at: at(word.at) }),
        no_accepting: file.accept_at_retry_limit.filter(|word| !word.value).map(|word| at(word.at)),
        secrets: book(file.secrets, path, base)?,
        telemetry: match file.telemetry {
            Some(order) => Some(PolicyValue { value: order.value.read()?, at: at(order.at) }),
            None => None,
        },
    })
}

fn check_pattern(pattern: &Spanned<String>) -> Result<(), ConfigComplaint> {
    let is_place = pattern.value.starts_with('/') || pattern.value.contains("://");
    match glob(&pattern.value) {
        Err(error) => Err(ConfigComplaint::new(pattern.referenced, error)),
        Ok(_) if !is_place => {
            let message = format!("`{}` is neither an absolute path nor a URL", pattern.value);
            Err(ConfigComplaint::new(pattern.referenced, message))
        }
        Ok(_) => Ok(()),
    }
}

fn check_agent(name: &Spanned<String>) -> Result<(), ConfigComplaint> {
    let known: Vec<&str> = AGENT_PROFILES.iter().map(|known| known.name).chain(KINDS).collect();
    match known.contains(&name.value.as_str()) {
        true => Ok(()),
        false => {
            let message = format!("`{}` is not one of `{}`", name.value, known.join("`, `"));
            Err(ConfigComplaint::new(name.referenced, message))
        }
    }
}

fn check_digest(digest: &Spanned<String>) -> Result<(), ConfigComplaint> {
    let hex = digest.value.strip_prefix("sha256:");
    let is_hex = |hex: &str| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match hex.is_some_and(is_hex) {
        true => Ok(()),
        false => {
            let message = "a digest is what `hookloop hooks trust --show` prints: `sha256:…`";
            Err(ConfigComplaint::new(digest.referenced, message))
        }
    }
}

/// Returns the points at which a policy can require gates, as a list in a sentence.
fn required_points() -> String {
    let names: Vec<String> =
        Point::required_names().into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.join(", "),
    }
}

/// Returns the gates of a policy, under names that no other file can use, with their places.
fn gates(points: HooksByPoint, number: usize) -> Result<Vec<(Hook, Location)>, ConfigComplaint> {
    for (Spanned { value: name, referenced: at, .. }, _) in &points.0 {
        if !name.parse().is_ok_and(|point: Point| point.can_be_required()) {
            let message = format!("a policy has gates at {}, not at `{name}`", required_points());
            return Err(ConfigComplaint::new(*at, message));
        }
    }
    let (mut hooks, workflows) = (HookRegistry::default(), WorkflowActions::new());
    let mut reader = HookReader::new(&mut hooks, &workflows, &[], HookSource::Operator);
    reader.read(points, None)?;
    reader.check_needs()?;
    let places = reader.places();
    let prefix = match number {
        0 => PREFIX.to_owned(),
        number => format!("{PREFIX}-{}", number + 1),
    };
    let own = |name: &String| format!("{prefix}/{name}");
    let mut gates = Vec::new();
    for hook in hooks.list() {
        let found = places.iter().find(|(name, _)| *name == hook.name);
        let at = found.map_or(Location::UNKNOWN, |(_, at)| *at);
        // Projects define their reviewers and the instructions for them.
        if matches!(hook.handler, HookHandler::Gatekeepers { .. }) {
            let message = "a policy's gate is no review by gatekeepers: projects define those";
            return Err(ConfigComplaint::new(at, message));
        }
        let mut hook = Hook { name: own(&hook.name), ..hook.clone() };
        hook.options.needs = hook.options.needs.iter().map(own).collect();
        hook.options.any_of = hook.options.any_of.as_ref().map(own);
        gates.push((hook, at));
    }
    Ok(gates)
}
