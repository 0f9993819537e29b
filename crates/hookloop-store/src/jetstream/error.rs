//! Errors of a log on servers.

use std::time::Duration;

use super::unsafe_server::UnsafeServer;
use crate::log::{AppendError, LogError, Seq};
use crate::store::StoreError;

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
    Unsafe(#[from] UnsafeServer),
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
