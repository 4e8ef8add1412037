//! What came of a run: an object for programs, and [text](self::text) for people.

mod text;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{audit::Violation, locks::Shard, worker::Tally};

/// Violations in the object, at most.
const LISTED_MAX: usize = 1_000;

/// What came of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What was run.
    #[serde(flatten)]
    pub(super) setting: Setting,
    seconds: f64,
    deductions: u64,
    per_second: f64,
    refused_empty: u64,
    fenced: u64,
    locks_lost: u64,
    wait_us: Percentiles,
    hold_us: Percentiles,
    shards: Vec<Load>,
    pub(super) audit: Audit,
}

/// What was run.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// `real` or `simulated`.
    pub(super) time: &'static str,
    pub(super) seed: u64,
    /// Where the shards were, in words.
    pub(super) place: String,
    pub(super) locked: bool,
    pub(super) workers: u32,
    pub(super) accounts: u32,
    pub(super) skew: f64,
}

/// What was counted.
#[derive(Debug)]
pub(super) struct Run {
    /// From the first grant to the last release.
    pub(super) seconds: f64,
    pub(super) tally: Tally,
    pub(super) shards: Vec<Shard>,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    p50: u64,
    p99: u64,
    p999: u64,
}

#[derive(Debug, Serialize)]
struct Load {
    id: String,
    deductions: u64,
    /// The part of all deductions, of 1.
    share: f64,
    fair_share: f64,
}

/// What the audit found.
#[derive(Debug, Serialize)]
pub(super) struct Audit {
    /// Nothing.
    pub(super) ok: bool,
    violations_total: usize,
    /// The first thousand.
    violations: Vec<Named>,
}

#[derive(Debug, Serialize)]
struct Named {
    #[serde(flatten)]
    violation: Violation,
    message: String,
}

impl Report {
    /// What a run came to, and what its audit found.
    pub(super) fn new(setting: Setting, run: &Run, violations: Vec<Violation>) -> Self {
        let Run {
            seconds,
            tally,
            shards,
        } = run;
        let deductions: u64 = tally.by_shard.iter().sum();
        let load = |(shard, &its): (&Shard, &u64)| Load {
            id: shard.id.to_string(),
            deductions: its,
            share: its as f64 / deductions.max(1) as f64,
            fair_share: shard.fair_share,
        };
        Self {
            setting,
            seconds: *seconds,
            deductions,
            per_second: deductions as f64 / seconds,
            refused_empty: tally.refused_empty,
            fenced: tally.fenced,
            locks_lost: tally.locks_lost,
            wait_us: Percentiles::of(&tally.wait_us),
            hold_us: Percentiles::of(&tally.hold_us),
            shards: shards.iter().zip(&tally.by_shard).map(load).collect(),
            audit: Audit::new(violations),
        }
    }
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
        }
    }
}

impl Audit {
    fn new(violations: Vec<Violation>) -> Self {
        let violations_total = violations.len();
        let named = |violation: Violation| Named {
            message: violation.to_string(),
            violation,
        };
        let violations = violations.into_iter().take(LISTED_MAX).map(named).collect();
        Self {
            ok: violations_total == 0,
            violations_total,
            violations,
        }
    }
}
