//! Connections to servers: one for each log, or one for all logs of a process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use tokio::runtime::Runtime;

use super::access::{Access, Credentials, Denials};
use super::{JetStreamError, REQUEST_TIMEOUT};

/// A connection, with the runtime that moves its bytes.
pub(super) struct Link {
    pub(super) runtime: Option<Runtime>,
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) denials: Denials,
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Link {
    /// One of those that `access` shares, or one of its own.
    pub(super) fn to(access: &Access) -> Result<Arc<Link>, JetStreamError> {
        match &access.links {
            Some(links) => links.to(access),
            None => Link::open(access).map(Arc::new),
        }
    }

    fn open(access: &Access) -> Result<Link, JetStreamError> {
        let mut builder = match access.brief {
            true => tokio::runtime::Builder::new_current_thread(),
            false => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = builder
            .worker_threads(1)
            .thread_name("hookloop-nats")
            .enable_all()
            .build()
            .map_err(|error| access.unreachable(error))?;
        let denials = Denials::default();
        let client = runtime.block_on(access.connect(&denials))?;
        let entered = runtime.enter();
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        drop(entered);
        Ok(Link { runtime: Some(runtime), client, context, denials })
    }
}

/// Connections that the logs of a process share: a worker would have one for each of its projects otherwise, and the
/// servers that many of each worker. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Links(Arc<Mutex<Vec<Shared>>>);

struct Shared {
    way: Way,
    link: Weak<Link>,
}

/// What makes two connections the same.
#[derive(PartialEq, Eq)]
struct Way {
    urls: String,
    credentials: Option<Credentials>,
    ca: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
    inbox: Option<String>,
    brief: bool,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links")
    }
}

impl Links {
    fn to(&self, access: &Access) -> Result<Arc<Link>, JetStreamError> {
        let Access { urls, credentials, ca, certificate, inbox, brief, .. } = access.clone();
        let way = Way { urls, credentials, ca, certificate, inbox, brief };
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|shared| shared.link.strong_count() > 0);
        let known = links.iter().find(|shared| shared.way == way);
        if let Some(link) = known.and_then(|shared| shared.link.upgrade()) {
            return Ok(link);
        }
        let link = Arc::new(Link::open(access)?);
        links.push(Shared { way, link: Arc::downgrade(&link) });
        Ok(link)
    }
}
