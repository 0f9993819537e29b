//! A view as bytes, kept by an engine so that a new machine starts with it.

use crate::log::{LogError, Seq};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSnapshot {
    /// The last event that is in it.
    pub head: Seq,
    /// The version of its tables.
    pub schema: i64,
    /// A SQLite file.
    pub view: Vec<u8>,
}

pub trait SnapshotStore: Send + Sync {
    /// The last snapshot with tables of this version.
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError>;

    /// The last event in that snapshot; 0 if there is none.
    fn latest_head(&self, schema: i64) -> Result<Seq, LogError>;

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError>;
}
