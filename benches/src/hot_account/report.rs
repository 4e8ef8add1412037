//! What a run found: a table for people, JSON for machines.

use serde::Serialize;

use super::{
    goals,
    measure::{Plan, Row},
    setup::Setup,
};
use crate::{Bound, Common, Failure, Machine, Place, Spread, Timing, print_bounds, print_table};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the servers nor this process.
    others: Spread,
    rounds: usize,
    #[serde(flatten)]
    timing: Timing,
    place: Place,
    rows: Vec<Line>,
    bounds: Vec<Bound>,
}

/// One contender with one number of tasks.
#[derive(Debug, Serialize)]
struct Line {
    setup: Setup,
    tasks: usize,
    processes: usize,
    deductions_per_s: Spread,
    /// Of all rounds.
    p50_ms: f64,
    p99_ms: f64,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: &Plan, rows: &[Row]) -> Self {
        Self {
            bench: "hot-account",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            rounds: plan.rounds,
            timing: plan.timing,
            place: plan.place,
            rows: rows.iter().map(Line::of).collect(),
            bounds: goals::bounds(rows),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        println!("{} rounds, {}", self.rounds, self.timing);
        println!("{}", self.place);
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; latencies of all rounds\n");
        let crowd = |line: &Line| (line.tasks, line.processes);
        for lines in self.rows.chunk_by(|one, next| crowd(one) == crowd(next)) {
            let title = match crowd(&lines[0]) {
                (tasks, 1) => format!("{tasks} tasks"),
                (tasks, processes) => format!("{tasks} tasks, {processes} processes"),
            };
            let head = [&title, "deductions/s", "p50 ms", "p99 ms"];
            print_table(&head, &lines.iter().map(Line::cells).collect::<Vec<_>>());
            println!();
        }
        print_bounds(&self.bounds, self.rounds, self.others);
        common.write(self.bench, self)
    }
}

impl Line {
    fn of(row: &Row) -> Self {
        Self {
            setup: row.setup,
            tasks: row.tasks,
            processes: row.processes,
            deductions_per_s: Spread::of(row.deductions_per_s.iter().copied()),
            p50_ms: row.latency_ms(0.5),
            p99_ms: row.latency_ms(0.99),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.setup.to_string(),
            format!("{:.0}", self.deductions_per_s),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
        ]
    }
}
