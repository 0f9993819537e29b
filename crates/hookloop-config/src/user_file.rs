//! `config.yaml`: the user's own configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hookloop_core::hook::HookSource;
use hookloop_core::id::ProjectName;
use hookloop_core::price::TokenPrice;
use hookloop_core::store_config::{NatsAccess, NatsCredentials, NatsDurability};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::entries::hook_entry::HooksByPoint;
use crate::entries::hooks::own_hooks;
use crate::entries::limits::LimitEntries;
use crate::entries::looping::OwnLoop;
use crate::entries::network::NetworkEntry;
use crate::entries::secrets::{SecretEntries, SecretEntry, book};
use crate::entries::telemetry::TelemetryEntry;
use crate::entries::{agents, notify};
use crate::limits::LimitSettings;
use crate::policy::PolicySet;
use crate::repository::RepositorySource;
use crate::user::{BadStoreName, ProjectHome, ProjectRules, StoreName, UserConfig};
use crate::yaml::{ConfigComplaint, ConfigError, check_version, from_yaml, read, read_word};

/// Reads the user's file at `path`; a missing file is an empty configuration.
pub fn load(path: &Path) -> Result<UserConfig, ConfigError> {
    let none = UserConfig { path: path.to_owned(), ..UserConfig::default() };
    if !path.exists() {
        return Ok(none);
    }
    let user = read(path, |text| parse(text, path))?;
    Ok(UserConfig { path: path.to_owned(), ..user })
}

/// The highest price of a million tokens, in dollars.
const PRICE_MAX: f64 = 1_000_000.0;

/// The largest share of a project.
const WEIGHT_MAX: u32 = 100;

/// `config.yaml`: your own configuration for all projects
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "config.yaml", inline)]
struct UserFile {
    /// Version of the file format: 1
    #[schemars(with = "u64", range(min = 1, max = 1))]
    version: Spanned<u64>,
    /// Durability that shared stores must have: `safe`, or `unsafe` for stores that can lose acknowledged events
    /// [default: `safe`]
    #[schemars(with = "Option<String>")]
    durability: Option<Spanned<String>>,
    /// Shared stores by URL, with your credentials [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, StoreEntry>")]
    stores: BTreeMap<String, Spanned<StoreEntry>>,
    /// Hooks by hook point, for all your projects [default: none]
    #[serde(default)]
    hooks: HooksByPoint,
    /// Maximum limits of your projects
    #[serde(default)]
    limits: LimitEntries,
    /// Agents by name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, agents::AgentEntry>")]
    agents: agents::AgentEntries,
    /// Agent of sessions for which neither `--agent` nor the project names one [default: none]
    agent: Option<String>,
    /// Settings of your sessions
    #[serde(default, rename = "loop")]
    session: OwnLoop,
    /// `none` to complete tasks without gates. Completed tasks then release their dependents without proof.
    #[schemars(with = "Option<String>")]
    gates: Option<Spanned<String>>,
    /// Prices in dollars per million tokens, by model or agent, for agents that report tokens and no cost
    /// [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, PriceEntry>")]
    prices: BTreeMap<String, Spanned<PriceEntry>>,
    /// Sources of secrets, by project and name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, SecretEntry>>")]
    secrets: SecretEntries,
    /// Channels that report problems to you [default: none]
    #[serde(default)]
    #[schemars(with = "Vec<notify::ChannelEntry>")]
    notify: notify::ChannelEntries,
    /// Projects of the workers on this machine, by name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ProjectEntry>")]
    projects: BTreeMap<String, Spanned<ProjectEntry>>,
    /// Export of traces of sessions
    #[serde(default)]
    telemetry: TelemetryEntry,
    /// Proxy and certificates of hookloop's own requests
    #[serde(default)]
    network: NetworkEntry,
}

/// Prices of the tokens of a model, in dollars per million tokens
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    /// Price of input tokens
    input: f64,
    /// Price of output tokens
    output: f64,
    /// Price of input tokens from a cache [default: the price of `input`]
    cached: Option<f64>,
}

