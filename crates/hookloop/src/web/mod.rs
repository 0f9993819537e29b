//! The HTTP server on the loopback interface: MCP for agents with a token, pages for people with a login.
//!
//! - [`guard`]: decides whether a request is allowed, before anything else
//! - [`token`]: the files with tokens; [`login`]: logins of people
//! - [`routes`]: every path; [`headers`]: security headers
//! - [`listen`]: connections, with limits
//! - [`dashboard`]: finds and renders pages; [`pages`]: the content of each page; [`page`]: builds a page of its parts
//! - [`sites`]: the projects that are shown; [`records`]: their sessions that are open in a page
//! - [`topics`]: the topics that events change; [`live`]: reports changes to pages
//! - [`actions`]: decisions on pages
//! - [`assets`], [`query`], [`words`]: files, addresses, times and states of pages

mod actions;
mod assets;
mod dashboard;
mod guard;
mod headers;
mod listen;
mod live;
mod login;
mod metrics_endpoint;
mod page;
mod pages;
mod query;
mod records;
mod routes;
mod sites;
mod token;
mod topics;
mod words;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dashboard::Dashboard;
use guard::{LOGIN, RequestGuard};
use login::LoginTable;
use routes::ServerParts;
use tokio::net::TcpListener;

use crate::error::{CliError, CliResult};
use crate::mcp::ToolService;

pub(crate) use metrics_endpoint::MetricsEndpoint;
pub(crate) use routes::MCP;
pub(crate) use sites::ProjectSites;
pub(crate) use token::{AGENTS, AccessToken, PEOPLE};

/// A server that is bound to its port.
pub(crate) struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    /// The code that logs in once.
    code: String,
    parts: ServerParts,
}

/// The tokens of agents and of people.
pub(crate) struct ServerTokens {
    pub(crate) agents: AccessToken,
    pub(crate) people: AccessToken,
}

impl WebServer {
    pub(crate) async fn bind(
        (host, port): (IpAddr, u16),
        tokens: ServerTokens,
        service: Arc<ToolService>,
        sites: ProjectSites,
    ) -> CliResult<WebServer> {
        let busy = |error| {
            let failed = CliError::system(format!("{host}:{port}: {error}"));
            failed.hint("hookloop serve --port 0")
        };
        let listener = TcpListener::bind((host, port)).await.map_err(busy)?;
        let address = listener.local_addr()?;
        let (logins, code) = LoginTable::new(tokens.people)?;
        let guard = Arc::new(RequestGuard::new(address.port(), tokens.agents, logins));
        let dashboard = Arc::new(Dashboard::new(sites)?);
        Ok(WebServer { listener, address, code, parts: ServerParts { service, dashboard, guard } })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a link that logs in once.
    pub(crate) fn link(&self) -> String {
        format!("http://{}{LOGIN}?code={}", self.address, self.code)
    }

    /// Serves until `stop`, then finishes running requests within a limit.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let router = routes::router(&self.parts);
        let places = self.parts.dashboard.places.clone();
        let stop = async {
            stop.await;
            // Live connections would stay open for ever.
            places.close();
        };
        listen::serve(self.listener, router, stop).await;
    }
}

#[cfg(test)]
mod tests;
