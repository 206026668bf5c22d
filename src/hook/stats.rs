//! Counts and times per hook, kept by the chain over all its dispatches.

use std::sync::Arc;

use serde::Serialize;

use super::entry::Entry;
use super::histogram::Histogram;
use super::outcome::{RunRecord, RunStatus};

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
    /// How often it would have halted if it were not in shadow mode.
    pub would_halt: u64,
    /// How often it would have changed something if it were not in shadow mode.
    pub would_change: u64,
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

#[derive(Default)]
struct Counts {
    by_status: [u64; 9],
    would_halt: u64,
    would_change: u64,
    // Made with the first time: a chain of many hooks that never match stays small.
    times: Option<Histogram>,
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
    pub(super) fn add(&mut self, entries: &[Arc<Entry>], runs: &[RunRecord]) {
        for (entry, run) in entries.iter().zip(runs) {
            let Some(counts) = self.slots.get_mut(entry.slot) else { continue };
            counts.by_status[run.status as usize] += 1;
            if let Some(extra) = &run.extra {
                counts.would_halt += u64::from(extra.would_halt.is_some());
                counts.would_change += u64::from(!extra.would_change.is_empty());
            }
            if run.attempts > 0 {
                counts.times.get_or_insert_default().add(run.nanoseconds);
            }
        }
    }

    pub(super) fn read(&self, slot: usize, name: &str) -> HookStats {
        let empty = Counts::default();
        let counts = self.slots.get(slot).unwrap_or(&empty);
        let of = |status: RunStatus| counts.by_status[status as usize];
        let percentile = |percent: f64| match &counts.times {
            Some(times) => times.percentile(percent) as f64 / 1e6,
            None => 0.0,
        };
        HookStats {
            name: name.to_owned(),
            runs: counts.times.as_ref().map_or(0, Histogram::len),
            changes: of(RunStatus::Changed),
            halts: of(RunStatus::Halted),
            failures: of(RunStatus::Failed),
            timeouts: of(RunStatus::Timeout),
            would_halt: counts.would_halt,
            would_change: counts.would_change,
            filtered: of(RunStatus::Filtered),
            passed_over: of(RunStatus::Disabled) + of(RunStatus::NotReached) + of(RunStatus::BudgetExhausted),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
        }
    }
}
