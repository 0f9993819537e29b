//! What happens in a session, as the log has it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{CostFigure, FrozenScript, Limit, Limits, counted};
use crate::delivery::Submission;
use crate::id::TaskId;
use crate::point::Point;
use crate::promise::{NearMiss, Promise};

/// Checks that a line names.
const NAMED_MAX: usize = 4;

/// The hooks of a point have run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointPassed {
    pub point: String,
}

/// How far an agent may trust a text: each class has a section of its own in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptChannel {
    /// An instruction of hookloop, or of a hook whose trusted definition says `answers: json`.
    Instruction,
    /// A message or an answer of a person.
    User,
    /// The result of a check: data.
    CheckResult,
    /// The output of a hook, or a note: data.
    HookOutput,
}

/// Text that waits for a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Piped {
    /// A hook's name, `user`, or what else it is from.
    pub from: String,
    pub point: String,
    /// What came of the run, if it is a hook's: `passed`, `failed`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub text: String,
    /// The class of the text; none in events of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<PromptChannel>,
    /// The command of the gate whose result the text is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The exit code of that command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The agent's question that the text answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

impl Piped {
    /// The class of the text. An older event is classed by its point.
    pub fn channel(&self) -> PromptChannel {
        let by_point = || match (self.point.as_str(), self.point.parse()) {
            (super::state::MESSAGE, _) => PromptChannel::User,
            (_, Ok(Point::Stop | Point::Validation | Point::BeforeSubmit)) => {
                PromptChannel::CheckResult
            }
            _ => PromptChannel::HookOutput,
        };
        self.channel.unwrap_or_else(by_point)
    }
}

/// A prompt is about to be sent, with the first `items` of what waits in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationStarted {
    pub number: u32,
    /// More than 1 if this program ended during the turn before.
    pub attempt: u32,
    /// How much of what waited for the agent is in the prompt.
    pub items: u32,
}

/// A turn that is no iteration is about to begin: recovery or final delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    pub turn: TurnKind,
    pub attempt: u32,
    /// How much of what waited for the agent is in the prompt.
    pub items: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// An iteration's.
    Work,
    /// After an error.
    Recovery,
    /// Of what was left to say at the end.
    Delivery,
}

/// What an agent says by a tool counts as if its final message had said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    pub claim: Promise,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    pub turn: TurnKind,
    #[serde(flatten)]
    pub result: TurnResult,
    /// Who took it, by the name that the plan has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    pub duration_ms: u64,
    /// How long the session has run by now.
    pub active_ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
    /// The agent did not come to say all that it used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// The cost of the turn is unknown: the agent reported none, and no price applies. `usage.costMicros` is no measure
    /// then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unpriced: bool,
    /// The last line that the agent wrote to stderr, if the turn did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The cause of a failed turn that another turn of the same agent would not remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AgentFault>,
    /// The end of the agent's final message, with its beginning if it is long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// Tags in the message that look like a promise, if none of them is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<NearMiss>,
    /// What the project's files are now, by digest; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The commit that is checked out after the turn; none outside of git, and where commits are no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first of those that changed in the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What the agent asked for and may not do, the first of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Where this machine keeps the agent's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The agent's name for the conversation, to go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum TurnResult {
    Finished,
    Failed {
        error: String,
    },
    /// Who answers the agent wants to be left alone for a while.
    RateLimited {
        error: String,
        /// Until then, if that was told: milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// By us: the session is to end, or the turn used what there was for it.
    Cancelled,
}

impl TurnEnded {
    /// What the turn cost.
    pub fn cost(&self) -> CostFigure {
        let unpriced_turns = u64::from(self.has_unknown_cost());
        CostFigure { micros: self.usage.cost_micros, unpriced_turns }
    }

    /// Whether the cost of the turn is unknown. A turn of an older version with tokens and no cost is one, too.
    pub fn has_unknown_cost(&self) -> bool {
        self.is_unpriced || self.usage.cost_micros == 0 && self.usage.tokens() > 0
    }

    /// The failure of a turn in one line: its error, and the last line of stderr where that says more.
    pub fn failure_line(&self) -> Option<String> {
        let error = match &self.result {
            TurnResult::Failed { error } | TurnResult::RateLimited { error, .. } => error,
            TurnResult::Finished | TurnResult::Cancelled => return None,
        };
        let first = error.lines().next().unwrap_or_default().trim();
        let stderr = self.stderr.as_deref().map(str::trim).filter(|line| !line.is_empty());
        Some(match stderr {
            Some(line) if !first.contains(line) => format!("{first}; stderr: {line}"),
            _ => first.to_owned(),
        })
    }
}

