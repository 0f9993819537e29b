//! The location of a store's events: in the file of the view, or on servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::engine::LogEngine;
use super::error::StoreError;
use super::origin::{self, ACKNOWLEDGED, WRITTEN};
use crate::log::Seq;
use crate::recorded_head::HeadRecorder;
use crate::sqlite::LogLoss;

pub(super) enum LogHome {
    /// The log is a table beside the view.
    File(LogFile),
    Remote(RemoteLog),
}

impl LogHome {
    /// Returns the file of the view.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            LogHome::File(file) => Some(&file.path),
            LogHome::Remote(remote) => remote.path.as_deref(),
        }
    }
}

/// The file of log and view.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) head: HeadRecorder,
    /// The known loss with which the file was opened.
    pub(super) loss: Option<LogLoss>,
}

impl LogFile {
    pub(super) fn new(path: &Path) -> LogFile {
        LogFile { path: path.to_owned(), head: HeadRecorder::new(path), loss: None }
    }
}

/// A log on servers, and the position of this machine's view in it.
pub(super) struct RemoteLog {
    pub(super) engine: Arc<dyn LogEngine>,
    /// The view's file, or `None` for a view in memory.
    pub(super) path: Option<PathBuf>,
    /// The last place that this process has written. Reads include it.
    pub(super) written: Seq,
    /// The last event that this machine acknowledged before its view was emptied.
    pub(super) acknowledged: Seq,
    pub(super) pace: CatchUpPace,
}

/// The times at which a view catches up with the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUpPace {
    /// Before every use.
    EachTime,
    /// Once, and again after a conflict with another process. So a short command sees one state.
    Once,
    /// Continuously, by a thread of this process.
    Live,
}

impl RemoteLog {
    pub(super) fn new(engine: Arc<dyn LogEngine>) -> RemoteLog {
        RemoteLog { engine, path: None, written: 0, acknowledged: 0, pace: CatchUpPace::EachTime }
    }

    /// Creates a remote log with its view in the file of `conn`.
    pub(super) fn at(
        engine: Arc<dyn LogEngine>,
        path: &Path,
        conn: &Connection,
    ) -> Result<RemoteLog, StoreError> {
        let written = origin::number(conn, WRITTEN)?;
        let acknowledged = origin::number(conn, ACKNOWLEDGED)?;
        let (path, pace) = (Some(path.to_owned()), CatchUpPace::EachTime);
        Ok(RemoteLog { engine, path, written, acknowledged, pace })
    }
}
