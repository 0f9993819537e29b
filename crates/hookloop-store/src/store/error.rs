//! Errors of a store.

use std::sync::Arc;

use crate::log::{AppendError, LogError};
use crate::sqlite::{self, FileDamage, LogDefect, LogOpenError};

/// Largest number of attempts for a unit when other processes write first.
pub(crate) const MAX_TRIES: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Open(#[from] LogOpenError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("{MAX_TRIES} attempts in a row met other writers")]
    Contended,
    #[error("the commit that this write was part of failed: {0}")]
    Commit(String),
    /// Found before the view was rebuilt.
    #[error("the log is broken: {0}")]
    Broken(LogDefect),
    /// An error that several writes share.
    #[error(transparent)]
    Shared(Arc<StoreError>),
}

impl StoreError {
    /// Returns the error itself, if no other write shares it.
    pub fn shared(error: Arc<StoreError>) -> StoreError {
        Arc::try_unwrap(error).unwrap_or_else(StoreError::Shared)
    }

    /// Returns the damage of the file or the view that this error reports, if any.
    pub fn damage(&self) -> Option<FileDamage> {
        let error = match self {
            StoreError::Open(LogOpenError::Sqlite(error)) => error,
            StoreError::Log(LogError::Engine(source))
            | StoreError::Open(LogOpenError::Migration(LogError::Engine(source)))
            | StoreError::Append(AppendError::Log(LogError::Engine(source))) => {
                if let Some(error) = source.downcast_ref::<StoreError>() {
                    return error.damage();
                }
                source.downcast_ref::<rusqlite::Error>()?
            }
            StoreError::Shared(error) => return error.damage(),
            _ => return None,
        };
        sqlite::damage_of(error)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Log(error.into())
    }
}