impl PriceEntry {
    fn read(&self) -> Result<TokenPrice, &'static str> {
        let micros = |dollars: f64| {
            let is_price = dollars.is_finite() && (0.0..=PRICE_MAX).contains(&dollars);
            is_price
                .then(|| (dollars * 1_000_000.0).round() as u64)
                .ok_or("a price is an amount of dollars per million tokens")
        };
        Ok(TokenPrice {
            input_micros: micros(self.input)?,
            cached_micros: micros(self.cached.unwrap_or(self.input))?,
            output_micros: micros(self.output)?,
        })
    }
}

fn read_prices(
    entries: BTreeMap<String, Spanned<PriceEntry>>,
) -> Result<BTreeMap<String, TokenPrice>, ConfigComplaint> {
    let price = |(name, Spanned { value, referenced, .. }): (String, Spanned<PriceEntry>)| {
        let price = value.read().map_err(|why| ConfigComplaint::new(referenced, why))?;
        Ok((name, price))
    };
    entries.into_iter().map(price).collect()
}

/// Project of workers: `path` or `repository`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectEntry {
    /// Path of the project's directory
    path: Option<PathBuf>,
    /// URL of the project's git repository, which workers clone
    repository: Option<String>,
    /// Base branch of the work in `repository` [default: the repository's default branch]
    branch: Option<String>,
    /// Number of latest commits to fetch from `repository` [default: all]
    #[schemars(range(min = 1))]
    depth: Option<u32>,
    /// Share of a worker's slots relative to other projects, 1 to 100 [default: 1]
    #[schemars(range(min = 1, max = 100))]
    weight: Option<u32>,
}

impl ProjectEntry {
    fn read(self, base: &Path) -> Result<ProjectRules, &'static str> {
        let ProjectEntry { path, repository, branch, depth, weight } = self;
        let home = match (path, repository) {
            (Some(_), None) if branch.is_some() || depth.is_some() => {
                return Err("`branch` and `depth` are of a `repository`");
            }
            (Some(path), None) => ProjectHome::Here(base.join(path)),
            (None, Some(url)) => ProjectHome::Repository(RepositorySource { url, branch, depth }),
            _ => return Err("a project has either `path` or `repository`"),
        };
        match (depth, weight.unwrap_or(1)) {
            (Some(0), _) => Err("`depth` is at least 1"),
            (_, weight @ 1..=WEIGHT_MAX) => Ok(ProjectRules { home, weight }),
            _ => Err("`weight` is 1 to 100"),
        }
    }
}

/// Access to the servers of a shared store
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StoreEntry")]
struct StoreEntry {
    /// Path of a credentials file of `nsc` [default: none]
    credentials: Option<PathBuf>,
    /// Path of a file with the seed of an nkey [default: none]
    nkey: Option<PathBuf>,
    /// Path of a file with the token of the servers [default: none]
    token: Option<PathBuf>,
    /// PEM file of the authorities of the servers' certificates [default: the system's]
    ca: Option<PathBuf>,
    /// Client certificate for servers that require one, with `key` [default: none]
    certificate: Option<PathBuf>,
    /// Key of the client certificate [default: none]
    key: Option<PathBuf>,
    /// Monitoring URLs of the servers, `http://host:port` each [default: each server's host at its port + 4000]
    #[serde(default)]
    monitoring_urls: Vec<String>,
    /// Prefix of the subjects of answers, if the servers' permissions require one [default: `_INBOX`]
    inbox_prefix: Option<String>,
    /// Servers that can lose acknowledged events: refused (`safe`) or used (`unsafe`) [default: `durability` of this
    /// file]
    #[schemars(with = "Option<String>")]
    durability: Option<Spanned<String>>,
}

/// The only valid word of `gates`.
struct NoGates;

impl FromStr for NoGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(NoGates),
            _ => Err(format!("`gates` is `none` or not given, not `{text}`")),
        }
    }
}

struct StoreWord(NatsDurability);

impl FromStr for StoreWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "safe" => Ok(StoreWord(NatsDurability::Safe)),
            "unsafe" => Ok(StoreWord(NatsDurability::Unsafe)),
            _ => Err(format!("`{text}` is not a durability: `safe` or `unsafe`")),
        }
    }
}

