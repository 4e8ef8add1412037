//! Rounds of slices: which contender runs when, and how many pairs it makes.

use std::time::Duration;

use serde::Serialize;

use super::contenders::{Clients, Kind, Situation};
use crate::{Clocks, Failure, Slice, Timing, order};

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
}

/// What one contender did in one situation: one value per round.
pub(crate) struct Row {
    pub(crate) situation: Situation,
    pub(crate) contender: Kind,
    pub(crate) pairs_per_s: Vec<f64>,
    /// Processor time of the servers and of this process, per pair.
    pub(crate) server_us: Vec<f64>,
    pub(crate) client_us: Vec<f64>,
    /// Processors busy with neither.
    pub(crate) others: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(clients: &Clients, plan: &Plan, pids: &[u32]) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(pids, &[std::process::id()])?;
    let row = |situation: Situation, contender: Kind| Row {
        situation,
        contender,
        pairs_per_s: Vec::new(),
        server_us: Vec::new(),
        client_us: Vec::new(),
        others: Vec::new(),
    };
    let of = |situation: Situation| {
        let contenders = situation.contenders().iter();
        contenders.map(move |contender| row(situation, *contender))
    };
    let mut rows: Vec<Row> = Situation::ALL.into_iter().flat_map(of).collect();
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for group in rows.chunk_by_mut(|one, other| one.situation == other.situation) {
            for index in order(round, group.len()) {
                slice(clients, plan.timing, &clocks, &mut group[index]).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs a contender for the warm-up and the measured part.
async fn slice(
    clients: &Clients,
    timing: Timing,
    clocks: &Clocks,
    row: &mut Row,
) -> Result<(), Failure> {
    let tasks = row.situation.tasks(row.contender, clients);
    let slice = Slice::run(tasks, timing, || clocks.read()).await?;
    let (from, to) = (&slice.from, &slice.to);
    let per_pair = |time: Duration| time.as_secs_f64() * 1e6 / slice.pairs();
    row.pairs_per_s
        .push(slice.pairs() / (to.at - from.at).as_secs_f64());
    row.server_us.push(per_pair(to.server - from.server));
    row.client_us.push(per_pair(to.client - from.client));
    row.others.push(from.others(to));
    Ok(())
}
