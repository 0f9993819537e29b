//! The data of events about the course of a session.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::FrozenScript;
use super::session_limits::{SessionLimit, SessionLimits};
use crate::id::TaskId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTaskClaimed {
    pub task: TaskId,
    /// The epoch of the claim.
    pub epoch: u64,
    /// Remediation turns that the task has used before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub remediations: u32,
    /// The digests of changes of tests that a person allowed for the task, each with the person.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allowed_findings: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTaskReleased {
    pub task: TaskId,
    #[serde(alias = "how")]
    pub result: TaskExit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskExit {
    Completed,
    /// The task waits to be merged.
    Submitted,
    /// The task could not be submitted, and is ready for its next holder.
    Returned,
    /// The task needs a person.
    Blocked,
    /// The task is ready again.
    Released,
    /// Another holder has the task.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointMade {
    pub by: String,
    pub data: Value,
}

/// A program resumed the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionResumed {
    /// The number of this start; the first has 1.
    pub run: u32,
    /// The machine that runs the session now.
    pub machine: String,
    /// The digest of the hooks from now on, if the user trusted others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<String>,
    /// The scripts of the hooks from now on, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<FrozenScript>>,
}

/// Hooks differ from those that the session began with. The session continues with the hooks that it began
/// with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustDriftDetected {
    /// Changed hooks and scripts, by name.
    #[serde(alias = "what")]
    pub changed: Vec<String>,
}

/// hookloop recreated the worktree of the session's task from its branch: the old one was gone or damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeRecreated {
    pub task: TaskId,
    /// The commit that the new worktree is at. Work since this commit is lost, unless `saved` names it.
    pub commit: String,
    /// The damage of the old worktree.
    pub reason: String,
    /// The ref that has the files of the old worktree, if they could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
}

/// The outcome of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SessionOutcome {
    Complete {
        /// A person accepted the work although gates failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unproven: bool,
    },
    NeedsHuman {
        reason: String,
    },
    Limit {
        limit: SessionLimit,
    },
    /// The user ended the session.
    Cancelled,
    /// The program of the session died, and another session was started.
    Interrupted,
}

/// The outcome of a session, and whether its work is proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnded {
    #[serde(flatten)]
    pub outcome: SessionOutcome,
    /// Whether gates ran and passed on the files as they are at the end.
    #[serde(default)]
    pub proven: bool,
}

impl From<SessionOutcome> for SessionEnded {
    fn from(outcome: SessionOutcome) -> SessionEnded {
        SessionEnded { outcome, proven: false }
    }
}

/// A person reopened a session that had ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReopened {
    /// The limits of the session from now on; none if they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<SessionLimits>,
    /// Patterns of further tests that the work may change. With them, the gates judge the claim again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
    /// Findings of the base's tests that the person allows. With them, the gates judge the claim again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<AllowedFindings>,
}

/// Findings of the base's tests that a person saw and allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedFindings {
    /// The person.
    pub by: String,
    /// The digests of the findings.
    pub digests: Vec<String>,
}

impl SessionOutcome {
    pub fn name(&self) -> &'static str {
        SessionState::from(self).name()
    }

    /// Whether pending output is sent to the agent in a final turn. No turn follows a person's decision or
    /// a session that gave up, and none follows a limit of time, money or errors.
    pub(crate) fn delivers(&self) -> bool {
        match self {
            SessionOutcome::Complete { unproven } => !unproven,
            SessionOutcome::Limit { limit } => *limit == SessionLimit::Iterations,
            SessionOutcome::NeedsHuman { .. }
            | SessionOutcome::Cancelled
            | SessionOutcome::Interrupted => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSnapshotted {
    /// A digest of all of them.
    pub files: String,
    /// The commit that is checked out; none outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Only hooks and gates of this session could change the files since the previous turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_hooks: bool,
}

/// The state of a session in lists: running, paused, or its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    Running,
    Paused,
    Complete,
    NeedsHuman,
    Limit,
    Cancelled,
    /// The session ended as interrupted, or its program died before the session ended.
    Interrupted,
}

impl SessionState {
    pub const ALL: [SessionState; 7] = [
        SessionState::Running,
        SessionState::Paused,
        SessionState::Complete,
        SessionState::NeedsHuman,
        SessionState::Limit,
        SessionState::Cancelled,
        SessionState::Interrupted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SessionState::Running => "running",
            SessionState::Paused => "paused",
            SessionState::Complete => "complete",
            SessionState::NeedsHuman => "needs_human",
            SessionState::Limit => "limit",
            SessionState::Cancelled => "cancelled",
            SessionState::Interrupted => "interrupted",
        }
    }
}

impl From<&SessionOutcome> for SessionState {
    fn from(outcome: &SessionOutcome) -> SessionState {
        match outcome {
            SessionOutcome::Complete { .. } => SessionState::Complete,
            SessionOutcome::NeedsHuman { .. } => SessionState::NeedsHuman,
            SessionOutcome::Limit { .. } => SessionState::Limit,
            SessionOutcome::Cancelled => SessionState::Cancelled,
            SessionOutcome::Interrupted => SessionState::Interrupted,
        }
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state of a session")]
pub struct UnknownSessionState(String);

impl FromStr for SessionState {
    type Err = UnknownSessionState;

    fn from_str(text: &str) -> Result<SessionState, UnknownSessionState> {
        let found = SessionState::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| UnknownSessionState(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_state_reads_back_and_has_the_name_of_its_outcome() {
        for state in SessionState::ALL {
            assert_eq!(state.name().parse(), Ok(state));
        }
        assert!("done".parse::<SessionState>().is_err());
        let outcomes = [
            SessionOutcome::Complete { unproven: true },
            SessionOutcome::NeedsHuman { reason: String::new() },
            SessionOutcome::Limit { limit: SessionLimit::Cost },
            SessionOutcome::Cancelled,
            SessionOutcome::Interrupted,
        ];
        for outcome in outcomes {
            let stored = serde_json::to_value(&outcome).unwrap();
            assert_eq!(stored["outcome"], SessionState::from(&outcome).name());
        }
    }
}

/// Files were restored to a state before or after a turn. The session itself stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestored {
    pub kind: RestoreKind,
    /// The turn whose state was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The number of files that were restored.
    pub files: u32,
    /// The number of files that were left as they were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u32,
    /// The git tree of all files after the restore.
    pub tree: String,
}

/// The command that restored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreKind {
    /// The changes of turns were undone.
    Undo,
    /// Single files were restored.
    Restore,
    /// The last undo or restore was undone.
    Back,
}
