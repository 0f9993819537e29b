//! The log on NATS JetStream: many machines, one truth.
//!
//! - [`access`]: where the servers are, and who one is to them
//! - [`layout`]: names of streams and subjects
//! - [`link`]: connections, apart or shared
//! - [`message`]: an event as a message
//! - [`append`]: a batch into the stream, whatever the server answers
//! - [`direct`]: a few events out of it, at once
//! - [`follow`]: events out of it, in order and without a gap
//! - [`open`]: a project's log with its view on this machine
//! - [`permissions`]: what a user of the servers must be allowed
//! - [`safety`]: what a server must promise before it is trusted
//! - [`written`]: the events that this log has appended, which its reads have
//!
//! The interface is synchronous, as that of every log; a runtime of its own moves the bytes. It
//! must not be called from an asynchronous task.

mod access;
mod append;
mod direct;
mod follow;
mod layout;
mod link;
mod message;
mod open;
mod permissions;
mod pulse;
mod safety;
mod snapshot;
mod written;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::header::{HeaderMap, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use async_nats::{Message, Request, StatusCode};
use bytes::Bytes;
use hookloop_core::id::{ProjectName, Subject};
use tokio::time::Instant;

use crate::log::{AppendError, Appended, EventLog, Follow, LogError, NewEvent, Seq, StoredEvent};
use crate::store::StoreError;

pub use access::{Access, Credentials, Durability};
pub use layout::SHARDS;
pub use link::Links;
pub use open::{Opened, open};
pub use permissions::{Permissions, Role};
pub use safety::{MONITOR_PORT_ABOVE, Safety, Standing, Unsafe};

use follow::Follower;
use layout::Layout;
use link::Link;
use message::StoredMessage;
use written::{CatchUp, Written};

/// How long a request waits for its answer, and all tries together.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// An election takes 4 to 9 seconds; a partition that heals, as long as it lasts.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after a server that can't answer now, and its longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum JetStreamError {
    #[error("no NATS server answers at {urls}: {reason}")]
    Unreachable { urls: String, reason: String },
    #[error("the server at {urls} does not let this user in: {reason}")]
    UnknownUser { urls: String, reason: String },
    #[error("no TLS with the server at {urls}: {reason}")]
    Untrusted { urls: String, reason: String },
    #[error("{}: {reason}", path.display())]
    Credentials { path: std::path::PathBuf, reason: String },
    #[error("the server does not let this user use `{subject}`")]
    Denied { subject: String },
    #[error("no answer to `{subject}` within {} s: {reason}", waited.as_secs())]
    NoAnswer { subject: String, waited: Duration, reason: String },
    #[error("it is not known whether this was stored: {0}. Look, then say it again if it was not")]
    Unknown(Box<JetStreamError>),
    #[error("the server refused: {description} (error {code})")]
    Refused { code: u64, description: String },
    #[error("an answer of the server can't be read: {0}")]
    Answer(String),
    #[error(
        "the log ends at {found}, but this machine has seen event {seen}: acknowledged events are gone"
    )]
    Lost { found: Seq, seen: Seq },
    #[error(transparent)]
    Unsafe(#[from] safety::Unsafe),
}

impl From<JetStreamError> for LogError {
    fn from(error: JetStreamError) -> LogError {
        LogError::Engine(Box::new(error))
    }
}

impl From<JetStreamError> for AppendError {
    fn from(error: JetStreamError) -> AppendError {
        LogError::from(error).into()
    }
}

impl From<JetStreamError> for StoreError {
    fn from(error: JetStreamError) -> StoreError {
        LogError::from(error).into()
    }
}

/// A project's log on JetStream. Clones share the connection.
#[derive(Clone)]
pub struct JetStream(Arc<Inner>);

struct Inner {
    link: Arc<Link>,
    layout: Layout,
    access: Access,
    /// Where the log ended when it was connected to, until it is asked for.
    ahead: Mutex<Option<Seq>>,
    written: Written,
}

/// What a log asks for goes over its connection.
impl std::ops::Deref for Inner {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl std::fmt::Debug for JetStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JetStream {}", self.0.layout.all())
    }
}

impl JetStream {
    /// Connects to the servers of `access` for the log of `project`.
    pub fn connect(access: &Access, project: &ProjectName) -> Result<JetStream, JetStreamError> {
        Ok(JetStream(Arc::new(Inner {
            link: Link::to(access)?,
            layout: Layout::new(project),
            access: access.clone(),
            ahead: Mutex::default(),
            written: Written::default(),
        })))
    }

