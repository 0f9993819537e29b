//! Signs of life of those who hold something: a task's claim, the dispatcher's place.
//!
//! They are not events. Nothing is decided on what a beat says, only on its silence: an observer that
//! saw no new beat for a whole lease, by its own clock, may take over, and the log decides whether
//! it did. So beats may be lost, late or forgotten without harm.

use hookloop_core::id::TaskId;

use crate::log::LogError;

/// What is held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    Task(TaskId),
    Dispatcher,
    /// The place of who would be the next dispatcher, and watches until then.
    Second,
    /// The place of who would come after that one, and watches too.
    Third,
    /// The place of who merges what was submitted.
    Train,
    /// A worker's own name.
    Worker(TaskId),
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Held::Task(id) => f.write_str(id.as_str()),
            Held::Dispatcher => f.write_str("_dispatcher"),
            Held::Second => f.write_str("_second"),
            Held::Third => f.write_str("_third"),
            Held::Train => f.write_str("_train"),
            Held::Worker(name) => write!(f, "{WORKERS}{name}"),
        }
    }
}

/// How what is held by workers begins.
pub(crate) const WORKERS: &str = "_worker.";

/// The last sign of life. Any difference from the one seen before is life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Who holds it: an agent's name, a process.
    pub holder: String,
    /// The holder's epoch, where what is held has one.
    pub epoch: u64,
    /// Moves with every beat.
    pub count: u64,
}

pub trait Pulse: Send + Sync {
    /// Shows that `holder` is alive.
    fn beat(&self, held: &Held, holder: &str, epoch: u64) -> Result<(), LogError>;

    /// Shows that `holder` is alive if the last sign of life is still `seen`; answers whether it was. Of several that
    /// have seen the same, one gets it.
    fn take(
        &self,
        held: &Held,
        holder: &str,
        epoch: u64,
        seen: Option<&Beat>,
    ) -> Result<bool, LogError>;

    fn last_beat(&self, held: &Held) -> Result<Option<Beat>, LogError>;

    /// The last signs of life of all workers.
    fn workers(&self) -> Result<Vec<Beat>, LogError>;

    /// Nobody needs to see this one any more.
    fn forget(&self, held: &Held) -> Result<(), LogError>;
}
