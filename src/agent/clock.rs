//! Where a session takes the time from.

use std::fmt::Debug;

use crate::message::Timestamp;

/// Where a session takes the time from, so that a test can write the same transcript twice.
pub trait Clock: Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still.
///
/// ```
/// use hookwright::agent::{Clock, FixedClock};
/// use hookwright::message::Timestamp;
/// let clock = FixedClock(Timestamp::from_millis(5));
/// assert_eq!((clock.now(), clock.now()), (Timestamp::from_millis(5), Timestamp::from_millis(5)));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
