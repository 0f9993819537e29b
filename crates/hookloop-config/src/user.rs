//! The user's own configuration: hooks and limits for every project, stores and their credentials.
//!
//! A project adds hooks and tightens limits. It removes none of the user's hooks and widens
//! nothing. A repository may name a store, but it can neither name credentials nor permit an unsafe
//! store. A store on another machine must be listed here before a repository can name it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hookloop_core::hook::Hook;
use hookloop_core::price::TokenPrice;
use hookloop_core::session::AtRetryLimit;
use hookloop_core::store_config::{NatsAccess, NatsDurability};
use hookloop_http::settings::UserNetwork;

use crate::agents::AgentSettings;
use crate::channels::NotificationChannel;
use crate::limits::LimitSettings;
use crate::paths::ProjectPaths;
use crate::policy::PolicySet;
use crate::repository::RepositorySource;
use crate::secret_references::SecretBook;
use crate::telemetry::TelemetryConfig;

/// The location of a project's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreName {
    /// A file on this machine.
    #[default]
    Sqlite,
    /// NATS servers: URLs, separated by commas.
    Nats(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a store: `sqlite`, or `nats://host:port` (several with commas between)")]
pub struct BadStoreName(pub(crate) String);

impl FromStr for StoreName {
    type Err = BadStoreName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_server = |url: &str| {
            let host = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
            host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@', ' ']))
        };
        match text {
            "sqlite" => Ok(StoreName::Sqlite),
            urls if urls.split(',').all(is_server) => Ok(StoreName::Nats(urls.to_owned())),
            _ => Err(BadStoreName(text.to_owned())),
        }
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreName::Sqlite => f.write_str("sqlite"),
            StoreName::Nats(urls) => f.write_str(urls),
        }
    }
}

/// The source of the store's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The user, by `HOOKLOOP_STORE`.
    User,
    /// The file of a repository.
    Repository,
}

/// The user's configuration; empty without a file.
#[derive(Clone, Debug, Default)]
pub struct UserConfig {
    pub path: PathBuf,
    /// Hooks that run in every project.
    pub hooks: Vec<Hook>,
    /// The upper bound for a project's limits.
    pub limits: LimitSettings,
    pub agents: Vec<AgentSettings>,
    /// The default agent, if neither the command line nor the project names one.
    pub agent: Option<String>,
    /// The action at the retry limit of gates.
    pub at_retry_limit: AtRetryLimit,
    /// Gates are turned off: work that no gate proved releases its dependents.
    pub wants_no_gates: bool,
    /// Prices of tokens, by model or agent.
    pub prices: BTreeMap<String, TokenPrice>,
    /// References to secrets.
    pub secrets: SecretBook,
    /// The policies above the user.
    pub policy: PolicySet,
    /// The channels for notifications.
    pub channels: Vec<NotificationChannel>,
    /// The projects that workers on this machine serve, by name.
    pub projects: BTreeMap<String, ProjectRules>,
    /// The destination of traces.
    pub telemetry: TelemetryConfig,
    /// The proxy and certificates of requests.
    pub network: UserNetwork,
    pub(crate) durability: NatsDurability,
    pub(crate) stores: BTreeMap<String, NatsAccess>,
}

/// A project that workers on this machine serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRules {
    pub home: ProjectHome,
    /// The project's share of a worker's slots, relative to other projects.
    pub weight: u32,
}

/// The location of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectHome {
    /// A directory of the user.
    Here(PathBuf),
    /// A repository that workers clone.
    Repository(RepositorySource),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this repository wants to keep its log at {urls}, which your own configuration does not list"
)]
pub struct UnlistedStore {
    pub urls: String,
    /// The user's file.
    pub path: PathBuf,
}

impl UserConfig {
    /// Returns the configuration within the limits of the policies.
    #[must_use]
    pub fn under(self, policy: PolicySet) -> UserConfig {
        UserConfig { limits: self.limits.within(policy.limits()), policy, ..self }
    }

    /// Returns the URL that workers of this machine cloned the project from, by the user's configuration. A clone's
    /// own statement does not count.
    pub fn cloned_from(&self, place: &ProjectPaths) -> Option<&str> {
        match &self.projects.get(place.copy_of()?)?.home {
            ProjectHome::Repository(source) => Some(&source.url),
            ProjectHome::Here(_) => None,
        }
    }

    /// Returns how to reach `urls`. A repository cannot lead to a server that the user has not listed, unless it is
    /// on this machine.
    pub fn access(&self, urls: &str, named_by: NamedBy) -> Result<NatsAccess, UnlistedStore> {
        let urls_set = |urls: &str| {
            urls.split(',').map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let listed =
            self.stores.iter().find(|(known, _)| urls_set(known).is_superset(&urls_set(urls)));
        match listed {
            Some((_, access)) => Ok(NatsAccess { urls: urls.to_owned(), ..access.clone() }),
            None if named_by == NamedBy::Repository && !urls.split(',').all(is_loopback) => {
                Err(UnlistedStore { urls: urls.to_owned(), path: self.path.clone() })
            }
            None => Ok(NatsAccess {
                urls: urls.to_owned(),
                durability: self.durability,
                ..NatsAccess::default()
            }),
        }
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
