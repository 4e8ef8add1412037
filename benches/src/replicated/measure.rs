//! Rounds of slices: which contender runs when, and how many pairs it makes.

use std::time::Duration;

use serde::Serialize;

use super::contenders::{CLIENTS, Contender, Task};
use crate::{Clocks, Failure, Slice, Timing, order};

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) distinct: Timing,
    pub(crate) one_key: Timing,
    /// Tasks that want the one key.
    pub(crate) wanted_by: usize,
}

/// What the tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// As many tasks, each with a key of its own, at one client.
    Distinct(usize),
    /// All tasks want one key, at as many clients.
    OneKey(usize),
}

impl Situation {
    pub(crate) const ALL: [Self; 5] = [
        Self::Distinct(1),
        Self::Distinct(64),
        Self::Distinct(256),
        Self::OneKey(1),
        Self::OneKey(CLIENTS),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Distinct(tasks) => format!("{tasks} keys"),
            Self::OneKey(clients) => format!("1 key, {clients} clients"),
        }
    }

    fn tasks(self, contender: &Contender, wanted_by: usize) -> Vec<Task> {
        match self {
            Self::Distinct(tasks) => (0..tasks)
                .map(|number| contender.task(number, 1, &number.to_string()))
                .collect(),
            Self::OneKey(clients) => (0..wanted_by)
                .map(|number| contender.task(number, clients, "wanted"))
                .collect(),
        }
    }
}

/// What one contender did in one situation: one value per round.
pub(crate) struct Row {
    pub(crate) contender: &'static str,
    pub(crate) what: &'static str,
    pub(crate) servers: u32,
    pub(crate) situation: Situation,
    pub(crate) pairs_per_s: Vec<f64>,
    /// Processor time of all servers and of this process, per pair.
    pub(crate) server_us: Vec<f64>,
    pub(crate) client_us: Vec<f64>,
    /// The share of pairs that needed a second round trip. Empty if not known.
    pub(crate) confirms: Vec<f64>,
    /// Jain's index of the tasks' pairs.
    pub(crate) fairness: Vec<f64>,
    /// Processors busy with neither.
    pub(crate) others: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(
    contenders: &[Contender],
    servers: u32,
    situations: &[Situation],
    plan: &Plan,
    pids: &[u32],
) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(pids, &[std::process::id()])?;
    let row = |situation: &Situation, contender: &Contender| Row {
        contender: contender.name,
        what: contender.what,
        servers,
        situation: *situation,
        pairs_per_s: Vec::new(),
        server_us: Vec::new(),
        client_us: Vec::new(),
        confirms: Vec::new(),
        fairness: Vec::new(),
        others: Vec::new(),
    };
    let mut rows: Vec<Row> = situations
        .iter()
        .flat_map(|situation| contenders.iter().map(|contender| row(situation, contender)))
        .collect();
    for round in 0..plan.rounds {
        eprintln!("{servers} servers, round {} of {}", round + 1, plan.rounds);
        for at in 0..situations.len() {
            for index in order(round, contenders.len()) {
                let row = &mut rows[at * contenders.len() + index];
                slice(&contenders[index], plan, &clocks, row).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs `contender` for the warm-up and the measured part.
async fn slice(
    contender: &Contender,
    plan: &Plan,
    clocks: &Clocks,
    row: &mut Row,
) -> Result<(), Failure> {
    let timing = match row.situation {
        Situation::Distinct(_) => plan.distinct,
        Situation::OneKey(_) => plan.one_key,
    };
    let tasks = row.situation.tasks(contender, plan.wanted_by);
    let read = || Ok((clocks.read()?, contender.second_rounds()));
    let slice = Slice::run(tasks, timing, read).await?;
    let ((from, second_before), (to, second_after)) = (&slice.from, &slice.to);
    let pairs = slice.pairs();
    let per_pair = |time: Duration| time.as_secs_f64() * 1e6 / pairs;
    row.pairs_per_s
        .push(pairs / (to.at - from.at).as_secs_f64());
    row.server_us.push(per_pair(to.server - from.server));
    row.client_us.push(per_pair(to.client - from.client));
    row.fairness.push(slice.fairness());
    row.others.push(from.others(to));
    let second = second_after.zip(*second_before);
    row.confirms
        .extend(second.map(|(after, before)| (after - before) as f64 / pairs));
    Ok(())
}
