//! The data of events about turns of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::agent_name;
use crate::id::SessionId;
use crate::promise::{NearMiss, Promise};
use crate::quantity::CostFigure;
use crate::shared_budget::Amount;
use crate::usage::Usage;

/// A prompt is about to be sent. It contains the first `items` of the waiting texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationStarted {
    pub number: u32,
    /// The attempt of the turn. More than 1 if the program ended during the turn before.
    pub attempt: u32,
    /// The number of waiting texts in the prompt.
    pub items: u32,
}

/// A turn that is no iteration is about to begin: recovery or final delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    pub turn: TurnKind,
    pub attempt: u32,
    /// The number of waiting texts in the prompt.
    pub items: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// The turn of an iteration.
    Work,
    /// A turn after an error.
    Recovery,
    /// A final turn with the pending output.
    Delivery,
}

/// The agent's report by a tool. It counts like a promise in the final message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionClaimed {
    pub claim: Promise,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    pub turn: TurnKind,
    #[serde(flatten)]
    pub result: TurnResult,
    /// The agent that took the turn, by its name in the plan.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "agent_name")]
    pub agent: String,
    #[serde(alias = "durationMs")]
    pub duration_ms: u64,
    /// The run time of the session so far.
    #[serde(alias = "activeMs")]
    pub active_ms: u64,
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
    /// The agent ended before it reported its whole usage.
    #[serde(alias = "isPartial", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// The cost of the turn is unknown: the agent reported none, and no price applies. `usage.cost_micros` has
    /// no meaning then.
    #[serde(alias = "isUnpriced", default, skip_serializing_if = "std::ops::Not::not")]
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
    #[serde(alias = "nearMisses", default, skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<NearMiss>,
    /// The digest of the project's files after the turn; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// The git tree of all files after the turn, committed or not; none if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The commit that is checked out after the turn; none outside of git, and where commits are no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first files that changed in the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The first requests of the agent that were denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The path of the agent's output on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// The agent's id of the conversation, to continue it.
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
    /// The provider of the agent returned a rate limit.
    RateLimited {
        error: String,
        /// The end of the rate limit, if it is known: milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// hookloop cancelled the turn: the session ends, or the turn reached a limit.
    Cancelled,
}

impl TurnResult {
    /// Returns the name of the result, as events have it.
    pub fn name(&self) -> &'static str {
        match self {
            TurnResult::Finished => "finished",
            TurnResult::Failed { .. } => "failed",
            TurnResult::RateLimited { .. } => "rate_limited",
            TurnResult::Cancelled => "cancelled",
        }
    }
}

impl TurnEnded {
    /// Returns the cost of the turn.
    pub fn cost(&self) -> CostFigure {
        let unpriced_turns = u64::from(self.has_unknown_cost());
        CostFigure { micros: self.usage.cost_micros, unpriced_turns }
    }

    /// Whether the cost of the turn is unknown. A turn of an older version with tokens and no cost is one, too.
    pub fn has_unknown_cost(&self) -> bool {
        self.is_unpriced || self.usage.cost_micros == 0 && self.usage.tokens() > 0
    }

    /// Returns the failure of a turn in one line: its error, and the last line of stderr if that
    /// adds more.
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
    /// Returns the cause as a sentence about `agent`, without a full stop.
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

/// An amount that is reserved for a session's turn, in addition to earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReserved {
    pub session: SessionId,
    #[serde(flatten)]
    pub amount: Amount,
}
