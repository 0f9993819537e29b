//! The status of a hook's run, and its stored form.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of one run of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookStatus {
    Passed,
    /// The hook blocks.
    Blocked,
    /// The hook failed without a result.
    Failed,
    TimedOut,
    Killed,
    NotStarted,
    Cancelled,
    /// The hook had nothing to do.
    Skipped,
}

impl HookStatus {
    pub const ALL: [HookStatus; 8] = [
        HookStatus::Passed,
        HookStatus::Blocked,
        HookStatus::Failed,
        HookStatus::TimedOut,
        HookStatus::Killed,
        HookStatus::NotStarted,
        HookStatus::Cancelled,
        HookStatus::Skipped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            HookStatus::Passed => "passed",
            HookStatus::Blocked => "blocked",
            HookStatus::Failed => "failed",
            HookStatus::TimedOut => "timed_out",
            HookStatus::Killed => "killed",
            HookStatus::NotStarted => "not_started",
            HookStatus::Cancelled => "cancelled",
            HookStatus::Skipped => "skipped",
        }
    }
}

/// The status of a run as the log has it. A status of a newer version is kept, and is never a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String", inline)]
pub enum RecordedStatus {
    Known(HookStatus),
    Newer(String),
}

impl RecordedStatus {
    pub fn name(&self) -> &str {
        match self {
            RecordedStatus::Known(status) => status.name(),
            RecordedStatus::Newer(name) => name,
        }
    }

    /// Returns the status, or `None` if only a newer version knows it.
    pub fn known(&self) -> Option<HookStatus> {
        match self {
            RecordedStatus::Known(status) => Some(*status),
            RecordedStatus::Newer(_) => None,
        }
    }
}

impl From<HookStatus> for RecordedStatus {
    fn from(status: HookStatus) -> RecordedStatus {
        RecordedStatus::Known(status)
    }
}

impl From<String> for RecordedStatus {
    fn from(name: String) -> RecordedStatus {
        match HookStatus::ALL.into_iter().find(|status| status.name() == name) {
            Some(status) => RecordedStatus::Known(status),
            None => RecordedStatus::Newer(name),
        }
    }
}

impl From<RecordedStatus> for String {
    fn from(status: RecordedStatus) -> String {
        match status {
            RecordedStatus::Known(status) => status.name().to_owned(),
            RecordedStatus::Newer(name) => name,
        }
    }
}

impl fmt::Display for RecordedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_hook_status_reads_back_and_a_newer_status_keeps_its_name() {
        for status in HookStatus::ALL {
            let read: RecordedStatus = serde_json::from_value(status.name().into()).unwrap();
            assert_eq!(read.known(), Some(status));
            assert_eq!(serde_json::to_value(&read).unwrap(), status.name());
        }
        let newer: RecordedStatus = serde_json::from_value("deferred".into()).unwrap();
        assert_eq!((newer.known(), newer.name()), (None, "deferred"));
        assert_eq!(serde_json::to_value(&newer).unwrap(), "deferred");
    }
}
