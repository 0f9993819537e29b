//! The HTTP client of every request that hookloop sends: forge, webhooks, notifications, traces, monitors.
//!
//! - [`settings`]: the proxy and the certificates, by the environment and the user's own file
//! - [`proxy`]: the addresses that a proxy is used for
//! - [`certificates`]: the authorities that servers are checked against
//! - [`failure`]: the cause of a failed request, and the next step
//! - `forward`: plain HTTP through a proxy
//! - `issuer`: the authority that a server's certificate is from
//!
//! A repository has no part in any of it. Redirects are never followed, and certificates are loaded by the first
//! request that needs them.

pub mod certificates;
pub mod failure;
mod forward;
mod issuer;
pub mod proxy;
pub mod settings;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use certificates::TrustedRoots;
use forward::ForwardProxy;
use proxy::{ProxyRoute, ProxyServer};
use settings::{NetworkSettings, UserNetwork};
use ureq::http::Uri;
use ureq::tls::TlsConfig;
use ureq::{Agent, ProxyProtocol};

/// The reason why a request cannot be prepared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// `name` is a variable or a key of the user's file. Its value may hold a password.
    #[error("{name} is not the address of a proxy: write it as `http://HOST:PORT`")]
    BadProxy { name: String },
    #[error("{name}: {}: {why}", path.display())]
    Certificates { name: String, path: PathBuf, why: String },
    /// A URL may hold a password: it is not shown.
    #[error("the address is not a URL of http or https")]
    BadUrl,
}

/// The time limit of a request, and the certificates that it accepts.
#[derive(Clone, Debug, Default)]
pub struct RequestLimits {
    /// Time to connect, the proxy and TLS included.
    pub connect: Option<Duration>,
    /// Time for everything.
    pub total: Option<Duration>,
    /// The only authorities that are accepted, instead of the usual ones.
    pub only_ca_file: Option<PathBuf>,
}

impl RequestLimits {
    pub fn within(total: Duration) -> RequestLimits {
        RequestLimits { total: Some(total), ..RequestLimits::default() }
    }
}

/// The client of all outgoing requests, with the user's network settings.
#[derive(Clone)]
pub struct HttpClient {
    settings: Result<Arc<NetworkSettings>, NetworkError>,
    /// Loaded by the first request that needs them.
    roots: Arc<OnceLock<Result<TrustedRoots, NetworkError>>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpClient with {:?}", self.settings)
    }
}

/// A client without a proxy and with the system's certificates.
impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient { settings: Ok(Arc::default()), roots: Arc::default() }
    }
}

impl HttpClient {
    /// Creates a client. Invalid settings fail each request, and no request bypasses them.
    pub fn new(environment: &[(OsString, OsString)], user: &UserNetwork) -> HttpClient {
        let settings = NetworkSettings::new(environment, user).map(Arc::new);
        HttpClient { settings, roots: Arc::default() }
    }

    pub fn settings(&self) -> Result<&NetworkSettings, NetworkError> {
        self.settings.as_deref().map_err(Clone::clone)
    }

    /// Returns the root certificates that servers are checked against.
    pub fn roots(&self) -> Result<&TrustedRoots, NetworkError> {
        let sources = &self.settings()?.certificates;
        self.roots.get_or_init(|| sources.load()).as_ref().map_err(Clone::clone)
    }

    /// Returns the proxy for `url`, if there is one.
    pub fn route(&self, url: &str) -> Result<ProxyRoute<'_>, NetworkError> {
        let uri = parsed(url)?;
        Ok(self.settings()?.route(&uri))
    }

    /// Returns an agent for requests to the host of `url` only, because proxies differ by host.
    pub fn agent(&self, url: &str, limits: &RequestLimits) -> Result<Agent, NetworkError> {
        let uri = parsed(url)?;
        let route = self.settings()?.route(&uri);
        let server = route.server();
        // Paths and queries may hold secrets.
        tracing::debug!(host = without_user(url), by_proxy = server.is_some(), "a request");
        let mut config = Agent::config_builder()
            .timeout_connect(limits.connect)
            .timeout_global(limits.total)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent("hookloop")
            .proxy(None);
        let is_tls = uri.scheme_str() == Some("https")
            || server.is_some_and(|server| server.protocol() == ProxyProtocol::Https);
        // A configured file must be readable, even if this request does not need it.
        let named = limits.only_ca_file.as_deref().map(certificates::only).transpose()?;
        let roots = match named {
            Some(roots) => Some(roots),
            None if is_tls => Some(self.roots()?.roots.clone()),
            None => None,
        };
        if let Some(roots) = roots {
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        let Some(server) = server else { return Ok(config.build().into()) };
        if uri.scheme_str() == Some("http") && server.protocol() == ProxyProtocol::Http {
            // Proxies commonly allow tunnels only to port 443, so plain HTTP goes to the proxy
            // itself.
            let config = config.max_idle_connections(0).build();
            return Ok(ForwardProxy::new(server, &uri).agent(config));
        }
        Ok(config.proxy(Some(server.as_ureq().clone())).build().into())
    }

    /// Explains a failed request to `url`, with the next step if there is one.
    pub fn explain(&self, url: &str, error: &ureq::Error) -> failure::RequestFailure {
        // A request with an address or settings that can't be used has failed before.
        let route = self.route(url).ok();
        let failure = failure::explain(url, route.as_ref().and_then(ProxyRoute::server), error);
        tracing::debug!(host = without_user(url), why = failure.message, "a request failed");
        failure
    }

    /// Returns the issuer of the server's certificate, accepted or not, or `None` if it is unknown.
    pub fn issuer(&self, url: &str, total: Duration) -> Option<String> {
        let route = self.route(url).ok()?;
        issuer::ask(url, route.server(), total)
    }
}

fn parsed(url: &str) -> Result<Uri, NetworkError> {
    let bad = || NetworkError::BadUrl;
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if is_http && uri.host().is_some_and(|host| !host.is_empty()) { Ok(uri) } else { Err(bad()) }
}

/// Returns the host and port of a URL that may contain a password or a secret path.
pub(crate) fn without_user(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Returns the passwords of proxies among the variables, so that stored text can be redacted.
pub fn proxy_passwords(environment: &[(OsString, OsString)]) -> Vec<String> {
    let is_proxy = |name: &OsString| {
        let name = name.to_str().unwrap_or_default();
        settings::PROXY_VARIABLES.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    let named = environment.iter().filter(|(name, _)| is_proxy(name));
    let servers = named.filter_map(|(name, value)| {
        ProxyServer::parse(value.to_str()?, name.to_str().unwrap_or_default()).ok()
    });
    servers.filter_map(|server| server.as_ureq().password().map(str::to_owned)).collect()
}
