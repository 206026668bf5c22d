//! The monotonic clock as one number. A dispatch reads, adds and compares times for each hook, and `Instant`, which
//! keeps seconds and nanoseconds apart behind calls into the standard library, made up a tenth of its cost.

use std::ops::Add;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// A point in time on the monotonic clock, in nanoseconds since an arbitrary point. Good for 584 years.
///
/// ```
/// use hookwright::hook::Moment;
/// use std::time::Duration;
/// let start = Moment::now();
/// let deadline = start + Duration::from_secs(10);
/// assert!(deadline > start);
/// assert_eq!(deadline.since(start), Duration::from_secs(10));
/// assert_eq!(start.since(deadline), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    #[inline]
    pub fn now() -> Self {
        // It fails for a clock that the system does not have and for a bad pointer; there is neither here. (rustix asks
        // the kernel's page directly, without the C library; that costs a little less, and crashes under valgrind.)
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has a monotonic clock");
        // The clock starts at zero when the machine does, so neither part is negative.
        Moment((now.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec() as u64))
    }

    /// Nanoseconds since the clock's own beginning.
    #[inline]
    pub const fn nanoseconds(self) -> u64 {
        self.0
    }

    /// The moment of which [`Moment::nanoseconds`] gave this number, in this process.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Moment(nanoseconds)
    }

    /// The time from `earlier` to this moment; zero if it is not earlier.
    #[inline]
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `nanoseconds` later.
    #[inline]
    pub const fn later(self, nanoseconds: u64) -> Self {
        Moment(self.0.saturating_add(nanoseconds))
    }

    /// The time from now until this moment; zero if it is over.
    pub fn left(self) -> Duration {
        self.since(Moment::now())
    }

    /// The same moment for code that counts in `Instant`.
    pub fn instant(self) -> Instant {
        let (now, instant) = (Moment::now(), Instant::now());
        if self >= now { instant + self.since(now) } else { instant.checked_sub(now.since(self)).unwrap_or(instant) }
    }
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        let (now, present) = (Moment::now(), Instant::now());
        match instant.checked_duration_since(present) {
            Some(ahead) => now + ahead,
            None => Moment(now.0.saturating_sub(nanoseconds(present.duration_since(instant)))),
        }
    }
}

/// As one number; what is longer than 584 years is cut off.
#[inline]
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

impl Add<Duration> for Moment {
    type Output = Moment;

    #[inline]
    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(nanoseconds(duration)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_and_an_instant_stand_for_each_other() {
        let moment = Moment::now() + Duration::from_secs(5);
        let back = Moment::from(moment.instant());
        // Between the two readings of a conversion this thread may have had to wait.
        assert!(back.since(moment).max(moment.since(back)) < Duration::from_secs(1));
        let past = Moment::from(Instant::now() - Duration::from_millis(1));
        assert!(past < Moment::now());
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!((Moment(1) + Duration::MAX).nanoseconds(), u64::MAX);
    }
}
