//! Where the events of a store are: in the file of the view, or on servers.

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
    /// The file that the view is in.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            LogHome::File(file) => Some(&file.path),
            LogHome::Remote(remote) => remote.path.as_deref(),
        }
    }
}

/// The file that holds log and view.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) head: HeadRecorder,
    /// The loss that the file was opened in spite of.
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
    /// The view's file; none for a view in memory.
    pub(super) path: Option<PathBuf>,
    /// The last place that this process has written: reads show at least that.
    pub(super) written: Seq,
    /// The last event that this machine acknowledged before its view was emptied.
    pub(super) acknowledged: Seq,
    pub(super) pace: CatchUpPace,
}

/// When a view is brought up to the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUpPace {
    /// Before every use.
    EachTime,
    /// Once, and again after a conflict with another process: a short command sees one moment.
    Once,
    /// Always, by a thread of this process.
    Live,
}

impl RemoteLog {
    pub(super) fn new(engine: Arc<dyn LogEngine>) -> RemoteLog {
        RemoteLog { engine, path: None, written: 0, acknowledged: 0, pace: CatchUpPace::EachTime }
    }

    /// With the view in a file, `conn`.
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
