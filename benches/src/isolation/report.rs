//! What was measured, as a table and as JSON.

use serde::Serialize;

use super::measure::{Plan, Round, SHARDS, Window};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

/// What the others' p99 may become, of before.
const RATIO_MAX: f64 = 1.5;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the servers nor the bench.
    others: Spread,
    parameters: Parameters,
    rows: Vec<Row>,
    /// Pairs of the others that failed, in all windows.
    pairs_failed: usize,
    /// How much of a lease had passed when a lock of the others was renewed, at most, with a shard stopped.
    renewed_after_max_of_lease: f64,
    bounds: Vec<Bound>,
}

#[derive(Debug, Serialize)]
struct Parameters {
    rounds: usize,
    window_ms: u64,
    shards: usize,
    tasks_a_shard: usize,
    held_a_shard: usize,
    lease_ms: u64,
}

/// One measure, before and during, with a stop or without.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    stopped: bool,
    count: u64,
    p50_before_ms: Spread,
    p50_during_ms: Spread,
    p99_before_ms: Spread,
    p99_during_ms: Spread,
    /// Of the p99, round by round.
    ratio: Spread,
}

/// Picks a value, in milliseconds, out of a window.
type Measure = (&'static str, fn(&Window) -> &hdrhistogram::Histogram<u64>);

const MEASURES: [Measure; 2] = [
    ("acquire + release", |window| &window.pairs),
    ("renewal", |window| &window.renewals),
];

impl Report {
    pub(crate) fn new(machine: Machine, plan: &Plan, rounds: &[Round]) -> Self {
        let of = |stopped: bool| rounds.iter().filter(move |round| round.stopped == stopped);
        let row = |measure, stopped| Row::of(measure, stopped, &of(stopped).collect::<Vec<_>>());
        let rows = MEASURES.map(|measure| [row(measure, true), row(measure, false)]);
        let bounds = rows.iter().map(|[stopped, same]| {
            let of = format!("{}: p99 with one of three stopped / before", stopped.what);
            Bound::new(
                of,
                Limit::AtMost(RATIO_MAX),
                stopped.ratio,
                Some(same.ratio),
            )
        });
        let latest = of(true).map(|round| round.windows[1].renewed_after_max);
        let latest = latest.max().unwrap_or(0) as f64;
        let windows = rounds.iter().flat_map(|round| &round.windows);
        Self {
            bench: "isolation",
            machine,
            others: Spread::of(rounds.iter().map(|round| round.others)),
            parameters: Parameters {
                rounds: plan.rounds,
                window_ms: plan.window.as_millis() as u64,
                shards: SHARDS,
                tasks_a_shard: plan.tasks,
                held_a_shard: plan.held,
                lease_ms: plan.lease().as_millis() as u64,
            },
            pairs_failed: windows.map(|window| window.pairs_failed).sum(),
            renewed_after_max_of_lease: latest / plan.lease().as_nanos() as f64,
            bounds: bounds.collect(),
            rows: rows.into_iter().flatten().collect(),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        let Parameters {
            rounds,
            window_ms,
            shards,
            tasks_a_shard,
            held_a_shard,
            lease_ms,
        } = self.parameters;
        println!("{}", self.machine);
        println!(
            "{shards} shards, each with {tasks_a_shard} tasks of 100 pairs a second and \
             {held_a_shard} locks held for {lease_ms} ms at a time"
        );
        println!(
            "{rounds} rounds with one of them stopped, as many without; windows of {window_ms} ms"
        );
        println!("other work on the machine: {:.1} processors", self.others);
        println!("only the others' keys; median (min … max) of the rounds\n");
        let head = [
            "",
            "",
            "count",
            "p50 ms",
            "p99 ms before",
            "p99 ms during",
            "ratio",
        ];
        let cells: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
        print_table(&head, &cells);
        println!();
        println!("pairs that failed: {}", self.pairs_failed);
        let latest = 100.0 * self.renewed_after_max_of_lease;
        println!("a lock was renewed after {latest:.0} % of its lease at the latest\n");
        print_bounds(&self.bounds, rounds, self.others);
        common.write(self.bench, self)
    }
}

impl Row {
    fn of((what, pick): Measure, stopped: bool, rounds: &[&Round]) -> Self {
        let values = |window: usize, part: f64| -> Vec<f64> {
            let histograms = rounds.iter().map(|round| pick(&round.windows[window]));
            histograms
                .map(|latencies| latencies.value_at_quantile(part) as f64 / 1e6)
                .collect()
        };
        let spread = |window, part| Spread::of(values(window, part));
        Self {
            what,
            stopped,
            count: rounds
                .iter()
                .map(|round| pick(&round.windows[1]).len())
                .sum(),
            p50_before_ms: spread(0, 0.5),
            p50_during_ms: spread(1, 0.5),
            p99_before_ms: spread(0, 0.99),
            p99_during_ms: spread(1, 0.99),
            ratio: Spread::of_ratios(&values(1, 0.99), &values(0, 0.99)),
        }
    }

    fn cells(&self) -> Vec<String> {
        let during = if self.stopped {
            "one stopped"
        } else {
            "none stopped"
        };
        vec![
            self.what.to_owned(),
            during.to_owned(),
            self.count.to_string(),
            format!("{:.2}", self.p50_during_ms.median),
            format!("{:.2}", self.p99_before_ms),
            format!("{:.2}", self.p99_during_ms),
            format!("{:.2}", self.ratio),
        ]
    }
}
