//! What a run found: a table for people, JSON for machines, and the bounds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measure::{Plan, Row};
use crate::{
    Bound, Common, Failure, Limit, Machine, Place, Spread, Timing, print_bounds, print_table,
};

/// The baseline that every other contender is compared with.
const OURS: &str = "ringfence";

/// Ringfence, under another name: what the machine does to a ratio.
const AGAIN: &str = "ringfence-again";

/// What ringfence has to reach: baseline, tasks, times its pairs a second.
const BOUNDS: &[(&str, usize, f64)] = &[
    ("rslock", 1, 0.85),
    ("rslock", 64, 1.4),
    ("rslock", 256, 1.3),
    ("rslock", 1024, 1.3),
    ("batched", 1, 0.8),
    ("batched", 16, 0.8),
    ("batched", 64, 0.8),
    ("batched", 256, 0.8),
    ("batched", 1024, 0.8),
    ("pipelined", 1, 0.8),
    ("pipelined", 16, 0.8),
    ("pipelined", 64, 0.8),
    ("pipelined", 256, 0.8),
    ("pipelined", 1024, 0.8),
];

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the server nor the bench.
    others: Spread,
    parameters: Parameters,
    rows: Vec<Line>,
    /// `"ringfence/rslock@64"`: the median of the rounds' ratios of pairs a second.
    ratios: BTreeMap<String, f64>,
    /// The same, with the least and the greatest.
    ratio_spreads: BTreeMap<String, Spread>,
    bounds: Vec<Bound>,
}

#[derive(Debug, Serialize)]
struct Parameters {
    rounds: usize,
    #[serde(flatten)]
    timing: Timing,
    tasks: Vec<usize>,
    place: Place,
}

/// One contender at one number of tasks.
#[derive(Debug, Serialize)]
struct Line {
    contender: &'static str,
    what: &'static str,
    tasks: usize,
    pairs_per_s: Spread,
    p50_us: f64,
    p99_us: f64,
    /// Processor time a pair; the median of the rounds.
    server_cpu_us: f64,
    client_cpu_us: f64,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: &Plan, rows: &[Row]) -> Self {
        let ratio_spreads = ratios(rows);
        let parameters = Parameters {
            rounds: plan.rounds,
            timing: plan.timing,
            tasks: plan.tasks.clone(),
            place: plan.place,
        };
        Self {
            bench: "uncontended",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            parameters,
            rows: rows.iter().map(Line::of).collect(),
            ratios: ratio_spreads
                .iter()
                .map(|(name, ratio)| (name.clone(), ratio.median))
                .collect(),
            bounds: bounds(&ratio_spreads),
            ratio_spreads,
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        let Parameters {
            rounds,
            timing,
            place,
            ..
        } = self.parameters;
        println!("{}", self.machine);
        println!("{rounds} rounds, {timing}");
        println!("{place}");
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; CPU is processor time a pair\n");
        self.print_rows();
        print_bounds(&self.bounds, rounds, self.others);
        common.write(self.bench, self)
    }

    fn print_rows(&self) {
        for &tasks in &self.parameters.tasks {
            let title = if tasks == 1 {
                "1 task".into()
            } else {
                format!("{tasks} tasks")
            };
            let head = [
                &title,
                "pairs/s",
                "p50 us",
                "p99 us",
                "server us",
                "client us",
                "ringfence is",
            ];
            let here = self.rows.iter().filter(|line| line.tasks == tasks);
            let cells: Vec<Vec<String>> = here.map(|line| self.cells(line)).collect();
            print_table(&head, &cells);
            println!();
        }
        for line in self
            .rows
            .iter()
            .filter(|line| line.tasks == self.parameters.tasks[0])
        {
            println!("{:15} {}", line.contender, line.what);
        }
        println!();
    }

    fn cells(&self, line: &Line) -> Vec<String> {
        let ratio = self.ratio_spreads.get(&name_of(line.contender, line.tasks));
        let ratio = ratio.filter(|_| line.contender != OURS);
        vec![
            line.contender.to_owned(),
            format!("{:.0}", line.pairs_per_s),
            format!("{:.0}", line.p50_us),
            format!("{:.0}", line.p99_us),
            format!("{:.1}", line.server_cpu_us),
            format!("{:.1}", line.client_cpu_us),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2} x")),
        ]
    }
}

impl Line {
    fn of(row: &Row) -> Self {
        let quantile = |part| row.latencies.value_at_quantile(part) as f64 / 1000.0;
        let median = |values: &Vec<f64>| Spread::of(values.iter().copied()).median;
        Self {
            contender: row.contender,
            what: row.what,
            tasks: row.tasks,
            pairs_per_s: Spread::of(row.pairs_per_s.iter().copied()),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            server_cpu_us: median(&row.server_us),
            client_cpu_us: median(&row.client_us),
        }
    }
}

/// Ours against everybody else's, round by round, by name.
fn ratios(rows: &[Row]) -> BTreeMap<String, Spread> {
    let ours = |tasks| {
        rows.iter()
            .find(|row| row.contender == OURS && row.tasks == tasks)
    };
    let others = rows.iter().filter(|row| row.contender != OURS);
    let ratio = |other: &Row| {
        let ratio = Spread::of_ratios(&ours(other.tasks)?.pairs_per_s, &other.pairs_per_s);
        Some((name_of(other.contender, other.tasks), ratio))
    };
    others.filter_map(ratio).collect()
}

fn name_of(baseline: &str, tasks: usize) -> String {
    let baseline = if baseline == AGAIN { OURS } else { baseline };
    format!("{OURS}/{baseline}@{tasks}")
}

fn bounds(ratios: &BTreeMap<String, Spread>) -> Vec<Bound> {
    let bound = |&(baseline, tasks, at_least): &(&str, usize, f64)| {
        let ratio = name_of(baseline, tasks);
        let measured = *ratios.get(&ratio)?;
        let same = ratios.get(&name_of(AGAIN, tasks)).copied();
        Some(Bound::new(ratio, Limit::AtLeast(at_least), measured, same))
    };
    BOUNDS.iter().filter_map(bound).collect()
}
