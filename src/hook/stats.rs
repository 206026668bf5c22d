//! Counts and times per hook, kept by the chain over all its dispatches.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::outcome::{Outcome, RunStatus};

/// Times below this count as this, in nanoseconds.
const SHORTEST: u64 = 100;
/// Times above this count as this, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// What one hook did so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HookStats {
    /// The hook's name.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it changed something.
    pub changes: u64,
    /// How often it halted.
    pub halts: u64,
    /// How often it failed.
    pub failures: u64,
    /// How often it did not answer in time.
    pub timeouts: u64,
    /// How often its filter did not match.
    pub filtered: u64,
    /// How often it was passed over: switched off, after a halt, or with no time left.
    pub passed_over: u64,
    /// Median time of a run in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile in milliseconds.
    pub p95_ms: f64,
    /// 99th percentile in milliseconds.
    pub p99_ms: f64,
}

/// How many times are kept before they are sorted into the histogram together.
const PENDING: usize = 14;

#[derive(Default)]
struct Counts {
    /// The latest times in nanoseconds, in the order in which they came: the histogram, of which a hundred hooks have a
    /// megabyte, is touched once for all of them and not in every dispatch.
    pending: [u32; PENDING],
    pending_count: usize,
    by_status: [u64; 9],
    // Made with the first time: a chain of many hooks that never match stays small.
    times: Option<Box<Histogram<u64>>>,
}

impl Counts {
    #[inline]
    fn add_time(&mut self, nanoseconds: u64) {
        let Ok(short) = u32::try_from(nanoseconds) else { return self.histogram().saturating_record(nanoseconds) };
        self.pending[self.pending_count] = short;
        self.pending_count += 1;
        if self.pending_count == PENDING {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for index in 0..std::mem::take(&mut self.pending_count) {
            let nanoseconds = u64::from(self.pending[index]).max(SHORTEST);
            self.histogram().saturating_record(nanoseconds);
        }
    }

    fn histogram(&mut self) -> &mut Histogram<u64> {
        // At two digits about 10 KiB a hook. The bounds are constants that the crate accepts, so a refusal cannot
        // happen; without a histogram only the percentiles would be missing.
        self.times.get_or_insert_with(|| {
            let made = Histogram::new_with_bounds(SHORTEST, LONGEST, 2);
            Box::new(made.unwrap_or_else(|_| Histogram::new(2).expect("2 digits")))
        })
    }
}

/// The counts of all hooks of a chain, by slot.
#[derive(Default)]
pub struct StatsTable {
    slots: Vec<Counts>,
}

impl StatsTable {
    pub(super) fn grow(&mut self, slots: usize) {
        self.slots.resize_with(slots.max(self.slots.len()), Counts::default);
    }

    /// Adds the runs of one dispatch.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        for (entry, run) in outcome.entries.iter().zip(&outcome.runs) {
            let Some(counts) = self.slots.get_mut(entry.slot) else { continue };
            counts.by_status[run.status as usize] += 1;
            if run.attempts > 0 {
                counts.add_time(run.nanoseconds);
            }
        }
    }

    pub(super) fn read(&mut self, slot: usize, name: &str) -> HookStats {
        let mut empty = Counts::default();
        let counts = self.slots.get_mut(slot).unwrap_or(&mut empty);
        counts.settle();
        let of = |status: RunStatus| counts.by_status[status as usize];
        let percentile = |percent: f64| match &counts.times {
            Some(times) => times.value_at_percentile(percent) as f64 / 1e6,
            None => 0.0,
        };
        HookStats {
            name: name.to_owned(),
            runs: counts.times.as_ref().map_or(0, |times| times.len()),
            changes: of(RunStatus::Changed),
            halts: of(RunStatus::Halted),
            failures: of(RunStatus::Failed),
            timeouts: of(RunStatus::Timeout),
            filtered: of(RunStatus::Filtered),
            passed_over: of(RunStatus::Disabled) + of(RunStatus::NotReached) + of(RunStatus::BudgetExhausted),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
        }
    }
}