    /// Asks where the log ends before anyone wants to know. Once: whether there is a log at all is for
    /// others to find out.
    fn look_ahead(&self) {
        let (stream, all) = (self.0.layout.stream(), self.0.layout.all());
        let get = format!("$JS.API.DIRECT.GET.{stream}.{all}");
        let asked = self.run(self.0.ask(&get, Request::new().payload(Bytes::new())));
        let Ok(Reply::Message(message)) = asked else { return };
        *self.ahead() = place(&message).ok().map(|(seq, _)| seq);
    }

    fn ahead(&self) -> MutexGuard<'_, Option<Seq>> {
        self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream that holds the events of `project`.
    pub fn stream_of(project: &ProjectName) -> String {
        Layout::new(project).stream()
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.0.runtime.as_ref().map(|runtime| runtime.block_on(future))
    }

    /// Runs `future` to its end on this log's runtime.
    fn run<T, E: From<JetStreamError>>(
        &self,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // The runtime is there until the last clone is gone.
        let gone = || JetStreamError::Answer("the connection is closed".to_owned());
        self.wait(future).ok_or_else(gone)?
    }
}

/// What a request came to, if there was an answer.
enum Reply {
    Message(Message),
    /// Nobody can answer now: an election, a lost connection. It is not known whether it arrived.
    Nobody(String),
}

impl Inner {
    /// One try of a request.
    async fn ask(&self, subject: &str, request: Request) -> Result<Reply, JetStreamError> {
        let request = request.timeout(Some(REQUEST_TIMEOUT));
        let answer = self.client.send_request(subject.to_owned(), request);
        match self.denials.or_denied(subject, answer).await? {
            Ok(message) => Ok(Reply::Message(message)),
            Err(error) => match error.kind() {
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    Err(JetStreamError::Refused { code: 0, description: error.to_string() })
                }
                _ => Ok(Reply::Nobody(error.to_string())),
            },
        }
    }

    /// Asks until there is an answer, or for [`PATIENCE`].
    async fn ask_patiently(
        &self,
        subject: &str,
        payload: &Bytes,
    ) -> Result<Message, JetStreamError> {
        let mut patience = Patience::new();
        loop {
            let request = Request::new().payload(payload.clone());
            match self.ask(subject, request).await? {
                Reply::Message(message) => return Ok(message),
                Reply::Nobody(reason) => patience.pause(subject, reason).await?,
            }
        }
    }

    /// Publishes until the stream has it, or for [`PATIENCE`].
    async fn put(&self, subject: &str, payload: &Bytes) -> Result<(), JetStreamError> {
        let answer = self.ask_patiently(subject, payload).await?;
        append::read_refusal(&answer)
    }

    /// Publishes after message `after` of the same subject; answers false if another came in between.
    async fn put_after(
        &self,
        subject: &str,
        payload: &Bytes,
        after: u64,
    ) -> Result<bool, JetStreamError> {
        let mut patience = Patience::new();
        loop {
            let mut headers = HeaderMap::new();
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
            let request = Request::new().payload(payload.clone()).headers(headers);
            match self.ask(subject, request).await? {
                Reply::Message(message) => return append::was_next(&message),
                Reply::Nobody(reason) => patience.pause(subject, reason).await?,
            }
        }
    }

    /// The last message on a subject, which may have wildcards: any replica answers.
    async fn last_on(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Message>, JetStreamError> {
        let get = format!("$JS.API.DIRECT.GET.{stream}.{subject}");
        let message = self.ask_patiently(&get, &Bytes::new()).await?;
        match message.status {
            None => Ok(Some(message)),
            Some(StatusCode::NOT_FOUND) => Ok(None),
            Some(status) => Err(JetStreamError::Answer(format!("{get}: {status}"))),
        }
    }

    async fn last_event(&self, subject: &str) -> Result<Option<StoredEvent>, LogError> {
        let mut replica = CatchUp::to(self.written.last_of(subject));
        loop {
            let message = self.last_on(&self.layout.stream(), subject).await?;
            let event = message.as_ref().map(event_of).transpose()?;
            if replica.is_over(subject, event.as_ref().map_or(0, |event| event.seq)).await {
                return Ok(event);
            }
        }
    }

    async fn head(&self) -> Result<Seq, LogError> {
        let all = self.layout.all();
        let mut replica = CatchUp::to(self.written.last());
        loop {
            let message = self.last_on(&self.layout.stream(), &all).await?;
            let last = message.as_ref().map(place).transpose()?.map_or(0, |(seq, _)| seq);
            if replica.is_over(&all, last).await {
                return Ok(last);
            }
        }
    }

    /// Up to `limit` events on `filter` from place `from` to place `to`.
    async fn scan(
        self: &Arc<Self>,
        filter: String,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<StoredEvent>, LogError> {
        let mut events = Vec::new();
        if from > to || limit == 0 {
            return Ok(events);
        }
        let mut follower = Follower::start(JetStream(self.clone()), filter, from).await?;
        let mut patience = Patience::new();
        while events.len() < limit {
            let more = follower.more(REQUEST_TIMEOUT).await?;
            if more.is_empty() {
                patience.pause(&self.layout.all(), "no events came".to_owned()).await?;
            }
            events.extend(more);
            if events.last().is_some_and(|event| event.seq >= to) {
                break;
            }
        }
        events.truncate(limit);
        Ok(events)
    }
}

fn is_denied(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(JetStreamError::Denied { .. }))
}

