//! The HTTP server: loopback alone, with a token, for MCP now and for what follows.
//!
//! - [`guard`]: who may ask, decided before anything else is looked at
//! - [`token`]: the file with the token
//! - [`routes`]: every path there is
//! - [`listen`]: connections, and how many, how long

mod guard;
mod listen;
mod routes;
mod token;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::mcp::Counter;
use guard::Guard;
use routes::Parts;

pub(crate) use listen::serve;
pub(crate) use routes::MCP;
pub(crate) use token::Token;

/// A server that has its port.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    guard: Arc<Guard>,
    parts: Parts,
}

impl Server {
    pub(crate) async fn bind(
        (host, port): (IpAddr, u16),
        token: Token,
        counter: Arc<Counter>,
    ) -> std::io::Result<Server> {
        let listener = TcpListener::bind((host, port)).await?;
        let address = listener.local_addr()?;
        let guard = Arc::new(Guard::new(address.port(), token));
        Ok(Server { listener, address, guard, parts: Parts { counter } })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then finishes what was begun, within bounds.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let router = routes::router(&self.parts, &self.guard);
        listen::serve(self.listener, router, stop).await;
    }
}

#[cfg(test)]
mod tests;
