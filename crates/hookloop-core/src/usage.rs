//! Tokens and money that turns use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The usage of a turn, as the agent reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, cached ones included.
    #[serde(alias = "inputTokens")]
    pub input_tokens: u64,
    /// Cached input tokens.
    #[serde(alias = "cachedTokens", skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    #[serde(alias = "outputTokens")]
    pub output_tokens: u64,
    /// Millionths of a dollar.
    #[serde(alias = "costMicros")]
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

    /// Returns the usage since `before`, for agents whose counters continue from turn to turn.
    #[must_use]
    pub fn since(&self, before: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(before.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_micros: self.cost_micros.saturating_sub(before.cost_micros),
        }
    }

    /// Raises each value to that of `other` if it is larger.
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
