//! Heartbeats of processes that hold a claim, a leader lease or a worker's name.
//!
//! Heartbeats are not events. Only the absence of a heartbeat matters, not its content. An observer
//! that sees no new heartbeat for a whole lease, by its own clock, may take over. The log decides
//! whether it did. Heartbeats may be lost, late or forgotten without harm.

use hookloop_core::id::TaskId;

use crate::log::LogError;

/// A resource that one process holds at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeldResource {
    Task(TaskId),
    Dispatcher,
    /// The lease of the process that becomes the next dispatcher, and watches until then.
    Second,
    /// The lease of the process after that one, which watches too.
    Third,
    /// The leader lease of the merge train.
    Train,
    /// A worker's own name.
    Worker(TaskId),
}

impl std::fmt::Display for HeldResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeldResource::Task(id) => f.write_str(id.as_str()),
            HeldResource::Dispatcher => f.write_str("_dispatcher"),
            HeldResource::Second => f.write_str("_second"),
            HeldResource::Third => f.write_str("_third"),
            HeldResource::Train => f.write_str("_train"),
            HeldResource::Worker(name) => write!(f, "{WORKERS}{name}"),
        }
    }
}

/// The prefix of the names of workers.
pub(crate) const WORKERS: &str = "_worker.";

/// The last heartbeat of a holder. Any difference from the previous one shows that the holder
/// lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRecord {
    /// The holder: an agent's name, or a process.
    pub holder: String,
    /// The holder's epoch, if the resource has one.
    pub epoch: u64,
    /// Changes with every heartbeat.
    pub count: u64,
}

pub trait HeartbeatStore: Send + Sync {
    /// Records a heartbeat of `holder`.
    fn beat(&self, held: &HeldResource, holder: &str, epoch: u64) -> Result<(), LogError>;

    /// Records a heartbeat of `holder` if the last one is still `seen`. Returns whether it was.
    ///
    /// Of several processes that have seen the same heartbeat, one succeeds.
    fn take(
        &self,
        held: &HeldResource,
        holder: &str,
        epoch: u64,
        seen: Option<&HeartbeatRecord>,
    ) -> Result<bool, LogError>;

    fn last_beat(&self, held: &HeldResource) -> Result<Option<HeartbeatRecord>, LogError>;

    /// Returns the last heartbeats of all workers.
    fn workers(&self) -> Result<Vec<HeartbeatRecord>, LogError>;

    /// Removes the heartbeat of a resource that is no longer held.
    fn forget(&self, held: &HeldResource) -> Result<(), LogError>;
}
