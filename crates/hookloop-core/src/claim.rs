//! Who holds a task, and the fence that keeps those out who no longer do.
//!
//! Each claim of a task has the next **epoch**, and a claimed task is changed by whoever names the
//! epoch that holds. So one that was taken for dead and comes back is refused, however late.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest and the longest lease: how long a holder may be silent.
pub const LEASE_MIN_MS: u64 = 1_000;
pub const LEASE_MAX_MS: u64 = 24 * 60 * 60 * 1_000;
/// The longest name of an agent.
pub const AGENT_MAX_BYTES: usize = 256;

/// A task in someone's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    pub agent: String,
    /// Which claim of the task this is, from 1.
    pub epoch: u64,
    pub lease_ms: u64,
}

/// By what right a command changes a task that may be claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// None: the task has to be unclaimed.
    #[default]
    None,
    /// As its holder, whose claim has this epoch.
    Epoch(u64),
    /// A person's word, whoever holds it.
    Override,
}

/// Why a claim ended without the work being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// Its holder gave it back.
    Released,
    /// Its holder was silent for a whole lease, as a sweep saw.
    Expired,
    /// Someone asked for it to be done by another.
    Requeued,
    /// It can't be delivered as it is: whoever takes it next goes on where its holder was.
    NeedsContinuation,
}
