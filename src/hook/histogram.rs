//! Times of a hook, counted in buckets whose width grows with the time.
//!
//! A dispatch counts one time for each hook, so what that touches decides: a bucket is four bytes in a table of 2.3 KiB.
//! A general histogram, exact to two digits in 10 KiB, made up a tenth of the cost of a dispatch.

/// Buckets per doubling: a bucket is at most 1/16 of its times wide, so a percentile is right within 3 %.
const PER_DOUBLING: u32 = 16;
const SUB_BITS: u32 = PER_DOUBLING.trailing_zeros();
/// The shortest time that is told from shorter ones, as a power of two of nanoseconds.
const FIRST: u32 = 6;
/// Times of this power of two and longer ones (73 minutes) are not told apart.
const LAST: u32 = 42;
const BUCKETS: usize = ((LAST - FIRST) * PER_DOUBLING) as usize;

/// Counts of times.
pub(super) struct Histogram {
    counts: Box<[u32; BUCKETS]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]) }
    }
}

#[inline]
fn bucket(nanoseconds: u64) -> usize {
    let time = nanoseconds.clamp(1 << FIRST, (1 << LAST) - 1);
    let power = time.ilog2();
    // The bits below the highest one say where between this power of two and the next.
    let within = (time >> (power - SUB_BITS)) & u64::from(PER_DOUBLING - 1);
    ((power - FIRST) << SUB_BITS) as usize + within as usize
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> u64 {
    let power = FIRST + (bucket >> SUB_BITS) as u32;
    let width = 1u64 << (power - SUB_BITS);
    (1u64 << power) + (bucket as u64 & u64::from(PER_DOUBLING - 1)) * width + width / 2
}

impl Histogram {
    /// Counts a time. A bucket that is full (after four thousand million times) stays full.
    #[inline]
    pub(super) fn add(&mut self, nanoseconds: u64) {
        let count = &mut self.counts[bucket(nanoseconds)];
        *count = count.saturating_add(1);
    }

    /// How many times there are.
    pub(super) fn len(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The time that `percent` of all times do not exceed, in nanoseconds; 0 if there are none.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let rank = (self.len() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return middle(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_is_found_again_within_four_percent(nanoseconds in (1u64 << FIRST)..(1 << LAST)) {
            let found = middle(bucket(nanoseconds)) as f64;
            prop_assert!((found / nanoseconds as f64 - 1.0).abs() < 0.04, "{} for {}", found, nanoseconds);
        }

        #[test]
        fn longer_times_never_stand_in_earlier_buckets(one: u64, other: u64) {
            prop_assert_eq!(bucket(one.min(other)) <= bucket(one.max(other)), true);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), 0);
        for milliseconds in 1..=100 {
            histogram.add(milliseconds * 1_000_000);
        }
        assert_eq!(histogram.len(), 100);
        for percent in [50.0, 95.0, 99.0] {
            let found = histogram.percentile(percent) as f64 / 1e6;
            assert!((found / percent - 1.0).abs() < 0.04, "{found} for the percentile {percent}");
        }
    }

    #[test]
    fn times_beyond_the_ends_are_counted_at_the_ends() {
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }
}
