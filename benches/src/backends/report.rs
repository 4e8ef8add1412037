//! What a run found: a table for people, JSON for machines, and the bounds.

use serde::Serialize;

use super::{
    contenders::{Engine, Kind, Situation},
    measure::{Plan, Row},
    recipes::Recipe,
};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_table};

/// Pairs of Ringfence with 64 keys, of those of a recipe.
const WANTED: [(Engine, Recipe, f64); 5] = [
    (Engine::PostgreSql, Recipe::RowLease, 4.0),
    (Engine::PostgreSql, Recipe::ByName, 1.0),
    (Engine::MariaDb, Recipe::ByName, 0.7),
    (Engine::Etcd, Recipe::ByName, 4.0),
    (Engine::Zookeeper, Recipe::ByName, 5.0),
];

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    plan: Plan,
    rows: Vec<Line>,
    bounds: Vec<Bound>,
}

/// One contender in one situation.
#[derive(Debug, Serialize)]
struct Line {
    engine: &'static str,
    situation: &'static str,
    contender: &'static str,
    pairs_per_s: Spread,
    /// Ringfence against this one, round by round.
    ringfence_is: Spread,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: Plan, rows: &[Row]) -> Self {
        let bound = |(engine, recipe, least): (Engine, Recipe, f64)| {
            let recipe = Kind::Recipe(recipe);
            let of = format!(
                "{}, 64 keys: ringfence ÷ {}",
                engine.name(),
                recipe.name(engine)
            );
            let found = |kind| find(rows, engine, Situation::OwnKeys, kind);
            let ours = found(Kind::Ringfence);
            let same = Spread::of_ratios(found(Kind::RingfenceAgain), ours);
            let measured = Spread::of_ratios(ours, found(recipe));
            Bound::new(of, Limit::AtLeast(least), measured, Some(same))
        };
        let is_measured =
            |(engine, ..): &(Engine, _, _)| rows.iter().any(|row| row.engine == *engine);
        Self {
            bench: "backends",
            machine,
            plan,
            rows: rows.iter().map(|row| Line::of(row, rows)).collect(),
            bounds: WANTED.into_iter().filter(is_measured).map(bound).collect(),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        let Plan {
            rounds,
            timing,
            tasks,
        } = self.plan;
        println!("{tasks} tasks; {rounds} rounds; {timing}");
        println!("median (min … max) of the rounds\n");
        let group = |line: &Line| (line.engine, line.situation);
        for lines in self.rows.chunk_by(|one, other| group(one) == group(other)) {
            let (engine, situation) = group(&lines[0]);
            let head = [
                &*format!("{engine}, {situation}"),
                "pairs/s",
                "ringfence is",
            ];
            let cells = lines.iter().map(|line| {
                vec![
                    line.contender.to_owned(),
                    format!("{:.0}", line.pairs_per_s),
                    format!("{:.2} x", line.ringfence_is),
                ]
            });
            print_table(&head, &cells.collect::<Vec<_>>());
            println!();
        }
        let cells = self.bounds.iter().map(|bound| {
            let reached = if bound.reached {
                "reached"
            } else {
                "NOT REACHED"
            };
            vec![
                bound.of.clone(),
                bound.limit.to_string(),
                format!("{:.2}", bound.measured),
                reached.to_owned(),
            ]
        });
        print_table(
            &["bound", "wanted", "measured", ""],
            &cells.collect::<Vec<_>>(),
        );
        println!("they count on a machine that did nothing else, which this bench does not see\n");
        common.write(self.bench, self)
    }
}

impl Line {
    fn of(row: &Row, rows: &[Row]) -> Self {
        let ours = find(rows, row.engine, row.situation, Kind::Ringfence);
        Self {
            engine: row.engine.name(),
            situation: row.situation.name(),
            contender: row.contender.name(row.engine),
            pairs_per_s: Spread::of(row.pairs_per_s.iter().copied()),
            ringfence_is: Spread::of_ratios(ours, &row.pairs_per_s),
        }
    }
}

fn find(rows: &[Row], engine: Engine, situation: Situation, contender: Kind) -> &[f64] {
    let wanted = (engine, situation, contender);
    let is_it = |row: &&Row| (row.engine, row.situation, row.contender) == wanted;
    let found = rows.iter().find(is_it);
    &found.expect("each runs in its situations").pairs_per_s
}
