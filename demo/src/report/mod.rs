//! The report of a run: an object for programs, and [text](self::text) for people.

mod resizing;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use ringfence_client::{Instant, ShardId};
use serde::Serialize;

use super::{
    audit::Violation, phases::Phase, resize::Resizes, tally::Tally, worker::DEDUCTIONS_MAX,
};
use resizing::Resizing;
pub(super) use text::place_line;

/// Most violations in the object: enough to see the problem.
const LISTED_MAX: usize = 20;

/// The report of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The settings of the run.
    #[serde(flatten)]
    pub(super) setting: Setting,
    seconds: f64,
    deductions: u64,
    per_second: f64,
    /// The run ended early, because the audit can hold no more deductions.
    stopped_early: bool,
    refused_empty: u64,
    fenced: u64,
    locks_lost: u64,
    wait_us: Percentiles,
    hold_us: Percentiles,
    shards: Vec<Load>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resizing: Option<Resizing>,
    audit: Audit,
}

/// The settings of a run.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// `real` or `simulated`.
    pub(super) time: &'static str,
    pub(super) seed: u64,
    /// The location of the shards, in words.
    pub(super) place: String,
    /// Whether workers locked the accounts.
    pub(super) locked: bool,
    pub(super) workers: u32,
    pub(super) accounts: u32,
    pub(super) skew: f64,
}

/// The counts.
#[derive(Debug)]
pub(super) struct Run {
    /// The first grant.
    pub(super) began: Instant,
    /// The last release.
    pub(super) ended: Instant,
    /// At least one.
    pub(super) phases: Vec<Phase>,
    /// The shards at the beginning.
    pub(super) fair_shares: BTreeMap<ShardId, f64>,
    pub(super) resizes: Option<Resizes>,
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
    /// The share by the weights at the beginning; 0: not a shard then.
    fair_share: f64,
}

/// The results of the audit.
#[derive(Debug, Serialize)]
pub(super) struct Audit {
    /// No violation.
    pub(super) ok: bool,
    /// The sum, over all accounts, of the differences between the balance and the sum of the deductions.
    coins_off: u64,
    violations_total: usize,
    /// The first [`LISTED_MAX`] violations.
    violations: Vec<Named>,
}

#[derive(Debug, Serialize)]
struct Named {
    #[serde(flatten)]
    violation: Violation,
    message: String,
}

impl Report {
    /// The report on `run` and its audit.
    pub(super) fn new(setting: Setting, run: &Run, violations: Vec<Violation>) -> Self {
        let seconds = run.ended.since(run.began).as_secs_f64();
        let mut tally = Tally::new();
        run.phases.iter().for_each(|phase| tally.add(&phase.tally));
        let deductions = tally.deductions();
        let ids: BTreeSet<_> = run
            .fair_shares
            .keys()
            .chain(tally.by_shard.keys())
            .collect();
        let load = |id: &ShardId| Load {
            id: id.to_string(),
            deductions: tally.by_shard.get(id).copied().unwrap_or_default(),
            share: tally.share(id),
            fair_share: run.fair_shares.get(id).copied().unwrap_or_default(),
        };
        Self {
            setting,
            seconds,
            deductions,
            per_second: deductions as f64 / seconds,
            stopped_early: deductions >= DEDUCTIONS_MAX,
            refused_empty: tally.refused_empty,
            fenced: tally.fenced,
            locks_lost: tally.locks_lost,
            wait_us: Percentiles::of(&tally.wait_us),
            hold_us: Percentiles::of(&tally.hold_us),
            shards: ids.into_iter().map(load).collect(),
            resizing: Resizing::of(run),
            audit: Audit::new(violations),
        }
    }

    /// Whether the run has no fault.
    pub(super) fn ok(&self) -> bool {
        let resized = self.resizing.as_ref().is_none_or(|resizing| resizing.ok);
        self.audit.ok && self.two_holders() == 0 && resized
    }

    /// Deductions that the bank refused for their token although their lock was not lost.
    fn two_holders(&self) -> u64 {
        self.fenced.saturating_sub(self.locks_lost)
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
    pub(super) fn new(violations: Vec<Violation>) -> Self {
        let violations_total = violations.len();
        let coins_off = violations.iter().map(Violation::coins_off).sum();
        let named = |violation: Violation| Named {
            message: violation.to_string(),
            violation,
        };
        let violations = violations.into_iter().take(LISTED_MAX).map(named).collect();
        Self {
            ok: violations_total == 0,
            coins_off,
            violations_total,
            violations,
        }
    }
}
