//! The HTTP server: loopback alone, for agents by MCP with a token, and for people by pages that they log in to.
//!
//! - [`guard`]: who may ask, decided before anything else is looked at
//! - [`token`]: the files with tokens; [`login`]: who has logged in
//! - [`routes`]: every path there is; [`headers`]: what browsers are told with each answer
//! - [`listen`]: connections, and how many, how long
//! - [`dashboard`]: pages found and answered; [`pages`]: what each shows; [`page`]: how one is put together
//! - [`sites`]: the projects that are shown; [`records`]: sessions of theirs that are looked at
//! - [`topics`]: what events change; [`live`]: pages that are told of it
//! - [`actions`]: what people decide on pages
//! - [`assets`], [`query`], [`words`]: files of pages, their addresses, how they say things

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

use tokio::net::TcpListener;

use crate::error::{CliError, Result};
use crate::mcp::ToolService;
use dashboard::Dashboard;
use guard::{Guard, LOGIN};
use login::Logins;
use routes::Parts;

pub(crate) use metrics_endpoint::MetricsEndpoint;
pub(crate) use routes::MCP;
pub(crate) use sites::Sites;
pub(crate) use token::{AGENTS, PEOPLE, Token};

/// A server that has its port.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    /// What logs in once.
    code: String,
    parts: Parts,
}

/// What agents show, and what people log in with.
pub(crate) struct Tokens {
    pub(crate) agents: Token,
    pub(crate) people: Token,
}

impl Server {
    pub(crate) async fn bind(
        (host, port): (IpAddr, u16),
        tokens: Tokens,
        service: Arc<ToolService>,
        sites: Sites,
    ) -> Result<Server> {
        let busy = |error| {
            let failed = CliError::system(format!("{host}:{port}: {error}"));
            failed.hint("hookloop serve --port 0")
        };
        let listener = TcpListener::bind((host, port)).await.map_err(busy)?;
        let address = listener.local_addr()?;
        let (logins, code) = Logins::new(tokens.people)?;
        let guard = Arc::new(Guard::new(address.port(), tokens.agents, logins));
        let dashboard = Arc::new(Dashboard::new(sites)?);
        Ok(Server { listener, address, code, parts: Parts { service, dashboard, guard } })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A link that logs in, once.
    pub(crate) fn link(&self) -> String {
        format!("http://{}{LOGIN}?code={}", self.address, self.code)
    }

    /// Serves until `stop`, then finishes what was begun, within bounds.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let router = routes::router(&self.parts);
        let places = self.parts.dashboard.places.clone();
        let stop = async {
            stop.await;
            // Pages that follow would do so for ever.
            places.close();
        };
        listen::serve(self.listener, router, stop).await;
    }
}

#[cfg(test)]
mod tests;
