//! What tokens cost.

use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// Prices of a million tokens, in any unit of money. What is not given costs nothing; the prices of the cache are those of
/// the input if they are not given.
///
/// ```
/// use hookwright::agent::turn::Prices;
/// use hookwright::message::Usage;
/// let prices = Prices { input: 2.0, output: 8.0, cached: Some(0.5), ..Prices::default() };
/// let usage = Usage { input_tokens: 1_000_000, output_tokens: 500_000, cached_tokens: 400_000, ..Usage::default() };
/// assert_eq!(prices.cost(usage), 0.6 * 2.0 + 0.4 * 0.5 + 0.5 * 8.0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Of input tokens.
    pub input: f64,
    /// Of output tokens.
    pub output: f64,
    /// Of input tokens that are read from the cache.
    pub cached: Option<f64>,
    /// Of input tokens that are written to the cache.
    pub cache_write: Option<f64>,
}

impl Prices {
    /// What `usage` costs.
    pub fn cost(&self, usage: Usage) -> f64 {
        let plain = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let parts = [
            (plain, self.input),
            (usage.cached_tokens, self.cached.unwrap_or(self.input)),
            (usage.cache_write_tokens, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 / 1e6 * price).sum()
    }
}