fn parse(text: &str, path: &Path) -> Result<UserConfig, ConfigComplaint> {
    let base = path.parent().unwrap_or(Path::new("/"));
    let file: UserFile = from_yaml(text)?;
    check_version(&file.version)?;
    let durability = match file.durability {
        Some(word) => read_word::<StoreWord>(word)?.0,
        None => NatsDurability::default(),
    };
    let mut stores = BTreeMap::new();
    for (urls, Spanned { value: entry, referenced, .. }) in file.stores {
        if !matches!(urls.parse(), Ok(StoreName::Nats(_))) {
            let message = BadStoreName(urls).to_string();
            return Err(ConfigComplaint::new(referenced, message));
        }
        let complain = |message: &str| Err(ConfigComplaint::new(referenced, message));
        let at = |path: PathBuf| base.join(path);
        let credentials = match (entry.credentials, entry.nkey, entry.token) {
            (Some(file), None, None) => Some(NatsCredentials::File(at(file))),
            (None, Some(seed), None) => Some(NatsCredentials::NKey(at(seed))),
            (None, None, Some(file)) => Some(NatsCredentials::Token(at(file))),
            (None, None, None) => None,
            _ => return complain("one of `credentials`, `nkey` and `token`"),
        };
        let certificate = match (entry.certificate, entry.key) {
            (Some(certificate), Some(key)) => Some((at(certificate), at(key))),
            (None, None) => None,
            _ => return complain("`certificate` and `key` go together"),
        };
        let access = NatsAccess {
            urls: urls.clone(),
            credentials,
            ca: entry.ca.map(at),
            certificate,
            monitoring_urls: entry.monitoring_urls,
            inbox_prefix: entry.inbox_prefix,
            durability: match entry.durability {
                Some(word) => read_word::<StoreWord>(word)?.0,
                None => durability,
            },
        };
        stores.insert(urls, access);
    }
    Ok(UserConfig {
        path: PathBuf::new(),
        hooks: own_hooks(file.hooks)?,
        limits: file.limits.over(LimitSettings::default())?,
        agents: agents::read(file.agents, HookSource::User)?,
        agent: file.agent,
        at_retry_limit: file.session.at_retry_limit(),
        wants_no_gates: file.gates.map(read_word::<NoGates>).transpose()?.is_some(),
        prices: read_prices(file.prices)?,
        secrets: book(file.secrets, path, base)?,
        policy: PolicySet::default(),
        channels: notify::read(file.notify, base)?,
        projects: read_projects(file.projects, base)?,
        telemetry: file.telemetry.read(base)?,
        network: file.network.read(base)?,
        durability,
        stores,
    })
}

/// Returns the JSON Schema of the user's file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(UserFile).to_value()
}

fn read_projects(
    entries: BTreeMap<String, Spanned<ProjectEntry>>,
    base: &Path,
) -> Result<BTreeMap<String, ProjectRules>, ConfigComplaint> {
    let mut projects = BTreeMap::new();
    for (name, Spanned { value, referenced, .. }) in entries {
        if name.parse::<ProjectName>().is_err() {
            let message = format!("`{name}` is not a project's name: letters, digits, `_` and `-`");
            return Err(ConfigComplaint::new(referenced, message));
        }
        let rules = value.read(base).map_err(|why| ConfigComplaint::new(referenced, why))?;
        projects.insert(name, rules);
    }
    Ok(projects)
}

