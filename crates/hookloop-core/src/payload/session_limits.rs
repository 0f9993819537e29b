//! The limits of a session.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Count, Dollars, Length, counted};

/// What a session has until it ends, whatever the agent says. All of them hold by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    pub iterations: u32,
    /// Of time in which it runs; pauses and crashes are not counted.
    pub duration_ms: u64,
    /// Of one turn.
    pub turn_ms: u64,
    /// Failed turns in a row.
    pub errors: u32,
    /// How often gates may send the agent back without its work getting better.
    pub hook_retries: u32,
    /// Iterations in a row in which nothing gets anywhere.
    pub no_progress: u32,
    /// Turns in which agents may fix what hooks of a delivery or a merge found, for each task.
    #[serde(default = "remediations")]
    pub remediations: u32,
    /// How often a task may go back unfinished until a human is asked.
    #[serde(default = "continuations")]
    pub continuations: u32,
    /// Tokens of one session, for agents that report their usage.
    pub tokens: u64,
    pub cost_micros: u64,
    /// Turns whose cost is unknown. No bound unless somebody set a limit of cost: that can't count these turns.
    #[serde(default = "unbound", skip_serializing_if = "is_unbound")]
    pub unpriced_turns: u32,
}

/// Turns of unknown cost that a session may take which has a limit of cost.
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

impl Default for Limits {
    fn default() -> Limits {
        const HOUR_MS: u64 = 60 * 60 * 1_000;
        Limits {
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

impl Limits {
    /// These limits under a scope that allows `ceiling`: what is wider is what it allows.
    pub fn within(self, ceiling: Limits) -> Limits {
        Limits {
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

impl fmt::Display for Limits {
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
            Count(self.tokens),
            Dollars(self.cost_micros),
        )
    }
}

/// A limit that ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Iterations,
    Duration,
    Errors,
    Tokens,
    Cost,
    /// Of all sessions together.
    Purse,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::Iterations => "iterations",
            Limit::Duration => "duration",
            Limit::Errors => "errors",
            Limit::Tokens => "tokens",
            Limit::Cost => "cost",
            Limit::Purse => "purse",
        }
    }
}