/// The event that a message is which was asked for directly.
fn event_of(message: &Message) -> Result<StoredEvent, JetStreamError> {
    let (seq, subject) = place(message)?;
    let (headers, payload) = (message.headers.as_ref(), &message.payload[..]);
    Ok(StoredMessage { seq, subject, headers, payload }.event())
}

/// Where the stream holds a message that was asked for directly.
fn place(message: &Message) -> Result<(Seq, &str), JetStreamError> {
    let header = |name: &'static str| {
        let value = message.headers.as_ref().and_then(|headers| headers.get_last(name));
        value
            .map(|value| value.as_str())
            .ok_or_else(|| JetStreamError::Answer(format!("no {name}")))
    };
    let seq = header("Nats-Sequence")?;
    let seq = seq.parse().map_err(|_| JetStreamError::Answer(format!("place {seq}")))?;
    Ok((seq, header("Nats-Subject")?))
}

/// Tries again for a while, each time after a longer pause.
struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    fn new() -> Patience {
        Patience::of(PATIENCE)
    }

    fn of(limit: Duration) -> Patience {
        Patience { end: Instant::now() + limit, pause: FIRST_PAUSE }
    }

    async fn pause(&mut self, subject: &str, reason: String) -> Result<(), JetStreamError> {
        if Instant::now() + self.pause >= self.end {
            let subject = subject.to_owned();
            return Err(JetStreamError::NoAnswer { subject, waited: PATIENCE, reason });
        }
        tokio::time::sleep(jittered(self.pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Half of `pause` and a random part of the other half, so that many do not come back together.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    pause / 2 + pause / 128 * (RandomState::new().hash_one(0) % 64) as u32
}

impl EventLog for JetStream {
    fn append(&self, batch: &[NewEvent]) -> Result<Appended, AppendError> {
        self.run(self.0.append(batch))
    }

    fn last(&self, subject: &Subject) -> Result<Option<StoredEvent>, LogError> {
        self.run(self.0.last_event(&self.0.layout.subject(subject)))
    }

    fn history(&self, subject: &Subject, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let subject = self.0.layout.subject(subject);
        self.run(async {
            let Some(last) = self.0.last_event(&subject).await? else { return Ok(vec![]) };
            let mut events = self.0.scan(subject, (1, last.seq), usize::MAX).await?;
            Ok(events.split_off(events.len().saturating_sub(limit)))
        })
    }

    fn read(&self, from: Seq, limit: usize) -> Result<Vec<StoredEvent>, LogError> {
        let from = from.max(1);
        self.run(async {
            match self.0.read_directly(from, limit).await {
                Err(LogError::Engine(error)) if is_denied(&*error) => {
                    let head = self.0.head().await?;
                    self.0.scan(self.0.layout.all(), (from, head), limit).await
                }
                read => read,
            }
        })
    }

    fn follow(&self, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        let filter = self.0.layout.all();
        let follower = self.run(Follower::start(self.clone(), filter, from.max(1)))?;
        Ok(Box::new(follower))
    }

    fn follow_subject(&self, subject: &Subject, from: Seq) -> Result<Box<dyn Follow>, LogError> {
        let filter = self.0.layout.subject(subject);
        let follower = self.run(Follower::start(self.clone(), filter, from.max(1)))?;
        Ok(Box::new(follower))
    }

    fn head(&self) -> Result<Seq, LogError> {
        let ahead = self.ahead().take();
        ahead.map_or_else(|| self.run(self.0.head()), Ok)
    }

    fn check_has(&self, seen: Seq) -> Result<(), LogError> {
        match self.run(self.0.last_by_leader_of_all())? {
            Some(found) if found < seen => Err(JetStreamError::Lost { found, seen }.into()),
            _ => Ok(()),
        }
    }

    fn removed(&self) -> Result<u64, LogError> {
        Ok(self.run(self.0.removed_from_stream())?)
    }

    fn digests(&self, batch: &[NewEvent]) -> Result<Vec<crate::chain::Hash>, LogError> {
        let messages = message::encode(batch, &self.0.layout)?;
        Ok(messages.iter().map(|m| message::digest(&m.subject, &m.payload)).collect())
    }
}
