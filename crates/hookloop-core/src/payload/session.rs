//! The data of events about the course of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::FrozenScript;
use super::session_limits::{Limit, Limits};
use crate::id::TaskId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskTaken {
    pub task: TaskId,
    /// Of the claim.
    pub epoch: u64,
    /// Remediation turns that the task has used before.
    #[serde(default, skip_serializing_if = "has_no_turns")]
    pub remediations: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn has_no_turns(turns: &u32) -> bool {
    *turns == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLeft {
    pub task: TaskId,
    pub how: Left,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    Completed,
    /// It waits to be merged.
    Submitted,
    /// It could not be submitted, and is ready again for whoever goes on with it.
    Returned,
    /// A human is needed for it.
    Blocked,
    /// It is ready again.
    Released,
    /// Others have it.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointMade {
    pub by: String,
    pub data: Value,
}

/// A program took the session on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResumed {
    /// Which start of it this is; the first has 1.
    pub run: u32,
    /// Where it runs now.
    pub machine: String,
    /// The hooks that it has from now on, if the user agreed to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<String>,
    /// The scripts that its hooks run from now on, if those are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<FrozenScript>>,
}

/// Hooks are not what they were when the session began. It goes on with those that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustDrifted {
    /// Hooks and scripts, by name.
    pub what: Vec<String>,
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

/// How a session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Complete {
        /// Gates said no, and somebody took the work as it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unproven: bool,
    },
    NeedsHuman {
        reason: String,
    },
    Limit {
        limit: Limit,
    },
    /// The user ended it.
    Cancelled,
    /// Its program died, and another session was begun.
    Interrupted,
}

/// How a session ended, and whether its work is proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnded {
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Whether gates ran and passed on the files as they are at the end.
    #[serde(default)]
    pub proven: bool,
}

impl From<Outcome> for SessionEnded {
    fn from(outcome: Outcome) -> SessionEnded {
        SessionEnded { outcome, proven: false }
    }
}

/// A person lets a session that ended continue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReopened {
    /// The limits of the session from now on; none if they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

impl Outcome {
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Complete { .. } => "complete",
            Outcome::NeedsHuman { .. } => "needs_human",
            Outcome::Limit { .. } => "limit",
            Outcome::Cancelled => "cancelled",
            Outcome::Interrupted => "interrupted",
        }
    }

    /// Whether pending output is sent to the agent in a final turn. No turn follows a person's decision or
    /// a session that gave up, and none follows a limit of time, money or errors.
    pub(crate) fn delivers(&self) -> bool {
        match self {
            Outcome::Complete { unproven } => !unproven,
            Outcome::Limit { limit } => *limit == Limit::Iterations,
            Outcome::NeedsHuman { .. } | Outcome::Cancelled | Outcome::Interrupted => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesSeen {
    /// A digest of all of them.
    pub files: String,
    /// The commit that is checked out; none outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Only hooks and gates of this session had the files since the turn before, so changes are theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_hooks: bool,
}
