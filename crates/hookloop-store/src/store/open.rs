//! Opens stores.

use std::path::Path;
use std::sync::Arc;

use super::engine::LogEngine;
use super::error::StoreError;
use super::handle::Store;
use super::log_home::{LogFile, LogHome, RemoteLog};
use super::origin::{self, LogIdentity, ViewFile};
use crate::sqlite::{self, LogLoss, LogOpenError};

impl Store {
    /// Opens the file at `path`, which contains log and view.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        tracing::debug!(path = %path.display(), "the log opens");
        Ok(Store::new(sqlite::open_unless_lost(path)?, LogHome::File(LogFile::new(path))))
    }

    /// Opens the file at `path` to check it, even if it ends before the acknowledged head.
    ///
    /// A file that is missing or empty although it had events is an error, and is not changed.
    pub fn open_to_check(path: &Path) -> Result<Store, StoreError> {
        sqlite::check_not_emptied(path)?;
        Ok(Store::new(sqlite::open(path)?, LogHome::File(LogFile::new(path))))
    }

    /// Opens the file at `path` after a person has accepted `loss`.
    ///
    /// [`Store::rebuild_after_loss`] records the acceptance.
    pub fn open_after_loss(path: &Path, loss: Option<LogLoss>) -> Result<Store, StoreError> {
        let found = match sqlite::check_not_emptied(path) {
            Err(LogOpenError::Lost(found)) => Some(found),
            other => {
                other?;
                loss
            }
        };
        let file = LogFile { loss: found, ..LogFile::new(path) };
        Ok(Store::new(sqlite::open(path)?, LogHome::File(file)))
    }

    /// Opens a view in memory over a remote log.
    pub fn over(engine: Arc<dyn LogEngine>) -> Result<Store, StoreError> {
        let home = LogHome::Remote(RemoteLog::new(engine));
        let store = Store::new(sqlite::open_in_memory()?, home);
        store.lock().catch_up(0)?;
        Ok(store)
    }

    /// Opens a view in `file` over a remote log. A new view starts with the engine's last snapshot.
    ///
    /// `identify` gets its own last answer. The view of another log is discarded.
    pub fn over_at(
        engine: Arc<dyn LogEngine>,
        file: ViewFile,
        identify: impl FnOnce(Option<String>) -> Result<LogIdentity, StoreError>,
    ) -> Result<Store, StoreError> {
        let path = file.path.clone();
        tracing::debug!(path = %path.display(), "the view of a remote log opens");
        let conn = origin::open_view(&*engine, file, identify)?;
        let remote = RemoteLog::at(engine, &path, &conn)?;
        Ok(Store::new(conn, LogHome::Remote(remote)))
    }
}
