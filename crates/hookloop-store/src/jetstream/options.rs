//! The connection options of a process for the servers of a store.

use std::sync::Arc;

use hookloop_core::store_config::{NatsAccess, NatsDurability};
use hookloop_http::HttpClient;

use super::error::JetStreamError;
use super::link::{NatsLink, NatsLinks};

/// The servers and credentials of a configuration, and how this process uses them.
#[derive(Clone, Debug, Default)]
pub struct NatsOptions {
    pub access: NatsAccess,
    /// Whether the process sends few requests and ends soon. Its own thread then moves the bytes.
    ///
    /// Otherwise the connection has a thread of its own.
    pub brief: bool,
    /// Connections that are shared with other logs. Without them, each log has its own.
    pub links: Option<NatsLinks>,
    /// The client for requests to monitoring URLs.
    pub http: HttpClient,
}

impl From<NatsAccess> for NatsOptions {
    fn from(access: NatsAccess) -> NatsOptions {
        NatsOptions { access, ..NatsOptions::default() }
    }
}

impl NatsOptions {
    /// Creates options for servers without credentials, with their monitoring URLs.
    pub fn at(urls: impl Into<String>, monitoring_urls: Vec<String>) -> NatsOptions {
        NatsOptions::from(NatsAccess {
            urls: urls.into(),
            monitoring_urls,
            ..NatsAccess::default()
        })
    }

    pub(super) fn accepts_unsafe(&self) -> bool {
        self.access.durability == NatsDurability::Unsafe
    }

    /// Returns a shared connection, or opens one for this log only.
    pub(super) fn link(&self) -> Result<Arc<NatsLink>, JetStreamError> {
        match &self.links {
            Some(links) => links.to(&self.access, self.brief),
            None => NatsLink::open(&self.access, self.brief).map(Arc::new),
        }
    }
}
