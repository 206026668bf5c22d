//! When a failed attempt is made again.

use std::time::Duration;

use super::{FailureKind, ModelFailure};

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

/// The classes of failures that are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Connection,
    RateLimited,
    Server,
    Overloaded,
}

/// The class of `failure`; `None` if it is never tried again. The status counts before the kind. `early`: it is a reply
/// that ended too early.
pub(super) fn class_of(failure: &ModelFailure, early: bool) -> Option<Class> {
    if early {
        return Some(Class::Connection);
    }
    match failure.status {
        Some(429) => return Some(Class::RateLimited),
        Some(503 | 504 | 529) => return Some(Class::Overloaded),
        Some(300..500) => return None,
        _ => {}
    }
    match failure.kind {
        FailureKind::Connection | FailureKind::Timeout => Some(Class::Connection),
        FailureKind::RateLimited => Some(Class::RateLimited),
        FailureKind::Server => Some(Class::Server),
        FailureKind::Overloaded => Some(Class::Overloaded),
        _ => None,
    }
}

/// The retries of one request.
#[derive(Debug)]
pub(super) struct Retries {
    policy: RetryPolicy,
    made: [u32; 4],
}

impl Retries {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        Retries { policy, made: [0; 4] }
    }

    /// How many attempts there are at most, where all fail with `class`.
    pub(super) fn most(&self, class: Class) -> u32 {
        self.rule(class).retries + 1
    }

    fn rule(&self, class: Class) -> RetryRule {
        match class {
            Class::Connection => self.policy.connection,
            Class::RateLimited => self.policy.rate_limited,
            Class::Server => self.policy.server,
            Class::Overloaded => self.policy.overloaded,
        }
    }

    /// Others have been refused so often in a row: their attempts count like one's own.
    pub(super) fn count(&mut self, class: Class, made: u32) {
        self.made[class as usize] = self.made[class as usize].max(made);
    }

    /// How long to wait before the next attempt after a failure of `class`; `None` if there is none. What the server
    /// asks for, `floor`, is the least, whatever the policy says of waits.
    pub(super) fn wait(&mut self, class: Class, floor: Option<Duration>) -> Option<Duration> {
        let rule = self.rule(class);
        let made = &mut self.made[class as usize];
        if *made >= rule.retries {
            return None;
        }
        let grown = rule.first_wait.saturating_mul(2_u32.saturating_pow(*made)).min(self.policy.longest_wait);
        *made += 1;
        let wait = if self.policy.jitter { grown.mul_f64(fastrand::f64()) } else { grown };
        Some(wait.max(floor.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: RetryPolicy, class: Class, floor: Option<u64>) -> Vec<u64> {
        let mut retries = Retries::new(policy);
        std::iter::from_fn(|| retries.wait(class, floor.map(Duration::from_secs))).map(|wait| wait.as_secs()).collect()
    }

    #[test]
    fn each_class_has_its_number_and_its_waits() {
        let policy = RetryPolicy { jitter: false, ..RetryPolicy::default() };
        assert_eq!(waits(policy, Class::Connection, None), [1, 2, 4, 8, 16]);
        assert_eq!(waits(policy, Class::RateLimited, None), [5, 10, 20]);
        assert_eq!(waits(policy, Class::Server, None), [2, 4, 8]);
        assert_eq!(waits(policy, Class::Overloaded, None), [2, 4, 8, 16]);
        assert_eq!(waits(RetryPolicy::never(), Class::Connection, Some(1)), [0; 0]);
        let many = RetryPolicy { connection: RetryRule { retries: 40, ..policy.connection }, ..policy };
        assert_eq!(waits(many, Class::Connection, None).last(), Some(&60));
    }

    #[test]
    fn what_the_server_asks_for_is_the_least() {
        for jitter in [true, false] {
            let policy = RetryPolicy { jitter, ..RetryPolicy::default() };
            assert_eq!(waits(policy, Class::RateLimited, Some(90)), [90, 90, 90]);
        }
        let policy = RetryPolicy::default();
        for _ in 0..100 {
            let waits = waits(policy, Class::RateLimited, None);
            assert!(waits.len() == 3 && waits.iter().zip([5, 10, 20]).all(|(wait, most)| *wait < most), "{waits:?}");
        }
    }

    #[test]
    fn status_and_kind_choose_the_class() {
        let of = |status, kind| class_of(&ModelFailure { status, ..ModelFailure::new(kind, "") }, false);
        assert_eq!(of(Some(429), FailureKind::RateLimited), Some(Class::RateLimited));
        assert_eq!(of(Some(500), FailureKind::Server), Some(Class::Server));
        assert_eq!(of(Some(500), FailureKind::Overloaded), Some(Class::Overloaded));
        assert_eq!(of(Some(503), FailureKind::Overloaded), Some(Class::Overloaded));
        for status in [400, 401, 403, 404, 408, 409, 422] {
            assert_eq!(of(Some(status), FailureKind::InvalidRequest), None, "{status}");
        }
        assert_eq!(of(None, FailureKind::Connection), Some(Class::Connection));
        assert_eq!(of(None, FailureKind::InvalidReply), None);
        assert_eq!(class_of(&ModelFailure::new(FailureKind::InvalidReply, ""), true), Some(Class::Connection));
    }
}
