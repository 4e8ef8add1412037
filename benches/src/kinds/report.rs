//! What a run found: a table for people, JSON for machines, and the bounds.

use serde::Serialize;

use super::{
    contenders::{Kind, PERMITS, Situation},
    measure::{Plan, Row},
};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

/// Of pairs with a mutex in the same situation.
const SHARE_MIN: f64 = 0.5;
/// Of four locks one after the other.
const MULTI_LOCK_MIN: f64 = 1.5;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the servers nor the bench.
    others: Spread,
    plan: Plan,
    rows: Vec<Line>,
    /// Pairs with the semaphore ÷ 8 × pairs with the mutex, with hand-off and without.
    hot_semaphore: [Spread; 2],
    bounds: Vec<Bound>,
}

/// One contender in one situation.
#[derive(Debug, Serialize)]
struct Line {
    situation: String,
    contender: &'static str,
    pairs_per_s: Spread,
    /// Against the first contender, round by round.
    is: Spread,
    /// Processor time per pair; the median of the rounds.
    servers_cpu_us: f64,
    client_cpu_us: f64,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: Plan, rows: &[Row]) -> Self {
        let hot = |mutex| {
            let mutex = &find(rows, Situation::OneKey, mutex).pairs_per_s;
            let eight = mutex.iter().map(|pairs| pairs * f64::from(PERMITS));
            let permits = &find(rows, Situation::OneKey, Kind::Permit).pairs_per_s;
            Spread::of_ratios(permits, &eight.collect::<Vec<_>>())
        };
        Self {
            bench: "kinds",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            plan,
            rows: rows.iter().map(|row| Line::of(row, rows)).collect(),
            hot_semaphore: [Kind::Mutex, Kind::MutexWithoutHandOff].map(hot),
            bounds: bounds(rows),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        let Plan { rounds, timing } = self.plan;
        println!("{rounds} rounds; {timing}");
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; CPU is processor time per pair\n");
        for group in self
            .rows
            .chunk_by(|one, other| one.situation == other.situation)
        {
            let head = [
                &*group[0].situation,
                "pairs/s",
                "servers us",
                "client us",
                "is",
            ];
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
        let [handed, not_handed] = self.hot_semaphore;
        println!("hot semaphore ÷ {PERMITS} × hot mutex: {handed:.2}");
        println!("… ÷ {PERMITS} × hot mutex without hand-off: {not_handed:.2}\n");
        print_bounds(&self.bounds, self.plan.rounds, self.others);
        common.write(self.bench, self)
    }
}

impl Line {
    fn of(row: &Row, rows: &[Row]) -> Self {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
        let first = find(rows, row.situation, row.situation.contenders()[0]);
        Self {
            situation: row.situation.name(),
            contender: row.contender.name(),
            pairs_per_s: Spread::of(row.pairs_per_s.iter().copied()),
            is: Spread::of_ratios(&row.pairs_per_s, &first.pairs_per_s),
            servers_cpu_us: median(&row.server_us),
            client_cpu_us: median(&row.client_us),
        }
    }
}

fn find(rows: &[Row], situation: Situation, contender: Kind) -> &Row {
    let is_it = |row: &&Row| (row.situation, row.contender) == (situation, contender);
    rows.iter()
        .find(is_it)
        .expect("each runs in its situations")
}

fn bounds(rows: &[Row]) -> Vec<Bound> {
    let ratio = |situation, above, below| {
        let pairs = |kind| &find(rows, situation, kind).pairs_per_s;
        Spread::of_ratios(pairs(above), pairs(below))
    };
    let own = Situation::OwnKeys;
    let same = ratio(own, Kind::MutexAgain, Kind::Mutex);
    let kinds = [Kind::Permit, Kind::Reader, Kind::Writer].map(|kind| {
        let of = format!("{} ÷ mutex: {}", kind.name(), own.name());
        let limit = Limit::AtLeast(SHARE_MIN);
        Bound::new(of, limit, ratio(own, kind, Kind::Mutex), Some(same))
    });
    let sets = [1, 16].map(|tasks| {
        let situation = Situation::FourKeys(tasks);
        let of = format!("multi-lock ÷ one by one: {}", situation.name());
        let measured = ratio(situation, Kind::MultiLock, Kind::OneByOne);
        Bound::new(of, Limit::AtLeast(MULTI_LOCK_MIN), measured, None)
    });
    kinds.into_iter().chain(sets).collect()
}
