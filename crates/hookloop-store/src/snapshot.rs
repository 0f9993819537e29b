//! A view as bytes. An engine stores it so that a new machine can start with it.

use crate::log::{LogError, Seq};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSnapshot {
    /// The last event in the snapshot.
    pub head: Seq,
    /// The version of its tables.
    pub schema: i64,
    /// A SQLite file.
    pub view: Vec<u8>,
}

pub trait SnapshotStore: Send + Sync {
    /// Returns the last snapshot with tables of this version.
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError>;

    /// Returns the last event in that snapshot, or 0 if there is none.
    fn latest_head(&self, schema: i64) -> Result<Seq, LogError>;

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError>;
}
