//! Connections to servers: one for each log, or one for all logs of a process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use hookloop_core::store_config::{NatsAccess, NatsCredentials};
use tokio::runtime::Runtime;

use super::connect;
use super::denials::PermissionDenials;
use super::error::JetStreamError;
use super::retry::REQUEST_TIMEOUT;

/// A connection, with the runtime that moves its bytes.
pub(super) struct NatsLink {
    pub(super) runtime: Option<Runtime>,
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) denials: PermissionDenials,
}

impl Drop for NatsLink {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl NatsLink {
    pub(super) fn open(access: &NatsAccess, is_brief: bool) -> Result<NatsLink, JetStreamError> {
        let mut builder = if is_brief {
            tokio::runtime::Builder::new_current_thread()
        } else {
            tokio::runtime::Builder::new_multi_thread()
        };
        let runtime = builder
            .worker_threads(1)
            .thread_name("hookloop-nats")
            .enable_all()
            .build()
            .map_err(|error| connect::unreachable(access, error))?;
        let denials = PermissionDenials::default();
        let client = runtime.block_on(connect::connect(access, is_brief, &denials))?;
        let entered = runtime.enter();
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        drop(entered);
        Ok(NatsLink { runtime: Some(runtime), client, context, denials })
    }
}

/// Connections that the logs of a process share. Clones share the same connections.
///
/// Otherwise a worker would have a connection for each of its projects.
#[derive(Clone, Default)]
pub struct NatsLinks(Arc<Mutex<Vec<SharedLink>>>);

struct SharedLink {
    way: LinkKey,
    link: Weak<NatsLink>,
}

/// The properties that make two connections the same.
#[derive(PartialEq, Eq)]
struct LinkKey {
    urls: String,
    credentials: Option<NatsCredentials>,
    ca: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
    inbox_prefix: Option<String>,
    is_brief: bool,
}

impl std::fmt::Debug for NatsLinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NatsLinks")
    }
}

impl NatsLinks {
    pub(super) fn to(
        &self,
        access: &NatsAccess,
        is_brief: bool,
    ) -> Result<Arc<NatsLink>, JetStreamError> {
        let NatsAccess { urls, credentials, ca, certificate, inbox_prefix, .. } = access.clone();
        let way = LinkKey { urls, credentials, ca, certificate, inbox_prefix, is_brief };
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|shared| shared.link.strong_count() > 0);
        let known = links.iter().find(|shared| shared.way == way);
        if let Some(link) = known.and_then(|shared| shared.link.upgrade()) {
            return Ok(link);
        }
        let link = Arc::new(NatsLink::open(access, is_brief)?);
        links.push(SharedLink { way, link: Arc::downgrade(&link) });
        Ok(link)
    }
}
