//! Claims of tasks, and the fence that rejects former holders.
//!
//! Each claim of a task has the next **epoch**. A command changes a claimed task only with the current epoch.
//! So a holder that was considered dead and comes back is rejected, however late.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bounds of a lease: the time without a heartbeat after which a claim can be taken over.
pub const LEASE_MIN_MS: u64 = 1_000;
pub const LEASE_MAX_MS: u64 = 24 * 60 * 60 * 1_000;
/// The longest name of an agent.
pub(crate) const AGENT_MAX_BYTES: usize = 256;

/// A claim of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub agent: String,
    /// The number of this claim of the task, from 1.
    pub epoch: u64,
    #[serde(alias = "leaseMs")]
    pub lease_ms: u64,
}

/// The right by which a command changes a task that may be claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// No right: the task has to be unclaimed.
    #[default]
    None,
    /// The right of the holder, whose claim has this epoch.
    Epoch(u64),
    /// The right of a person, regardless of the holder.
    Override,
}

/// The reason why a claim ended without the work being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The holder gave the task back.
    Released,
    /// The holder sent no heartbeat for a whole lease, as a sweep found.
    Expired,
    /// A person requested that another agent does the work.
    Requeued,
    /// The work can't be delivered as it is. The next holder continues it.
    NeedsContinuation,
}