/// Returns the path of the user's file: `$XDG_CONFIG_HOME/hookloop/config.yaml`, else
/// `~/.config/hookloop/config.yaml`.
pub fn user_file(xdg: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let absolute = |path: &&Path| path.is_absolute();
    let base = xdg.filter(absolute).map(Path::to_owned);
    let base = base.or_else(|| Some(home.filter(absolute)?.join(".config")))?;
    Some(base.join("hookloop/config.yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::NamedBy;

    fn user(text: &str) -> UserConfig {
        parse(text, Path::new("/home/u/.config/hookloop/config.yaml"))
            .map_err(|c| c.message)
            .unwrap()
    }

    #[test]
    fn token_prices_are_parsed() {
        let user = user("version: 1\nprices: {m: {input: 1.25, output: 10}}\n");
        let expected = TokenPrice {
            input_micros: 1_250_000,
            cached_micros: 1_250_000,
            output_micros: 10_000_000,
        };
        assert_eq!(user.prices["m"], expected);
        for wrong in ["{input: -1, output: 1}", "{input: 1}", "{input: 1, output: 1, cache: 1}"] {
            let text = format!("version: 1\nprices: {{m: {wrong}}}\n");
            assert!(parse(&text, Path::new("/u/config.yaml")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_repository_cannot_name_a_remote_store_unknown_to_the_user() {
        let user =
            user("version: 1\nstores: {'nats://a:1,nats://b:1': {inbox_prefix: _INBOX_w}}\n");
        for (urls, named_by, allowed) in [
            ("nats://evil:4222", NamedBy::Repository, false),
            ("nats://evil:4222", NamedBy::User, true),
            ("nats://127.0.0.1:4222", NamedBy::Repository, true),
            ("nats://localhost:4222", NamedBy::Repository, true),
            ("nats://[::1]:4222", NamedBy::Repository, true),
            ("nats://127.0.0.1:4222,nats://evil:4222", NamedBy::Repository, false),
            ("nats://127.0.0.1.evil:4222", NamedBy::Repository, false),
            ("nats://b:1", NamedBy::Repository, true),
            ("nats://b:1,nats://evil:1", NamedBy::Repository, false),
        ] {
            assert_eq!(user.access(urls, named_by).is_ok(), allowed, "{urls} {named_by:?}");
        }
        let access = user.access("nats://b:1", NamedBy::User).unwrap();
        assert_eq!(access.inbox_prefix.unwrap(), "_INBOX_w");
    }

    #[test]
    fn unsafe_durability_is_set_for_all_stores_or_for_one() {
        let everywhere = user("version: 1\ndurability: unsafe\n");
        let access = everywhere.access("nats://h:1", NamedBy::User).unwrap();
        assert_eq!(access.durability, NatsDurability::Unsafe);
        let one = user("version: 1\nstores: {'nats://h:1': {durability: unsafe}}\n");
        assert_eq!(
            one.access("nats://h:1", NamedBy::User).unwrap().durability,
            NatsDurability::Unsafe
        );
        assert_eq!(
            one.access("nats://i:1", NamedBy::User).unwrap().durability,
            NatsDurability::Safe
        );
    }

    #[test]
    fn credential_paths_are_relative_to_the_file_and_mistakes_have_a_line() {
        let user = user("version: 1\nstores:\n  nats://h:1: {credentials: w.creds}\n");
        let access = user.access("nats://h:1", NamedBy::User).unwrap();
        let Some(NatsCredentials::File(path)) = access.credentials else {
            panic!("no credentials")
        };
        assert_eq!(path, Path::new("/home/u/.config/hookloop/w.creds"));
        for (text, line) in [
            ("version: 1\ndurability: sure\n", 2),
            ("version: 1\nstores:\n  nats://h:1: {credentials: a, nkey: b}\n", 3),
            ("version: 1\nstores:\n  nats://h:1: {password: a}\n", 3),
            ("version: 1\nstores:\n  http://h: {}\n", 3),
        ] {
            let complaint = parse(text, Path::new("/")).map(drop).unwrap_err();
            assert_eq!(
                complaint.at.map(|at| at.line()),
                Some(line),
                "{text}: {}",
                complaint.message
            );
        }
    }

    #[test]
    fn store_names_are_parsed() {
        for good in ["sqlite", "nats://h:1", "tls://h", "nats://a:1,nats://b:2"] {
            assert_eq!(good.parse::<StoreName>().unwrap().to_string(), good);
        }
        for bad in ["", "nats://", "http://h", "nats://user:secret@h:1", "nats://h:1,", "nats:h"] {
            assert!(bad.parse::<StoreName>().is_err(), "{bad}");
        }
    }
}
