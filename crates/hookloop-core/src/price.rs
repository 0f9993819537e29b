//! Prices of tokens, for agents that report no cost.

use crate::usage::Usage;

/// The number of tokens that a price covers.
const PER: u128 = 1_000_000;

/// The price of a model's tokens, in millionths of a dollar for a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPrice {
    pub input_micros: u64,
    /// The price of cached input.
    pub cached_micros: u64,
    pub output_micros: u64,
}

impl TokenPrice {
    /// Returns the cost of `usage`, in millionths of a dollar, rounded up.
    pub fn cost_micros(&self, usage: &Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - cached, self.input_micros),
            (cached, self.cached_micros),
            (usage.output_tokens, self.output_micros),
        ];
        let sum = parts.into_iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(tokens) * u128::from(price))
        });
        u64::try_from(sum.div_ceil(PER)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = TokenPrice {
            input_micros: 3_000_000,
            cached_micros: 300_000,
            output_micros: 15_000_000,
        };
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_tokens: 400_000,
            output_tokens: 100_000,
            cost_micros: 0,
        };
        assert_eq!(price.cost_micros(&usage), 1_800_000 + 120_000 + 1_500_000);
        assert_eq!(price.cost_micros(&Usage::default()), 0);
    }

    #[test]
    fn a_cost_above_the_maximum_saturates() {
        let price =
            TokenPrice { input_micros: u64::MAX, cached_micros: u64::MAX, output_micros: u64::MAX };
        let usage = Usage {
            input_tokens: u64::MAX,
            cached_tokens: 1,
            output_tokens: u64::MAX,
            cost_micros: 0,
        };
        assert_eq!(price.cost_micros(&usage), u64::MAX);
    }
}
