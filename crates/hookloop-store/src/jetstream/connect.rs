//! Connects to the servers of a store.

use std::fmt;
use std::future::{Ready, ready};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, ReconnectToServer, Server, ServerAddr,
    ServerInfo,
};
use hookloop_core::store_config::{NatsAccess, NatsCredentials};

use super::denials::PermissionDenials;
use super::error::JetStreamError;
use super::retry::jittered;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses between reconnects: the first, and the longest.
const RECONNECT_FIRST: Duration = Duration::from_millis(10);
const RECONNECT_LONGEST: Duration = Duration::from_secs(2);
/// Interval of pings. A connection without an answer to two of them is dead.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// The most messages that wait for a follower. Further messages are dropped and requested again.
const BUFFERED: usize = 65_536;

pub(super) fn unreachable(access: &NatsAccess, reason: impl fmt::Display) -> JetStreamError {
    JetStreamError::Unreachable { urls: access.urls.clone(), reason: reason.to_string() }
}

pub(super) fn servers(access: &NatsAccess) -> Result<Vec<ServerAddr>, JetStreamError> {
    let parse = |url: &str| url.trim().parse().map_err(|error| unreachable(access, error));
    access.urls.split(',').map(parse).collect()
}

pub(super) async fn connect(
    access: &NatsAccess,
    is_brief: bool,
    denials: &PermissionDenials,
) -> Result<Client, JetStreamError> {
    let addresses = servers(access)?;
    if is_brief {
        // The client would wait for a timer tick first, and then try one server after another. It
        // does so only if the server that is picked here does not answer.
        let at_once = options(access, denials)?.reconnect_to_server_callback(first_at_once());
        match at_once.connect(addresses.clone()).await.map_err(|error| refused(access, &error)) {
            Err(JetStreamError::Unreachable { .. }) => {}
            connected => return connected,
        }
    }
    options(access, denials)?.connect(addresses).await.map_err(|error| refused(access, &error))
}

/// Reports a change of the connection.
fn report(event: &Event) {
    match event {
        Event::Connected => tracing::debug!("connected to NATS"),
        Event::Disconnected => tracing::info!("the connection to NATS is lost"),
        Event::SlowConsumer(subscription) => {
            tracing::warn!(subscription, "messages arrive faster than they are read");
        }
        Event::ServerError(error) => tracing::warn!(%error, "the NATS server reports an error"),
        Event::ClientError(error) => tracing::warn!(%error, "the NATS client reports an error"),
        event => tracing::debug!(?event, "the connection to NATS changes"),
    }
}

fn options(
    access: &NatsAccess,
    denials: &PermissionDenials,
) -> Result<ConnectOptions, JetStreamError> {
    let denials = denials.clone();
    let connected = Arc::new(AtomicBool::new(false));
    let was_connected = connected.clone();
    let mut options = ConnectOptions::new()
        .name("hookloop")
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(BUFFERED)
        // The client also asks before it connects at all.
        .reconnect_delay_callback(move |attempts| {
            if was_connected.load(Ordering::Relaxed) || attempts > 1 {
                reconnect_pause(attempts)
            } else {
                Duration::ZERO
            }
        })
        .event_callback(move |event| {
            connected.fetch_or(matches!(event, Event::Connected), Ordering::Relaxed);
            report(&event);
            denials.note(&event);
            ready(())
        });
    if let Some(prefix) = &access.inbox_prefix {
        options = options.custom_inbox_prefix(prefix);
    }
    if let Some(ca) = &access.ca {
        readable(ca)?;
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &access.certificate {
        readable(certificate)?;
        readable(key)?;
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(match &access.credentials {
        None => options,
        Some(NatsCredentials::File(path)) => {
            options.credentials(&secret(path)?).map_err(|error| unusable(path, &error))?
        }
        Some(NatsCredentials::NKey(path)) => options.nkey(secret(path)?.trim().to_owned()),
        Some(NatsCredentials::Token(path)) => options.token(secret(path)?.trim().to_owned()),
    })
}

/// Distinguishes a server that refuses this user from one that is unreachable.
fn refused(access: &NatsAccess, error: &async_nats::ConnectError) -> JetStreamError {
    let urls = access.urls.clone();
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            JetStreamError::UnknownUser { urls, reason: error.to_string() }
        }
        ConnectErrorKind::Tls | ConnectErrorKind::Io if is_about_tls(&error.to_string()) => {
            JetStreamError::Untrusted { urls, reason: error.to_string() }
        }
        _ => unreachable(access, error),
    }
}

/// Picks a random server for the first connection, without a pause. The client picks later ones.
fn first_at_once() -> impl Fn(Vec<Server>, ServerInfo) -> Ready<Option<ReconnectToServer>> {
    let is_picked = AtomicBool::new(false);
    move |servers, _| {
        use std::hash::{BuildHasher, RandomState};
        let at = RandomState::new().hash_one(0) as usize % servers.len().max(1);
        let first = servers.get(at).filter(|_| !is_picked.swap(true, Ordering::Relaxed));
        ready(first.map(|server| ReconnectToServer {
            addr: server.addr.clone(),
            delay: Some(Duration::ZERO),
        }))
    }
}

/// Whether an error text is about TLS. The client reports a failed handshake as an I/O error.
fn is_about_tls(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["certificate", "fatal alert", "tls"].iter().any(|word| reason.contains(word))
}

fn reconnect_pause(attempts: usize) -> Duration {
    let doubled = RECONNECT_FIRST * 2u32.saturating_pow(attempts.min(16) as u32);
    jittered(doubled.min(RECONNECT_LONGEST))
}

fn unusable(path: &Path, reason: &dyn fmt::Display) -> JetStreamError {
    JetStreamError::Credentials { path: path.to_owned(), reason: reason.to_string() }
}

fn readable(path: &Path) -> Result<(), JetStreamError> {
    std::fs::File::open(path).map(drop).map_err(|error| unusable(path, &error))
}

/// Reads a secret from a file that only this user can read.
fn secret(path: &Path) -> Result<String, JetStreamError> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).map_err(|error| unusable(path, &error))?;
    if found.mode() & 0o077 != 0 {
        return Err(unusable(path, &"others can read it; chmod 600 it"));
    }
    std::fs::read_to_string(path).map_err(|error| unusable(path, &error))
}
