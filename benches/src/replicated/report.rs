//! What a run found: a table for people, JSON for machines, and the bounds.

use serde::Serialize;

use super::measure::{Plan, Row, Situation};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

const OURS: &str = "ringfence";
/// Ringfence, under another name: what the machine does to a ratio.
const AGAIN: &str = "ringfence-again";

/// What ringfence has to reach against rslock.
const BOUNDS: [(Situation, f64); 3] = [
    (Situation::Distinct(64), 2.0),
    (Situation::OneKey(1), 5.0),
    (Situation::OneKey(4), 5.0),
];
/// Of 64 tasks that want one key.
const FAIRNESS_MIN: f64 = 0.99;

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

/// One contender in one situation.
#[derive(Debug, Serialize)]
struct Line {
    servers: u32,
    situation: String,
    contender: &'static str,
    what: &'static str,
    pairs_per_s: Spread,
    /// Ours against its pairs, round by round.
    ours_is: Spread,
    /// Processor time per pair; the median of the rounds.
    servers_cpu_us: f64,
    client_cpu_us: f64,
    /// The share of pairs that needed a second round trip.
    confirms: Option<Spread>,
    /// Jain's index of the tasks' pairs.
    fairness: Spread,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: Plan, rows: &[Row]) -> Self {
        Self {
            bench: "replicated",
            machine,
            others: Spread::of(rows.iter().flat_map(|row| row.others.iter().copied())),
            plan,
            rows: rows.iter().map(|row| Line::of(row, rows)).collect(),
            bounds: bounds(rows),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        let Plan {
            rounds,
            distinct,
            one_key,
            ..
        } = self.plan;
        println!("{rounds} rounds; distinct keys: {distinct}; one key: {one_key}");
        println!("other work on the machine: {:.1} processors", self.others);
        println!("median (min … max) of the rounds; CPU is processor time per pair\n");
        for group in self.rows.chunk_by(|one, other| one.is_beside(other)) {
            group[0].print_group(group);
        }
        let contenders = self
            .rows
            .iter()
            .filter(|line| line.is_beside(&self.rows[0]));
        contenders.for_each(|line| println!("{:15} {}", line.contender, line.what));
        println!();
        print_bounds(&self.bounds, self.plan.rounds, self.others);
        common.write(self.bench, self)
    }
}

impl Line {
    fn of(row: &Row, rows: &[Row]) -> Self {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
        let ours = beside(row, rows, OURS);
        Self {
            servers: row.servers,
            situation: row.situation.name(),
            contender: row.contender,
            what: row.what,
            pairs_per_s: Spread::of(row.pairs_per_s.iter().copied()),
            ours_is: Spread::of_ratios(&ours.pairs_per_s, &row.pairs_per_s),
            servers_cpu_us: median(&row.server_us),
            client_cpu_us: median(&row.client_us),
            confirms: (!row.confirms.is_empty()).then(|| Spread::of(row.confirms.iter().copied())),
            fairness: Spread::of(row.fairness.iter().copied()),
        }
    }

    /// Whether it is of the same situation over the same servers.
    fn is_beside(&self, other: &Self) -> bool {
        (self.servers, &self.situation) == (other.servers, &other.situation)
    }

    fn print_group(&self, group: &[Self]) {
        let title = format!("{} servers, {}", self.servers, self.situation);
        let head = [
            &*title,
            "pairs/s",
            "servers us",
            "client us",
            "confirms",
            "Jain",
            "ringfence is",
        ];
        let cells = group.iter().map(|line| {
            let confirms = line.confirms.map(|share| format!("{:.2}", share.median));
            vec![
                line.contender.to_owned(),
                format!("{:.0}", line.pairs_per_s),
                format!("{:.1}", line.servers_cpu_us),
                format!("{:.1}", line.client_cpu_us),
                confirms.unwrap_or_default(),
                format!("{:.3}", line.fairness.median),
                match line.contender {
                    OURS => String::new(),
                    _ => format!("{:.2} x", line.ours_is),
                },
            ]
        });
        print_table(&head, &cells.collect::<Vec<_>>());
        println!();
    }
}

/// What `contender` did where `row` was measured.
fn beside<'a>(row: &Row, rows: &'a [Row], contender: &str) -> &'a Row {
    let is_it = |other: &&Row| {
        (other.servers, other.situation) == (row.servers, row.situation)
            && other.contender == contender
    };
    rows.iter().find(is_it).expect("each runs everywhere")
}

fn bounds(rows: &[Row]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for ours in rows.iter().filter(|row| row.contender == OURS) {
        let Some((_, least)) = BOUNDS.iter().find(|(at, _)| *at == ours.situation) else {
            continue;
        };
        let ratio =
            |name| Spread::of_ratios(&ours.pairs_per_s, &beside(ours, rows, name).pairs_per_s);
        let place = format!("{} servers, {}", ours.servers, ours.situation.name());
        let (of, limit) = (format!("÷ rslock: {place}"), Limit::AtLeast(*least));
        bounds.push(Bound::new(of, limit, ratio("rslock"), Some(ratio(AGAIN))));
        if let Situation::OneKey(_) = ours.situation {
            let fairness = Spread::of(ours.fairness.iter().copied());
            let (of, limit) = (format!("Jain: {place}"), Limit::AtLeast(FAIRNESS_MIN));
            bounds.push(Bound::new(of, limit, fairness, None));
        }
    }
    bounds
}
