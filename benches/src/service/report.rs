//! What a run found: a table for people, JSON for machines, and the bounds.

use serde::Serialize;

use super::{
    contenders::Kind,
    measure::{Plan, Row},
};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

/// The pairs of one contender of those of another, with so many tasks, at least.
const WANTED: [(Kind, Kind, usize, f64); 4] = [
    (Kind::Unary, Kind::Empty, 64, 0.7),
    (Kind::Session, Kind::Library, 256, 0.5),
    (Kind::Unary, Kind::Etcd, 64, 5.0),
    (Kind::Session, Kind::Etcd, 64, 5.0),
];

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the servers nor the bench.
    others: Spread,
    plan: Plan,
    rows: Vec<Line>,
    bounds: Vec<Bound>,
}

/// One contender with so many tasks.
#[derive(Debug, Serialize)]
struct Line {
    tasks: usize,
    contender: &'static str,
    pairs_per_s: Spread,
    /// Against the empty calls, round by round.
    is: Spread,
    /// Processor time per pair; the median of the rounds.
    servers_cpu_us: f64,
    client_cpu_us: f64,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: Plan, rows: &[Row]) -> Self {
        let bound = |(above, below, tasks, least): (Kind, Kind, usize, f64)| {
            let pairs = |kind| &find(rows, tasks, kind).pairs_per_s;
            let (above_is, below_is) = (above.name(), below.name());
            let of = format!("{above_is} ÷ {below_is}, {tasks} tasks");
            let measured = Spread::of_ratios(pairs(above), pairs(below));
            let same = Spread::of_ratios(pairs(Kind::UnaryAgain), pairs(Kind::Unary));
            Bound::new(of, Limit::AtLeast(least), measured, Some(same))
        };
        Self {
            bench: "service",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            plan,
            rows: rows.iter().map(|row| Line::of(row, rows)).collect(),
            bounds: WANTED.into_iter().map(bound).collect(),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        let Plan { rounds, timing } = self.plan;
        println!("{rounds} rounds; {timing}");
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; CPU is processor time per pair\n");
        for group in self.rows.chunk_by(|one, other| one.tasks == other.tasks) {
            let title = format!("{} tasks", group[0].tasks);
            let head = [&*title, "pairs/s", "servers us", "client us", "is"];
            let cells = group.iter().map(|line| {
                vec![
                    line.contender.to_owned(),
                    format!("{:.0}", line.pairs_per_s),
                    format!("{:.1}", line.servers_cpu_us),
                    format!("{:.1}", line.client_cpu_us),
                    format!("{:.2} x", line.is),
                ]
            });
            print_table(&head, &cells.collect::<Vec<_>>());
            println!();
        }
        print_bounds(&self.bounds, self.plan.rounds, self.others);
        common.write(self.bench, self)
    }
}

impl Line {
    fn of(row: &Row, rows: &[Row]) -> Self {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
        let empty = find(rows, row.tasks, Kind::Empty);
        Self {
            tasks: row.tasks,
            contender: row.contender.name(),
            pairs_per_s: Spread::of(row.pairs_per_s.iter().copied()),
            is: Spread::of_ratios(&row.pairs_per_s, &empty.pairs_per_s),
            servers_cpu_us: median(&row.server_us),
            client_cpu_us: median(&row.client_us),
        }
    }
}

fn find(rows: &[Row], tasks: usize, contender: Kind) -> &Row {
    let is_it = |row: &&Row| (row.tasks, row.contender) == (tasks, contender);
    rows.iter()
        .find(is_it)
        .expect("each runs with each number of tasks")
}
