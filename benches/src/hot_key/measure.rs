//! Rounds of slices: which contender runs when, for how long, and its results.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{
    contenders::Who,
    exclusion,
    messages::{Assignment, Outcome},
    server::Server,
    setup::Setup,
    worker::new_waits,
};
use crate::{
    Clocks, Failure, Place, Timing, order,
    workers::{Window, Workers, monotonic, sleep_until},
};

/// The measurements to make.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) setups: Vec<Setup>,
    pub(crate) contenders: Vec<Who>,
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
}

/// What one contender did in one set-up: one value a round.
pub(crate) struct Row {
    pub(crate) who: Who,
    pub(crate) setup: Setup,
    pub(crate) grants_per_s: Vec<f64>,
    pub(crate) p99_ms: Vec<f64>,
    /// Jain's index of the tasks' grants: 1 if all got the same, 1/n if one of n got all.
    pub(crate) jain: Vec<f64>,
    /// For how long a grant was held, on average.
    pub(crate) hold_ms: Vec<f64>,
    /// Tasks that were granted nothing.
    pub(crate) starved: Vec<f64>,
    /// Commands the server did, a release; those that scripts call count.
    pub(crate) commands: Vec<f64>,
    /// Messages published, a release.
    pub(crate) messages: Vec<f64>,
    /// Processor time of the server's, a release.
    pub(crate) server_us: Vec<f64>,
    /// Processor time of all workers, a release.
    pub(crate) client_us: Vec<f64>,
    /// Processors that were busy with neither the server nor a worker.
    pub(crate) others: Vec<f64>,
    /// Of all rounds, in nanoseconds.
    pub(crate) waits: Histogram<u64>,
}

/// Measures every contender in every set-up in every round. Rows by set-up, then in the order of the
/// plan's contenders.
pub(crate) async fn run(plan: &Plan, server: &Server) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &setup in &plan.setups {
        let can = |who: &&Who| setup.processes == 1 || who.spans_processes();
        let here = plan.contenders.iter().filter(can);
        rows.push(here.map(|&who| Row::new(who, setup)).collect::<Vec<_>>());
    }
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for rows in &mut rows {
            for index in order(round, rows.len()) {
                let row = &mut rows[index];
                let slice = slice(row.who, row.setup, plan.timing, server).await;
                let slice = slice
                    .map_err(|error| format!("{} at {}: {error}", row.who.name(), row.setup))?;
                row.add(&slice)?;
            }
        }
    }
    Ok(rows.into_iter().flatten().collect())
}

/// What happened while one contender ran.
struct Slice {
    outcomes: Vec<Outcome>,
    seconds: f64,
    commands_per_s: f64,
    messages_per_s: f64,
    /// Of each second, on average.
    server_us: f64,
    client_us: f64,
    others: f64,
}

/// Runs `who` in separate processes for the warm-up and the measured part, on a key that no other
/// slice uses.
async fn slice(who: Who, setup: Setup, timing: Timing, server: &Server) -> Result<Slice, Failure> {
    let key = format!("hot:{}", monotonic()?);
    let url = server.url.clone();
    let assignment = Assignment {
        who,
        setup,
        url,
        key,
    };
    let assignments = vec![assignment; setup.processes];
    let mut workers: Workers<Outcome> = Workers::start("hot-key", &assignments).await?;
    let clocks = Clocks::of(&[server.pid], &workers.pids())?;
    let window = Window::of(timing)?;
    workers.begin(window).await?;
    sleep_until(window.from).await?;
    let (before, from) = server.read(&clocks).await?;
    sleep_until(window.to).await?;
    let (after, to) = server.read(&clocks).await?;
    let between = (to.at - from.at).as_secs_f64();
    let per_s = |time: Duration| time.as_secs_f64() * 1e6 / between;
    let mut outcomes = workers.outcomes().await?;
    let held = outcomes
        .iter_mut()
        .flat_map(|outcome| std::mem::take(&mut outcome.tenures));
    exclusion::check(held.collect())?;
    Ok(Slice {
        outcomes,
        seconds: window.seconds(),
        commands_per_s: (after.all - before.all) / between,
        messages_per_s: (after.publish - before.publish) / between,
        server_us: per_s(to.server - from.server),
        client_us: per_s(to.client - from.client),
        others: from.others(&to),
    })
}

impl Row {
    fn new(who: Who, setup: Setup) -> Self {
        Self {
            who,
            setup,
            grants_per_s: Vec::new(),
            p99_ms: Vec::new(),
            jain: Vec::new(),
            hold_ms: Vec::new(),
            starved: Vec::new(),
            commands: Vec::new(),
            messages: Vec::new(),
            server_us: Vec::new(),
            client_us: Vec::new(),
            others: Vec::new(),
            waits: new_waits(),
        }
    }

    fn add(&mut self, slice: &Slice) -> Result<(), Failure> {
        let mut waits = new_waits();
        for &(wait, count) in slice.outcomes.iter().flat_map(|outcome| &outcome.waits) {
            waits.record_n(wait, count)?;
        }
        let grants: Vec<u64> = slice
            .outcomes
            .iter()
            .flat_map(|outcome| outcome.grants.iter().copied())
            .collect();
        let all_grants = grants.iter().sum::<u64>() as f64;
        let grants_per_s = all_grants / slice.seconds;
        self.grants_per_s.push(grants_per_s);
        let held: u64 = slice.outcomes.iter().map(|outcome| outcome.held).sum();
        self.hold_ms.push(held as f64 / 1e6 / all_grants);
        self.p99_ms.push(waits.value_at_quantile(0.99) as f64 / 1e6);
        self.jain.push(jain(&grants));
        self.starved
            .push(grants.iter().filter(|&&grants| grants == 0).count() as f64);
        self.commands.push(slice.commands_per_s / grants_per_s);
        self.messages.push(slice.messages_per_s / grants_per_s);
        self.server_us.push(slice.server_us / grants_per_s);
        self.client_us.push(slice.client_us / grants_per_s);
        self.others.push(slice.others);
        Ok(self.waits.add(waits)?)
    }
}

/// How evenly `shares` are shared out: the square of their sum, by their number times the sum of
/// their squares. R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness (1984).
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum.powi(2) / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_1_if_all_got_the_same_and_1_by_n_if_one_got_all() {
        assert_eq!(jain(&[7, 7, 7, 7]), 1.0);
        assert_eq!(jain(&[28, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[1, 3]), 0.8);
    }
}
