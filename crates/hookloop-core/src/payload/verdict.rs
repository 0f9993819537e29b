//! Receipts of gates, and the verdicts of stop conditions and gates.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::base_tests::BaseTests;
use super::delivery::Submission;
use super::evidence::GateRoom;
use super::session::is_zero;
use super::strength::TestStrength;
use crate::checks::CheckCounts;
use crate::excerpt::first_names;
use crate::hook_status::{HookStatus, RecordedStatus};
use crate::promise::Promise;
use crate::quantity::counted;

/// Checks that a line names.
const NAMED_MAX: usize = 4;
/// The start of the entry of `failing` for gates without a stable result. The files follow.
pub const FILES_CHANGED: &str = "files changed while the gates ran: ";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopDecision {
    /// The work is reported as complete; the gates judge it.
    Complete,
    Continue,
    Escalate,
}

/// The decision whether the iteration was the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopEvaluated {
    pub decision: StopDecision,
    pub reason: String,
    /// The name of the stop condition that decided.
    pub by: String,
    /// Checks that fail, if any were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Vec<String>>,
    /// The promises of the turn if they contradict each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicting: Vec<Promise>,
}

/// The record of one gate's run. It holds for one state of the project's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub gate: String,
    pub point: String,
    /// The definition of the gate that ran.
    #[serde(alias = "what")]
    pub definition: Value,
    /// `passed`, `blocked`, `failed`, `timed_out`, …
    pub status: RecordedStatus,
    #[serde(alias = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The git tree of the project, with uncommitted changes; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The SHA-256 digest of the output.
    #[serde(alias = "outputSha256")]
    pub output_sha256: String,
    #[serde(alias = "durationMs")]
    pub duration_ms: u64,
    /// The values for later hooks of the same point; none if there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// The digest of the gate's definition and scripts; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The room in which the gate ran; none for a gate without a process or files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<GateRoom>,
    /// The number of runs, with retries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// The counts of the gate's checks; none if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<CheckCounts>,
    /// The tests of the base that ran beside the gate; none if the gate runs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_tests: Option<Box<BaseTests>>,
    /// The strength of the gate's tests; none if it is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Box<TestStrength>>,
    /// The digest of the tools that the gate used; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// The session whose receipt for the same tree and gate is used again; none if the gate ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
}

impl Receipt {
    pub fn is_green(&self) -> bool {
        self.status.known() == Some(HookStatus::Passed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum JointVerdict {
    Pass,
    Block,
    Escalate { reason: String },
}

/// The joint verdict of the gates on a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatesEvaluated {
    #[serde(flatten)]
    pub verdict: JointVerdict,
    /// The number of gates.
    pub gates: u32,
    /// The git tree that the gates ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The digest of the files, as in `turn_ended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The failing checks, by gate.
    pub failing: Vec<String>,
    /// The gates that ran and passed, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
    /// The gates that did not run, by name: `when` does not hold, or the gate answered `skip`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The gates that failed and do not block, by name: `on_failure: open`, or another gate of the
    /// `any_of` group passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl GatesEvaluated {
    /// Whether at least one gate ran and passed, and none blocks.
    pub fn is_proof(&self) -> bool {
        self.verdict == JointVerdict::Pass && !self.passed.is_empty()
    }
}

/// Which gates passed, were skipped or failed: "2 passed, 1 skipped: lint".
impl fmt::Display for GatesEvaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apart = [
            (&self.passed, "passed"),
            (&self.skipped, "skipped"),
            (&self.failed, "failed without blocking"),
        ];
        let mut is_first = true;
        for (names, word) in apart {
            if names.is_empty() {
                continue;
            }
            let comma = if is_first { "" } else { ", " };
            write!(f, "{comma}{} {word}", names.len())?;
            is_first = false;
        }
        if is_first {
            f.write_str(&counted(self.gates, "gate", "gates"))?;
        }
        Ok(())
    }
}

/// The result of submitting a task's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionEvaluated {
    #[serde(flatten)]
    pub verdict: SubmitVerdict,
    /// The hook that decided, if the submission did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The hooks of `before_submit` that checked the submitted files and passed, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
    /// The failure that the agent was told about: equal for the same failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The obstacle, in words, where no hook stands in the way: a conflict and its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum SubmitVerdict {
    /// The work may be submitted; none if there is nothing to submit.
    Pass {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        submission: Option<Submission>,
    },
    /// A hook blocked, and the agent received its feedback.
    Block,
    /// A hook changed the files, so the verdict of the gates is void.
    Regate,
    /// The submission failed and is retried.
    Retry {
        reason: String,
    },
    Escalate {
        reason: String,
    },
}

/// The decision at the retry limit of gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitDecision {
    /// The agent gets as many retries again.
    Continue,
    Accept,
    /// The session ends and needs a person.
    Abort,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionRequested {
    /// The number of retries.
    pub retries: u32,
    /// The checks that fail.
    pub failing: Vec<String>,
}

impl fmt::Display for DecisionRequested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gates still fail after {}", counted(self.retries, "retry", "retries"))?;
        if self.failing.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", first_names(&self.failing, NAMED_MAX))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionMade {
    pub answer: LimitDecision,
    pub by: String,
}

/// A claim or a submission changes nothing: the files and the commit are those that the work began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyDifferenceFound {
    /// The agent was asked about it before, so a person is asked now.
    pub was_asked: bool,
}

/// The gates' results on work that the agent did not report as complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnclaimedWorkChecked {
    /// The number of gates; 0 if the session has none.
    pub gates: u32,
    /// Whether at least one gate passed and none blocks.
    pub passed: bool,
    /// Whether files changed since the work began.
    pub changed: bool,
    /// The gates that block, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
}

impl fmt::Display for UnclaimedWorkChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gates == 0 {
            f.write_str("there are no gates that could judge the files")
        } else if self.passed && self.changed {
            f.write_str(
                "all gates pass on the files as they are, but the agent did not report COMPLETE",
            )
        } else if self.passed {
            f.write_str("all gates pass, but no file changed and the agent did not report COMPLETE")
        } else if self.failing.is_empty() {
            f.write_str("no gate passed on the files as they are")
        } else {
            let named = self.failing.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            write!(f, "gates fail on the files as they are: {named}")
        }
    }
}
