//! The limits of a session.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{CompactCount, Dollars, Length, counted};

/// The limits that end a session. All of them have defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionLimits {
    pub iterations: u32,
    /// The longest run time. Pauses and crashes are not counted.
    pub duration_ms: u64,
    /// The timeout of one turn.
    pub turn_ms: u64,
    /// Failed turns in a row.
    pub errors: u32,
    /// How often gates may fail without the work improving.
    pub hook_retries: u32,
    /// Iterations in a row without progress.
    pub no_progress: u32,
    /// Turns of a task in which agents may fix problems that hooks of a delivery or a merge found.
    #[serde(default = "remediations")]
    pub remediations: u32,
    /// How often a task may be returned unfinished before a person is asked.
    #[serde(default = "continuations")]
    pub continuations: u32,
    /// Tokens of one session, for agents that report their usage.
    pub tokens: u64,
    pub cost_micros: u64,
    /// Turns whose cost is unknown. Unlimited unless a cost limit is set, because that limit can't count these
    /// turns.
    #[serde(default = "unbound", skip_serializing_if = "is_unbound")]
    pub unpriced_turns: u32,
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
            iterations: 100,
            duration_ms: 8 * HOUR_MS,
            turn_ms: HOUR_MS,
            errors: 5,
            hook_retries: 5,
            no_progress: 5,
            remediations: remediations(),
            continuations: continuations(),
            tokens: 50_000_000,
            cost_micros: 50_000_000,
            unpriced_turns: unbound(),
        }
    }
}

impl SessionLimits {
    /// Returns these limits, none of them wider than in `ceiling`.
    pub fn within(self, ceiling: SessionLimits) -> SessionLimits {
        SessionLimits {
            iterations: self.iterations.min(ceiling.iterations),
            duration_ms: self.duration_ms.min(ceiling.duration_ms),
            turn_ms: self.turn_ms.min(ceiling.turn_ms),
            errors: self.errors.min(ceiling.errors),
            hook_retries: self.hook_retries.min(ceiling.hook_retries),
            no_progress: self.no_progress.min(ceiling.no_progress),
            remediations: self.remediations.min(ceiling.remediations),
            continuations: self.continuations.min(ceiling.continuations),
            tokens: self.tokens.min(ceiling.tokens),
            cost_micros: self.cost_micros.min(ceiling.cost_micros),
            unpriced_turns: self.unpriced_turns.min(ceiling.unpriced_turns),
        }
    }
}

impl fmt::Display for SessionLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |ms| Length { ms };
        write!(
            f,
            "{}, {}, {} a turn, {}, {}, {} without progress, {} tokens, {}",
            counted(self.iterations, "iteration", "iterations"),
            length(self.duration_ms),
            length(self.turn_ms),
            counted(self.errors, "error", "errors"),
            counted(self.hook_retries, "retry", "retries"),
            self.no_progress,
            CompactCount(self.tokens),
            Dollars(self.cost_micros),
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
    Purse,
}

impl SessionLimit {
    pub fn name(self) -> &'static str {
        match self {
            SessionLimit::Iterations => "iterations",
            SessionLimit::Duration => "duration",
            SessionLimit::Errors => "errors",
            SessionLimit::Tokens => "tokens",
            SessionLimit::Cost => "cost",
            SessionLimit::Purse => "purse",
        }
    }
}
