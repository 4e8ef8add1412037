//! Rounds of slices: which contender runs when, and how many pairs it makes.

use serde::Serialize;

use super::contenders::{Engine, Kind, Server, Situation};
use crate::{Failure, Slice, Timing, now, order};

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) tasks: i32,
}

/// What one contender did in one situation: one value per round.
pub(crate) struct Row {
    pub(crate) engine: Engine,
    pub(crate) situation: Situation,
    pub(crate) contender: Kind,
    pub(crate) pairs_per_s: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(server: &Server, plan: &Plan) -> Result<Vec<Row>, Failure> {
    let of = |situation| {
        Kind::of(server.engine)
            .into_iter()
            .map(move |contender| Row {
                engine: server.engine,
                situation,
                contender,
                pairs_per_s: Vec::new(),
            })
    };
    let contenders = Kind::of(server.engine).len();
    let mut rows: Vec<Row> = Situation::ALL.into_iter().flat_map(of).collect();
    for round in 0..plan.rounds {
        let name = server.engine.name();
        eprintln!("{name}: round {} of {}", round + 1, plan.rounds);
        for group in rows.chunks_mut(contenders) {
            for index in order(round, group.len()) {
                slice(server, plan.timing, &mut group[index]).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs a contender for the warm-up and the measured part.
async fn slice(server: &Server, timing: Timing, row: &mut Row) -> Result<(), Failure> {
    let tasks = server.tasks(row.situation, row.contender);
    let slice = Slice::run(tasks, timing, || Ok(now())).await?;
    let length = (slice.to - slice.from).as_secs_f64();
    row.pairs_per_s.push(slice.pairs() / length);
    Ok(())
}
