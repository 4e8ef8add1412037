//! What came of it: an object for programs, and a table for people.

use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::super::report::Setting;
use crate::cli::table::{Table, grouped};

/// What came of taking from one account, one way after the other.
#[derive(Debug, Serialize)]
pub(crate) struct HotReport {
    time: &'static str,
    seed: u64,
    place: String,
    workers: u32,
    rows: Vec<Row>,
    audit_ok: bool,
}

/// One way.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    how: String,
    deductions: u64,
    per_second: f64,
    /// From asking to the answer; under a lock, from asking for it until it was given back.
    p50_us: u64,
    p99_us: u64,
    /// Coins, or for the lock's journal faults, that should not be.
    pub(super) lost_or_made: i128,
}

impl Row {
    pub(super) fn new(
        how: String,
        deductions: u64,
        seconds: f64,
        took_us: &Histogram<u64>,
    ) -> Self {
        Self {
            how,
            deductions,
            per_second: deductions as f64 / seconds,
            p50_us: took_us.value_at_quantile(0.5),
            p99_us: took_us.value_at_quantile(0.99),
            lost_or_made: 0,
        }
    }
}

impl HotReport {
    pub(super) fn new(setting: &Setting, rows: Vec<Row>) -> Self {
        Self {
            time: setting.time,
            seed: setting.seed,
            place: setting.place.clone(),
            workers: setting.workers,
            audit_ok: rows.iter().all(|row| row.lost_or_made == 0),
            rows,
        }
    }

    /// Whether every coin is accounted for.
    pub(in crate::cli::demo) fn ok(&self) -> bool {
        self.audit_ok
    }
}

impl fmt::Display for HotReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} workers took coins from one account\n{}; time: {}; seed {}\n",
            grouped(self.workers.into()),
            self.place,
            self.time,
            self.seed
        )?;
        let mut table = Table::new(&[
            "",
            "deductions",
            "a second",
            "times the lock",
            "p50 µs",
            "p99 µs",
        ]);
        let lock = self.rows.first().map_or(1.0, |row| row.per_second.max(1.0));
        for row in &self.rows {
            table.row([
                row.how.clone(),
                grouped(row.deductions),
                grouped(row.per_second as u64),
                format!("{:.1}", row.per_second / lock),
                grouped(row.p50_us),
                grouped(row.p99_us),
            ]);
        }
        writeln!(out, "{table}")?;
        for row in self.rows.iter().filter(|row| row.lost_or_made != 0) {
            writeln!(out, "{}: {} COINS LOST OR MADE", row.how, row.lost_or_made)?;
        }
        match self.audit_ok {
            true => writeln!(out, "audit: every coin is accounted for"),
            false => writeln!(out, "audit: FAILED"),
        }
    }
}
