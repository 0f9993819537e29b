//! Where the servers are, and who one is to them.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};

use tokio::sync::Notify;

use super::JetStreamError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pauses between reconnects: the first, and the longest.
const RECONNECT_FIRST: Duration = Duration::from_millis(10);
const RECONNECT_LONGEST: Duration = Duration::from_secs(2);
/// A connection that says nothing for two of these is dead.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Messages that a follower leaves waiting before the server is asked again for what was dropped.
const BUFFERED: usize = 65_536;
/// Refusals of the server that are remembered.
const DENIALS: usize = 64;

/// How to reach the servers.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// `nats://host:port` or `tls://host:port`, several with commas between.
    pub urls: String,
    pub credentials: Option<Credentials>,
    /// The certificate that the servers' own are signed with.
    pub ca: Option<PathBuf>,
    /// This client's certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Where the servers tell about themselves: `http://host:8222`. Asked of each server's host if
    /// none are given.
    pub monitors: Vec<String>,
    /// The start of the subjects that answers come on; a user's permissions may name it.
    pub inbox: Option<String>,
    pub durability: Durability,
}

#[derive(Clone, Debug)]
pub enum Credentials {
    /// A file with a user's JWT and its seed.
    File(PathBuf),
    /// A file with an nkey's seed.
    NKey(PathBuf),
}

/// Whether a server must have shown that what it acknowledges is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Safe,
    /// The user takes what the server gives.
    Unsafe,
}

impl Access {
    pub(super) fn accepts_unsafe(&self) -> bool {
        self.durability == Durability::Unsafe
    }

    pub(super) fn unreachable(&self, reason: impl fmt::Display) -> JetStreamError {
        JetStreamError::Unreachable { urls: self.urls.clone(), reason: reason.to_string() }
    }

    pub(super) fn servers(&self) -> Result<Vec<ServerAddr>, JetStreamError> {
        let parse = |url: &str| url.trim().parse().map_err(|error| self.unreachable(error));
        self.urls.split(',').map(parse).collect()
    }

    pub(super) async fn connect(&self, denials: &Denials) -> Result<Client, JetStreamError> {
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
                match was_connected.load(Ordering::Relaxed) || attempts > 1 {
                    true => reconnect_pause(attempts),
                    false => Duration::ZERO,
                }
            })
            .event_callback(move |event| {
                connected.fetch_or(matches!(event, Event::Connected), Ordering::Relaxed);
                denials.note(&event);
                std::future::ready(())
            });
        if let Some(inbox) = &self.inbox {
            options = options.custom_inbox_prefix(inbox);
        }
        if let Some(ca) = &self.ca {
            readable(ca)?;
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            readable(certificate)?;
            readable(key)?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options = match &self.credentials {
            None => options,
            Some(Credentials::File(path)) => {
                options.credentials(&secret(path)?).map_err(|error| unusable(path, &error))?
            }
            Some(Credentials::NKey(path)) => options.nkey(secret(path)?.trim().to_owned()),
        };
        options.connect(self.servers()?).await.map_err(|error| self.unreachable(error))
    }
}

fn reconnect_pause(attempts: usize) -> Duration {
    let doubled = RECONNECT_FIRST * 2u32.saturating_pow(attempts.min(16) as u32);
    super::jittered(doubled.min(RECONNECT_LONGEST))
}

fn unusable(path: &Path, reason: &dyn fmt::Display) -> JetStreamError {
    JetStreamError::Credentials { path: path.to_owned(), reason: reason.to_string() }
}

fn readable(path: &Path) -> Result<(), JetStreamError> {
    std::fs::File::open(path).map(drop).map_err(|error| unusable(path, &error))
}

/// Reads a secret, which nobody else may read.
fn secret(path: &Path) -> Result<String, JetStreamError> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).map_err(|error| unusable(path, &error))?;
    if found.mode() & 0o077 != 0 {
        return Err(unusable(path, &"others can read it; chmod 600 it"));
    }
    std::fs::read_to_string(path).map_err(|error| unusable(path, &error))
}

/// What the server did not let this user do. It says so beside the request, which never gets an
/// answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Denials(Arc<(Mutex<VecDeque<String>>, Notify)>);

impl Denials {
    fn note(&self, event: &Event) {
        let Event::ServerError(error) = event else { return };
        let text = error.to_string();
        if !text.to_lowercase().contains("permissions violation") {
            return;
        }
        let mut denials = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        denials.push_back(text);
        if denials.len() > DENIALS {
            denials.pop_front();
        }
        drop(denials);
        self.0.1.notify_waiters();
    }

    /// Ends when the server has denied `subject`, which may be never.
    pub(super) async fn of(&self, subject: &str) {
        loop {
            let mut next = std::pin::pin!(self.0.1.notified());
            next.as_mut().enable();
            if self.contains(subject) {
                return;
            }
            next.await;
        }
    }

    pub(super) fn contains(&self, subject: &str) -> bool {
        let quoted = format!("\"{subject}\"");
        let denials = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        denials.iter().any(|denial| denial.contains(&quoted))
    }
}
