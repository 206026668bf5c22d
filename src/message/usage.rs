//! How many tokens a request used.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// How many tokens one or more requests used. Counts that a server does not report are 0.
///
/// ```
/// use hookwright::message::Usage;
/// let mut total = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
/// total += Usage { input_tokens: 5, cached_tokens: 4, ..Usage::default() };
/// assert_eq!((total.input_tokens, total.cached_tokens, total.total_tokens()), (15, 4, 17));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache included.
    pub input_tokens: u64,
    /// Tokens of the answer, those of its reasoning included.
    pub output_tokens: u64,
    /// Of the input tokens: read from the server's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the input tokens: written to the server's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Of the output tokens: spent on reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Input and output together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    /// Adds field by field; a sum that does not fit stays at the largest number.
    fn add_assign(&mut self, other: Usage) {
        let Usage { input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens } = other;
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(reasoning_tokens);
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(mut self, other: Usage) -> Usage {
        self += other;
        self
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
