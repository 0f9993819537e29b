//! Where the servers are, and who one is to them.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Ready, ready};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, ReconnectToServer, Server, ServerAddr,
    ServerInfo,
};
use futures_util::future::Either;
use hookloop_http::HttpClient;

use super::{JetStreamError, Links};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses between reconnects: the first, and the longest.
const RECONNECT_FIRST: Duration = Duration::from_millis(10);
const RECONNECT_LONGEST: Duration = Duration::from_secs(2);
/// A connection that says nothing for two of these is dead.
const PING_INTERVAL: Duration = Duration::from_secs(1);
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
    /// The process asks little and ends soon: bytes move while it waits for them, on its own thread.
    /// Where many threads ask, the connection has one of its own.
    pub brief: bool,
    /// Connections that other logs have, too; otherwise each has its own.
    pub links: Option<Links>,
    /// The client that monitors are asked with.
    pub http: HttpClient,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A file with a user's JWT and its seed.
    File(PathBuf),
    /// A file with an nkey's seed.
    NKey(PathBuf),
    /// A file with the token of the servers.
    Token(PathBuf),
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
        let servers = self.servers()?;
        if self.brief {
            // The client would wait for a tick of its timer first, and then try one server after the
            // other: that is for when the one that this asks does not answer.
            let at_once = self.options(denials)?.reconnect_to_server_callback(first_at_once());
            match at_once.connect(servers.clone()).await.map_err(|error| self.refused(&error)) {
                Err(JetStreamError::Unreachable { .. }) => {}
                connected => return connected,
            }
        }
        let options = self.options(denials)?;
        options.connect(servers).await.map_err(|error| self.refused(&error))
    }

    fn options(&self, denials: &Denials) -> Result<ConnectOptions, JetStreamError> {
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
                ready(())
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
        Ok(match &self.credentials {
            None => options,
            Some(Credentials::File(path)) => {
                options.credentials(&secret(path)?).map_err(|error| unusable(path, &error))?
            }
            Some(Credentials::NKey(path)) => options.nkey(secret(path)?.trim().to_owned()),
            Some(Credentials::Token(path)) => options.token(secret(path)?.trim().to_owned()),
        })
    }

    /// A server that is there and does not let us in is told from one that is not there.
    fn refused(&self, error: &async_nats::ConnectError) -> JetStreamError {
        let urls = self.urls.clone();
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                JetStreamError::UnknownUser { urls, reason: error.to_string() }
            }
            ConnectErrorKind::Tls | ConnectErrorKind::Io if is_about_tls(&error.to_string()) => {
                JetStreamError::Untrusted { urls, reason: error.to_string() }
            }
            _ => self.unreachable(error),
        }
    }
}

/// Picks any server for the first connection, without a pause; later ones are the client's to pick.
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

/// A handshake that fails is an I/O error to the client; only its text says more.
fn is_about_tls(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["certificate", "fatal alert", "tls"].iter().any(|word| reason.contains(word))
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
#[derive(Clone, Debug)]
pub(super) struct Denials {
    noted: Arc<Mutex<VecDeque<Denial>>>,
    /// How many there were so far.
    count: tokio::sync::watch::Sender<u64>,
}

#[derive(Debug)]
struct Denial {
    number: u64,
    text: String,
}

impl Default for Denials {
    fn default() -> Denials {
        Denials { noted: Arc::default(), count: tokio::sync::watch::Sender::new(0) }
    }
}

impl Denials {
    fn note(&self, event: &Event) {
        let Event::ServerError(error) = event else { return };
        let text = error.to_string();
        if !text.to_lowercase().contains("permissions violation") {
            return;
        }
        let number = *self.count.borrow() + 1;
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push_back(Denial { number, text });
        if noted.len() > DENIALS {
            noted.pop_front();
        }
        drop(noted);
        self.count.send_replace(number);
    }

    /// Where one is before a request: only what is denied after it can be about it. Permissions change
    /// while a process lives.
    pub(super) fn mark(&self) -> u64 {
        *self.count.borrow()
    }

    /// A subject that was denied after `mark` and that `is_asked` knows. A denied inbox is denied at the
    /// first request, and for good: no answer can come.
    pub(super) fn after(&self, mark: u64, is_asked: impl Fn(&str) -> bool) -> Option<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_inbox = |denial: &Denial| denial.text.to_lowercase().contains("subscription to");
        noted.iter().find_map(|denial| {
            let subject = denial.text.split('"').nth(1)?;
            let counts = is_inbox(denial) || (denial.number > mark && is_asked(subject));
            counts.then(|| subject.to_owned())
        })
    }

    /// Waits for `answer`, unless the server denies `subject` first.
    pub(super) async fn or_denied<T>(
        &self,
        subject: &str,
        answer: impl Future<Output = T>,
    ) -> Result<T, JetStreamError> {
        let mark = self.mark();
        let mut count = self.count.subscribe();
        let denied = async {
            loop {
                if let Some(subject) = self.after(mark, |denied| denied == subject) {
                    return subject;
                }
                if count.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match futures_util::future::select(std::pin::pin!(answer), std::pin::pin!(denied)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right((subject, _)) => Err(JetStreamError::Denied { subject }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_nats::ServerError;

    fn deny(denials: &Denials, what: &str) {
        let text = format!("Permissions Violation for {what}");
        denials.note(&Event::ServerError(ServerError::Other(text)));
    }

    #[test]
    fn a_denial_is_about_requests_that_were_made_before_it() {
        let denials = Denials::default();
        deny(&denials, "Publish to \"a.b\"");
        let mark = denials.mark();
        let is_asked = |subject: &str| subject == "a.b";
        assert_eq!(denials.after(mark, is_asked), None);
        assert_eq!(denials.after(0, is_asked).as_deref(), Some("a.b"));
        assert_eq!(denials.after(0, |subject| subject == "a"), None);
        deny(&denials, "Publish to \"a.b\"");
        assert_eq!(denials.after(mark, is_asked).as_deref(), Some("a.b"));
    }

    #[test]
    fn without_an_inbox_nothing_is_answered() {
        let denials = Denials::default();
        deny(&denials, "Subscription to \"_INBOX.x.*\"");
        assert_eq!(denials.after(denials.mark(), |_| false).as_deref(), Some("_INBOX.x.*"));
    }
}
