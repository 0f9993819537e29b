//! The tables of the view, and the values that their columns hold.

use hookloop_core::task::TaskState;

use crate::log::LogError;

pub(crate) const TABLES: &str = include_str!("view.sql");

/// Drops all tables of the view, so that it can be rebuilt.
pub(crate) const DROP: &str = "DROP TABLE IF EXISTS totals; DROP TABLE IF EXISTS task;
    DROP TABLE IF EXISTS edge; DROP TABLE IF EXISTS subject; DROP TABLE IF EXISTS due;
    DROP TABLE IF EXISTS cascade; DROP TABLE IF EXISTS hook_switch; DROP TABLE IF EXISTS run;
    DROP TABLE IF EXISTS hook_runs; DROP TABLE IF EXISTS hook_time;
    DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS usage; DROP TABLE IF EXISTS spent;
    DROP TABLE IF EXISTS reservation; DROP TABLE IF EXISTS remark;
    DROP TABLE IF EXISTS delivery; DROP TABLE IF EXISTS problem;
    DROP TABLE IF EXISTS notice; DROP TABLE IF EXISTS told; DROP TABLE IF EXISTS schedule;
    DROP TABLE IF EXISTS fleet; DROP TABLE IF EXISTS orphan; DROP TABLE IF EXISTS quarantine;";

pub type RowResult<T, E = LogError> = std::result::Result<T, E>;

/// A stored state. `Open` means created or ready, depending on dependencies and the query's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredState {
    Open = 0,
    Active = 1,
    Submitted = 2,
    Completed = 3,
    Blocked = 4,
    Deleted = 5,
}

impl StoredState {
    pub(crate) fn read(code: i64) -> StoredState {
        match code {
            0 => StoredState::Open,
            1 => StoredState::Active,
            2 => StoredState::Submitted,
            3 => StoredState::Completed,
            4 => StoredState::Blocked,
            _ => StoredState::Deleted,
        }
    }

    /// Returns the state without regard to the start time, or `None` for a deleted task.
    pub(crate) fn shown(self, open_deps: u32) -> Option<TaskState> {
        Some(match self {
            StoredState::Open if open_deps == 0 => TaskState::Ready,
            StoredState::Open => TaskState::Created,
            StoredState::Active => TaskState::Active,
            StoredState::Submitted => TaskState::Submitted,
            StoredState::Completed => TaskState::Completed,
            StoredState::Blocked => TaskState::Blocked,
            StoredState::Deleted => return None,
        })
    }
}

/// Encodes a value as the JSON text of a column.
///
/// Values of the view always encode: their keys are strings, and their numbers finite.
pub(super) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
