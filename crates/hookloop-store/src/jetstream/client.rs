//! A project's log on servers: its connection, and requests over it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::client::RequestErrorKind;
use async_nats::header::{HeaderMap, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use async_nats::{Message, Request, StatusCode};
use bytes::Bytes;
use hookloop_core::id::ProjectName;

use super::ack;
use super::error::JetStreamError;
use super::layout::StreamLayout;
use super::link::NatsLink;
use super::message::StoredMessage;
use super::options::NatsOptions;
use super::retry::{REQUEST_TIMEOUT, RetryWindow};
use super::written::WrittenEvents;
use crate::log::{Seq, StoredEvent};

/// A project's log on JetStream. Clones share the connection.
#[derive(Clone)]
pub struct JetStreamLog(pub(super) Arc<LogClient>);

/// The parts of a log that its clones share.
pub(super) struct LogClient {
    pub(super) link: Arc<NatsLink>,
    pub(super) layout: StreamLayout,
    pub(super) options: NatsOptions,
    /// The end of the log when the connection was opened, until it is requested.
    ahead: Mutex<Option<Seq>>,
    pub(super) written: WrittenEvents,
}

/// Requests of a log use its connection.
impl std::ops::Deref for LogClient {
    type Target = NatsLink;

    fn deref(&self) -> &NatsLink {
        &self.link
    }
}

impl std::fmt::Debug for JetStreamLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JetStreamLog {}", self.0.layout.all())
    }
}

impl JetStreamLog {
    /// Connects to the servers of `options` for the log of `project`.
    pub fn connect(
        options: &NatsOptions,
        project: &ProjectName,
    ) -> Result<JetStreamLog, JetStreamError> {
        Ok(JetStreamLog(Arc::new(LogClient {
            link: options.link()?,
            layout: StreamLayout::new(project),
            options: options.clone(),
            ahead: Mutex::default(),
            written: WrittenEvents::default(),
        })))
    }

    /// Reads the end of the log in advance, with one attempt.
    ///
    /// Later requests find out whether the log exists.
    pub(super) fn look_ahead(&self) {
        let (stream, all) = (self.0.layout.stream(), self.0.layout.all());
        let get = format!("$JS.API.DIRECT.GET.{stream}.{all}");
        let asked = self.run(self.0.ask(&get, Request::new().payload(Bytes::new())));
        let Ok(ServerReply::Message(message)) = asked else { return };
        // Without a readable place, `head` asks again.
        *self.ahead() = place(&message).ok().map(|(seq, _)| seq);
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, Option<Seq>> {
        self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stream that holds the events of `project`.
    pub fn stream_of(project: &ProjectName) -> String {
        StreamLayout::new(project).stream()
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.0.runtime.as_ref().map(|runtime| runtime.block_on(future))
    }

    /// Runs `future` to its end on this log's runtime.
    pub(super) fn run<T, E: From<JetStreamError>>(
        &self,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // The runtime exists until the last clone is dropped.
        let gone = || JetStreamError::Answer("the connection is closed".to_owned());
        self.wait(future).ok_or_else(gone)?
    }
}

/// The result of a request.
pub(super) enum ServerReply {
    Message(Message),
    /// No server answers now, because of an election or a lost connection. Whether the request
    /// arrived is unknown.
    Nobody(String),
}

impl LogClient {
    /// Sends a request once.
    pub(super) async fn ask(
        &self,
        subject: &str,
        request: Request,
    ) -> Result<ServerReply, JetStreamError> {
        let request = request.timeout(Some(REQUEST_TIMEOUT));
        let answer = self.client.send_request(subject.to_owned(), request);
        match self.denials.or_denied(subject, answer).await? {
            Ok(message) => Ok(ServerReply::Message(message)),
            Err(error) => match error.kind() {
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    Err(JetStreamError::Refused { code: 0, description: error.to_string() })
                }
                _ => Ok(ServerReply::Nobody(error.to_string())),
            },
        }
    }

    /// Repeats a request until it is answered, within the limit of a [`RetryWindow`].
    pub(super) async fn ask_patiently(
        &self,
        subject: &str,
        payload: &Bytes,
    ) -> Result<Message, JetStreamError> {
        let mut patience = RetryWindow::new();
        loop {
            let request = Request::new().payload(payload.clone());
            match self.ask(subject, request).await? {
                ServerReply::Message(message) => return Ok(message),
                ServerReply::Nobody(reason) => patience.pause(subject, reason).await?,
            }
        }
    }

    /// Publishes until the stream has the message, within the limit of a [`RetryWindow`].
    pub(super) async fn put(&self, subject: &str, payload: &Bytes) -> Result<(), JetStreamError> {
        let answer = self.ask_patiently(subject, payload).await?;
        ack::read_refusal(&answer)
    }

    /// Publishes after message `after` of the same subject. Returns `false` if another came first.
    pub(super) async fn put_after(
        &self,
        subject: &str,
        payload: &Bytes,
        after: u64,
    ) -> Result<bool, JetStreamError> {
        let mut patience = RetryWindow::new();
        loop {
            let mut headers = HeaderMap::new();
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
            let request = Request::new().payload(payload.clone()).headers(headers);
            match self.ask(subject, request).await? {
                ServerReply::Message(message) => return ack::was_next(&message),
                ServerReply::Nobody(reason) => patience.pause(subject, reason).await?,
            }
        }
    }

    /// Returns the last message on a subject, which may have wildcards. Any replica answers.
    pub(super) async fn last_on(
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
}

/// Decodes the event of a message from a direct read.
pub(super) fn event_of(message: &Message) -> Result<StoredEvent, JetStreamError> {
    let (seq, subject) = place(message)?;
    let (headers, payload) = (message.headers.as_ref(), &message.payload[..]);
    Ok(StoredMessage { seq, subject, headers, payload }.event())
}

/// Returns the place and the subject of a message from a direct read.
pub(super) fn place(message: &Message) -> Result<(Seq, &str), JetStreamError> {
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