/// A cause of failure that a person has to remove before any further turn of the agent can succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFault {
    pub cause: FaultCause,
    /// The next step for a person, as a sentence with the command to type.
    pub remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCause {
    /// The agent is not logged in, or its provider rejects the key.
    Login,
    /// The agent rejects its command line.
    Usage,
    /// The agent is older than the oldest version that hookloop can drive.
    Version,
    /// The agent's program is not installed, or can't be started.
    Missing,
    /// A cause that only a newer version of hookloop knows.
    #[serde(other)]
    Other,
}

impl FaultCause {
    /// The cause as a sentence about `agent`, without a full stop.
    pub fn about(self, agent: &str) -> String {
        match self {
            FaultCause::Login => format!("{agent} is not logged in, or its key is rejected"),
            FaultCause::Usage => format!("{agent} rejects its command line"),
            FaultCause::Version => format!("{agent} is too old"),
            FaultCause::Missing => format!("{agent} can't be started"),
            FaultCause::Other => format!("{agent} can't work"),
        }
    }
}

/// What a turn used, as far as the agent says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// All that was read, from a cache or not.
    pub input_tokens: u64,
    /// Those of them that a cache had.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    pub fn is_none(&self) -> bool {
        *self == Usage::default()
    }

    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// What is more than `before`, where an agent counts on from turn to turn.
    #[must_use]
    pub fn since(&self, before: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(before.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_micros: self.cost_micros.saturating_sub(before.cost_micros),
        }
    }

    /// Makes it what `other` is, where that is more.
    pub fn raise(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.max(other.input_tokens);
        self.cached_tokens = self.cached_tokens.max(other.cached_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        self.cost_micros = self.cost_micros.max(other.cost_micros);
    }

    pub fn add(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// A claim, which gates are held against.
    Complete,
    Continue,
    Escalate,
}

/// Whether the iteration was the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopDecided {
    pub decision: Decision,
    pub reason: String,
    /// Which of [`super::StopWhen`] decided.
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
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub gate: String,
    pub point: String,
    /// What ran.
    pub what: Value,
    /// `passed`, `blocked`, `failed`, `timed_out`, …
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The git tree of the project as it was, with what is not committed; none outside of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Of the output.
    pub output_sha256: String,
    pub duration_ms: u64,
    /// The values for later hooks of the same point; none if there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}

impl Receipt {
    pub fn is_green(&self) -> bool {
        self.status == "passed"
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Block,
    Escalate { reason: String },
}

/// What the gates said to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatesJudged {
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How many there are.
    pub gates: u32,
    /// The git tree that they ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What the files were, by the digest that turns have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Checks that fail, by gate.
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

impl GatesJudged {
    /// Whether at least one gate ran and passed, and none blocks.
    pub fn is_proof(&self) -> bool {
        self.verdict == Verdict::Pass && !self.passed.is_empty()
    }
}

/// Which gates passed, were skipped or failed: "2 passed, 1 skipped: lint".
impl fmt::Display for GatesJudged {
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

/// What came of submitting a task's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmitJudged {
    #[serde(flatten)]
    pub verdict: SubmitVerdict,
    /// The hook that it was up to, if it did not pass.
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
    /// It may be submitted; none if there is nothing to submit.
    Pass {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        submission: Option<Submission>,
    },
    /// A hook said no, and the agent was told what to do about it.
    Block,
    /// A hook changed the files, so what the gates said is not about them any more.
    Regate,
    /// It did not work out, and may another time.
    Retry {
        reason: String,
    },
    Escalate {
        reason: String,
    },
}

/// What is done about gates that have sent the agent back as often as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// As often again.
    Continue,
    Accept,
    /// A human is needed.
    Abort,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryLimitAsked {
    /// How often the agent was sent back.
    pub retries: u32,
    /// The checks that fail.
    pub failing: Vec<String>,
}

impl fmt::Display for RetryLimitAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gates said no after {}", counted(self.retries, "retry", "retries"))?;
        for (place, check) in self.failing.iter().take(NAMED_MAX).enumerate() {
            write!(f, "{}{check}", if place == 0 { ": " } else { ", " })?;
        }
        match self.failing.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryLimitAnswered {
    pub answer: Answer,
    pub by: String,
}

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

/// A claim or a submission changes nothing: the files and the commit are those that the work began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyDifferenceFound {
    /// The agent was asked about it before, so a person is asked now.
    pub was_asked: bool,
}

/// The gates' results on work that the agent did not report as complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    pub(super) fn delivers(&self) -> bool {
        match self {
            Outcome::Complete { unproven } => !unproven,
            Outcome::Limit { limit } => *limit == Limit::Iterations,
            Outcome::NeedsHuman { .. } | Outcome::Cancelled | Outcome::Interrupted => false,
        }
    }
}
