//! The user's own configuration: hooks and limits for every project, which stores there are, and who one
//! is to them.
//!
//! A project adds hooks and tightens limits; it takes none of the user's hooks away and widens nothing.
//! A repository may name a store, but not how to get in, nor that it may be unsafe; and one that is
//! not on this machine must be listed here before a repository's word leads anyone to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hookloop_core::hook::Hook;
use hookloop_core::price::TokenPrice;
use hookloop_core::session::AtRetryLimit;
use hookloop_core::store_config::{NatsAccess, NatsDurability};
use hookloop_http::settings::UserNetwork;

use crate::agents::Settings;
use crate::channels::Channel;
use crate::limits::Limits;
use crate::paths::Place;
use crate::policy::Policies;
use crate::repository::Source;
use crate::secret_references::Book;
use crate::telemetry::Wish;

/// Where a project's log is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreName {
    /// In a file on this machine.
    #[default]
    Sqlite,
    /// On NATS servers: URLs with commas between.
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

/// Who chose the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The user, by `HOOKLOOP_STORE`.
    User,
    /// The file of a repository.
    Repository,
}

/// The user's configuration; empty where there is no file.
#[derive(Clone, Debug, Default)]
pub struct User {
    pub path: PathBuf,
    /// Hooks that run in every project.
    pub hooks: Vec<Hook>,
    /// The widest that a project may have.
    pub limits: Limits,
    pub agents: Vec<Settings>,
    /// Who does the work where neither the command line nor the project names anybody.
    pub agent: Option<String>,
    /// What happens when gates have sent the agent back as often as they may.
    pub at_retry_limit: AtRetryLimit,
    /// No gates are wanted: work that no gate proved releases its dependents.
    pub wants_no_gates: bool,
    /// Prices of tokens, by model or agent.
    pub prices: BTreeMap<String, TokenPrice>,
    /// Where secrets are.
    pub secrets: Book,
    /// What is above the user.
    pub policy: Policies,
    /// How the user is told of what needs a human.
    pub channels: Vec<Channel>,
    /// What workers on this machine work on, by name.
    pub projects: BTreeMap<String, ProjectRules>,
    /// Where traces of sessions go.
    pub telemetry: Wish,
    /// The proxy and certificates of requests.
    pub network: UserNetwork,
    pub(crate) durability: NatsDurability,
    pub(crate) stores: BTreeMap<String, NatsAccess>,
}

/// A project that workers on this machine serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRules {
    pub home: ProjectHome,
    /// Its share of a worker's hands, against that of others.
    pub weight: u32,
}

/// Where a project is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectHome {
    /// In a directory of the user's.
    Here(PathBuf),
    /// In a repository of which workers have a copy of their own.
    Repository(Source),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this repository wants to keep its log at {urls}, which your own configuration does not list"
)]
pub struct Unlisted {
    pub urls: String,
    /// The user's file.
    pub path: PathBuf,
}

impl User {
    /// The user as the policies let them be.
    #[must_use]
    pub fn under(self, policy: Policies) -> User {
        User { limits: self.limits.within(policy.limits()), policy, ..self }
    }

    /// Where workers of this machine cloned the project from, by the user's own word: what a copy says of itself does not
    /// count.
    pub fn cloned_from(&self, place: &Place) -> Option<&str> {
        match &self.projects.get(place.copy_of()?)?.home {
            ProjectHome::Repository(source) => Some(&source.url),
            ProjectHome::Here(_) => None,
        }
    }

    /// How to reach `urls`. A repository leads nobody to a machine that the user does not know.
    pub fn access(&self, urls: &str, named_by: NamedBy) -> Result<NatsAccess, Unlisted> {
        let urls_set = |urls: &str| {
            urls.split(',').map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let listed =
            self.stores.iter().find(|(known, _)| urls_set(known).is_superset(&urls_set(urls)));
        match listed {
            Some((_, access)) => Ok(NatsAccess { urls: urls.to_owned(), ..access.clone() }),
            None if named_by == NamedBy::Repository && !urls.split(',').all(is_loopback) => {
                Err(Unlisted { urls: urls.to_owned(), path: self.path.clone() })
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
