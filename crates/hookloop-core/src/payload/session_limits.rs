//! The limits of a session.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{CompactCount, Dollars, Length, counted};

/// The limits that end a session. All of them have defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLimits {
    #[serde(alias = "iterations")]
    pub max_iterations: u32,
    /// The maximum run time. Pauses and crashes are not counted.
    #[serde(alias = "durationMs")]
    pub max_duration_ms: u64,
    /// The timeout of one turn.
    #[serde(alias = "turnMs")]
    pub turn_timeout_ms: u64,
    /// Failed turns in a row.
    #[serde(alias = "errors")]
    pub max_errors: u32,
    /// The number of times that gates may fail without the work improving.
    #[serde(alias = "hookRetries")]
    pub gate_retries: u32,
    /// Iterations in a row without progress.
    #[serde(alias = "noProgress")]
    pub max_no_progress: u32,
    /// Turns of a task in which agents may fix problems that hooks of a delivery or a merge found.
    #[serde(alias = "remediations", default = "remediations")]
    pub max_remediations: u32,
    /// The number of times that a task may be returned unfinished before a person is asked.
    #[serde(alias = "continuations", default = "continuations")]
    pub max_continuations: u32,
    /// Tokens of one session, for agents that report their usage.
    #[serde(alias = "tokens")]
    pub max_tokens: u64,
    #[serde(alias = "costMicros")]
    pub max_cost_micros: u64,
    /// Turns whose cost is unknown. Unlimited unless a cost limit is set, because that limit can't count these
    /// turns.
    #[serde(alias = "unpricedTurns", default = "unbound", skip_serializing_if = "is_unbound")]
    pub max_unpriced_turns: u32,
}

/// The default limit of turns of unknown cost for a session with a cost limit.
pub const UNPRICED_TURNS: u32 = 20;

fn unbound() -> u32 {
    u32::MAX
}

fn is_unbound(turns: &u32) -> bool {
    *turns == u32::MAX
}

fn remediations() -> u32 {
    3
}

fn continuations() -> u32 {
    3
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        const HOUR_MS: u64 = 60 * 60 * 1_000;
        SessionLimits {
            max_iterations: 100,
            max_duration_ms: 8 * HOUR_MS,
            turn_timeout_ms: HOUR_MS,
            max_errors: 5,
            gate_retries: 5,
            max_no_progress: 5,
            max_remediations: remediations(),
            max_continuations: continuations(),
            max_tokens: 50_000_000,
            max_cost_micros: 50_000_000,
            max_unpriced_turns: unbound(),
        }
    }
}

impl SessionLimits {
    /// Returns these limits, none of them wider than in `ceiling`.
    pub fn within(self, ceiling: SessionLimits) -> SessionLimits {
        SessionLimits {
            max_iterations: self.max_iterations.min(ceiling.max_iterations),
            max_duration_ms: self.max_duration_ms.min(ceiling.max_duration_ms),
            turn_timeout_ms: self.turn_timeout_ms.min(ceiling.turn_timeout_ms),
            max_errors: self.max_errors.min(ceiling.max_errors),
            gate_retries: self.gate_retries.min(ceiling.gate_retries),
            max_no_progress: self.max_no_progress.min(ceiling.max_no_progress),
            max_remediations: self.max_remediations.min(ceiling.max_remediations),
            max_continuations: self.max_continuations.min(ceiling.max_continuations),
            max_tokens: self.max_tokens.min(ceiling.max_tokens),
            max_cost_micros: self.max_cost_micros.min(ceiling.max_cost_micros),
            max_unpriced_turns: self.max_unpriced_turns.min(ceiling.max_unpriced_turns),
        }
    }
}

impl fmt::Display for SessionLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |ms| Length { ms };
        write!(
            f,
            "{}, {}, {} a turn, {}, {}, {} without progress, {} tokens, {}",
            counted(self.max_iterations, "iteration", "iterations"),
            length(self.max_duration_ms),
            length(self.turn_timeout_ms),
            counted(self.max_errors, "error", "errors"),
            counted(self.gate_retries, "retry", "retries"),
            self.max_no_progress,
            CompactCount(self.max_tokens),
            Dollars(self.max_cost_micros),
        )
    }
}

/// A limit that ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionLimit {
    Iterations,
    Duration,
    Errors,
    Tokens,
    Cost,
    /// The budget of all sessions.
    #[serde(alias = "purse")]
    Budget,
}

impl SessionLimit {
    pub fn name(self) -> &'static str {
        match self {
            SessionLimit::Iterations => "iterations",
            SessionLimit::Duration => "duration",
            SessionLimit::Errors => "errors",
            SessionLimit::Tokens => "tokens",
            SessionLimit::Cost => "cost",
            SessionLimit::Budget => "budget",
        }
    }
}
