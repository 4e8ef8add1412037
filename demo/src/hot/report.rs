//! The report: an object for programs, and a table for people.

use std::{fmt, num::NonZero, thread::available_parallelism};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::super::{
    Args, Time,
    report::{Audit, place_line},
};
use crate::table::{Table, grouped, wrapped};

/// The results for one account, one row per way.
#[derive(Debug, Serialize)]
pub(crate) struct HotReport {
    time: &'static str,
    seed: u64,
    place: String,
    workers: u32,
    /// The duration of each row.
    seconds_each: f64,
    /// Processors that this process may use.
    cores: usize,
    rows: Vec<Row>,
    /// The violations in the journal that was written under the lock.
    audit: Audit,
    /// Whether more segments can be faster on this machine.
    #[serde(skip)]
    expected: String,
}

/// One way to take coins.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    how: String,
    /// The number of segments; `None`: under the lock.
    segments: Option<u32>,
    deductions: u64,
    per_second: f64,
    /// From the request to the answer; under the lock, from the request for it to its release.
    p50_us: u64,
    p99_us: u64,
    /// The difference between the counter's balance at the end and the correct one.
    pub(super) coins_off: i128,
}

impl Row {
    pub(super) fn new(
        segments: Option<u32>,
        deductions: u64,
        seconds: f64,
        took_us: &Histogram<u64>,
    ) -> Self {
        let how = match segments {
            None => "one lock".to_owned(),
            Some(segments) => format!("a counter of {}", segments_of(segments)),
        };
        Self {
            how,
            segments,
            deductions,
            per_second: deductions as f64 / seconds,
            p50_us: took_us.value_at_quantile(0.5),
            p99_us: took_us.value_at_quantile(0.99),
            coins_off: 0,
        }
    }

    /// The speed relative to `other`.
    fn times(&self, other: &Self) -> String {
        format!("{:.1}", self.per_second / other.per_second.max(1.0))
    }
}

impl HotReport {
    /// The report of a run with `args`, in `time`, from `seed`, and with its location in words.
    pub(super) fn new(
        args: &Args,
        (time, seed, place): (Time, u64, String),
        rows: Vec<Row>,
        audit: Audit,
    ) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self {
            expected: expected(args, time, cores),
            time: time.as_str(),
            seed,
            place,
            workers: args.workers,
            seconds_each: args.length.as_secs_f64(),
            cores,
            rows,
            audit,
        }
    }

    /// Whether every coin is accounted for.
    pub(crate) fn ok(&self) -> bool {
        self.audit.ok && self.rows.iter().all(|row| row.coins_off == 0)
    }

    fn table(&self) -> Table {
        let first = self.rows.iter().find_map(|row| row.segments).unwrap_or(1);
        let times_first = format!("× {}", segments_of(first));
        let mut table = Table::new(&["", "per second", "× lock", &times_first, "p50 µs", "p99 µs"]);
        let mut counters = self.rows.iter().filter(|row| row.segments.is_some());
        let counter = counters.next();
        for row in &self.rows {
            let times_first = counter.filter(|_| row.segments.is_some());
            table.row([
                row.how.clone(),
                grouped(row.per_second as u64),
                row.times(&self.rows[0]),
                times_first.map_or("-".to_owned(), |first| row.times(first)),
                grouped(row.p50_us),
                grouped(row.p99_us),
            ]);
        }
        table
    }
}

/// Whether more segments can be faster on the run's machine, and the reason.
fn expected(args: &Args, time: Time, cores: usize) -> String {
    let (shards, workers) = (args.shards, args.workers);
    let here = match args.spawn_redis {
        None if time == Time::Simulated => {
            return "More segments cannot help here: simulated shards take no time to decide. The network takes 1 to 3 ms each \
                    way, and the lock is held for three round trips."
                .to_owned();
        }
        None => {
            format!("{shards} shards and {workers} workers share one process and its {cores} cores")
        }
        Some(servers) => {
            format!("{servers} servers and this process share the {cores} cores of this machine")
        }
    };
    // One shard and the workers use two processors.
    let gain = match cores {
        ..=2 => "none is idle, so expect a loss, as a call then decides fewer deductions",
        _ => "expect a gain only as far as some are idle",
    };
    format!(
        "More segments help where one shard is at its limit and another has an idle core, or a machine of its own. Here \
         {here}: {gain}."
    )
}

fn segments_of(count: u32) -> String {
    match count {
        1 => "1 segment".to_owned(),
        _ => format!("{count} segments"),
    }
}

impl fmt::Display for HotReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (workers, seconds) = (grouped(self.workers.into()), self.seconds_each);
        writeln!(
            out,
            "{workers} workers took coins from one account, {seconds:.1} s each way"
        )?;
        let place = place_line(&self.place, self.time, self.seed);
        writeln!(out, "{place}\n\n{}", self.table())?;
        let lock = "The lock: one worker at a time reads the balance, writes it, and gives the lock back. The counters: a \
                    shard decides many deductions in one call, without a lock.";
        writeln!(
            out,
            "{}\n{}\n",
            wrapped(lock, 0),
            wrapped(&self.expected, 0)
        )?;
        for row in self.rows.iter().filter(|row| row.coins_off != 0) {
            writeln!(out, "{}: OFF BY {} COINS", row.how, row.coins_off)?;
        }
        match self.ok() || !self.audit.ok {
            true => write!(out, "{}", self.audit),
            false => writeln!(out, "audit: FAILED"),
        }
    }
}
