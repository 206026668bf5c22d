//! When a failed attempt is made again.

use std::time::Duration;

/// How often and how soon one class of failures is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRule {
    /// How many attempts after the first; 0 is none.
    pub retries: u32,
    /// The longest wait before the first of them; it doubles with each.
    pub first_wait: Duration,
}

impl RetryRule {
    /// No retries.
    pub const NEVER: RetryRule = RetryRule { retries: 0, first_wait: Duration::ZERO };

    const fn new(retries: u32, seconds: u64) -> Self {
        RetryRule { retries, first_wait: Duration::from_secs(seconds) }
    }
}

/// When a failed attempt is made again: a rule for each class of failures. What is in no class (a wrong request, a wrong
/// key, an answer that makes no sense) is never tried again.
///
/// Waits grow exponentially up to [`longest_wait`](RetryPolicy::longest_wait). With [`jitter`](RetryPolicy::jitter) each
/// is a random part of that, so that many clients do not come back at the same moment. Where the server says when to come
/// back, no attempt is made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// No connection, no answer in time, a connection or a reply that broke off: 5 times from 1 s.
    pub connection: RetryRule,
    /// Status 429: 3 times from 5 s.
    pub rate_limited: RetryRule,
    /// Statuses 500 and 502, and failures that are told inside a reply: 3 times from 2 s.
    pub server: RetryRule,
    /// Statuses 503, 504 and 529, and whoever says that he is overloaded: 4 times from 2 s.
    pub overloaded: RetryRule,
    /// The longest wait of one's own accord; 60 s.
    pub longest_wait: Duration,
    /// Whether each wait is a random part of what it would be.
    pub jitter: bool,
    /// How long a request may take with all its attempts and waits; 30 minutes. `None` is no limit.
    pub deadline: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            connection: RetryRule::new(5, 1),
            rate_limited: RetryRule::new(3, 5),
            server: RetryRule::new(3, 2),
            overloaded: RetryRule::new(4, 2),
            longest_wait: Duration::from_secs(60),
            jitter: true,
            deadline: Some(Duration::from_secs(30 * 60)),
        }
    }
}

impl RetryPolicy {
    /// Each request is made once.
    pub fn never() -> Self {
        RetryPolicy {
            connection: RetryRule::NEVER,
            rate_limited: RetryRule::NEVER,
            server: RetryRule::NEVER,
            overloaded: RetryRule::NEVER,
            ..RetryPolicy::default()
        }
    }
}
