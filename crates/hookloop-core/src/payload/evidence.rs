//! The evidence behind a receipt: the room in which a gate ran, and the results of its checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::is_zero;
use crate::checks::{CheckCounts, CheckOutcome};

/// Maximum checks in one event. A longer list is divided.
pub const CHECKS_PER_EVENT: usize = 1_000;

/// The directory in which a gate ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateRoom {
    pub kind: RoomKind,
    /// The state of a clean room's build directories; none in the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildState>,
    /// Whether the gate could write only to its room.
    #[serde(default)]
    pub boxed: bool,
    /// The digest of the setup whose result was in the room; none without a setup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Files that were copied into the room although git ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopiedFile>,
    /// New files that the gates wrote into the working directory: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<String>,
    /// The trees of nested repositories that the receipt's tree does not name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<NestedTree>,
    /// Submodules with changes that are not committed: gates ran on their commits, without these changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// Symbolic links of the tree that lead out of the repository: the first of them. The files behind them are no part
    /// of the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
}

impl GateRoom {
    /// Returns the record of a gate that ran in the working directory.
    pub fn here() -> GateRoom {
        GateRoom {
            kind: RoomKind::Here,
            build: None,
            boxed: false,
            setup: None,
            copies: Vec::new(),
            wrote: Vec::new(),
            nested: Vec::new(),
            uncommitted: Vec::new(),
            outside: Vec::new(),
        }
    }
}

/// The tree of a nested repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NestedTree {
    /// The path from the top of the project's files.
    pub path: String,
    pub tree: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoomKind {
    /// A checkout of the receipt's tree that hookloop made.
    Clean,
    /// The agent's working directory.
    Here,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BuildState {
    /// Files of earlier runs that git ignores were in the room.
    Warm,
    /// No run on refused work had left files in the room.
    Cold,
}

/// A file that was copied into a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopiedFile {
    pub path: String,
    pub sha256: String,
}

/// The results of the checks of one gate's run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChecksRecorded {
    pub gate: String,
    pub point: String,
    /// The git tree that the gate ran on; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<GateRoom>,
    /// The digest of the tools that the gate used; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// The format of the report, or the runner whose output was read.
    pub source: String,
    /// The counts of all checks of the run.
    pub counts: CheckCounts,
    /// Whether passed and skipped checks are known by name. Some output names only failures.
    pub complete: bool,
    /// Whether `checks` has all known checks. Otherwise it has those that differ from the session's last record of
    /// this gate.
    pub whole: bool,
    /// The checks of this event.
    pub checks: Vec<RecordedCheck>,
    /// The checks of the session's last record of this gate that did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// The number of further events with checks of the same run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCheck {
    pub id: String,
    pub outcome: CheckOutcome,
    /// The duration in milliseconds; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}
