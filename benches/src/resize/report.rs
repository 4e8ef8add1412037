//! What was measured, as a table and as JSON.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{
    measure::{Plan, Round, SHARDS},
    naive::Naive,
};
use crate::{Bound, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    /// Processors busy with neither the servers nor the bench.
    others: Spread,
    parameters: Parameters,
    rows: Vec<Row>,
    /// Held locks that were lost, in all rounds.
    lost: usize,
    /// Slots that moved, and the fewest that had to, in all rounds.
    slots_moved: u32,
    optimum: u32,
    locks_carried: u64,
    naive: Naive,
    bounds: Vec<Bound>,
}

#[derive(Debug, Serialize)]
struct Parameters {
    rounds: usize,
    tasks: usize,
    rate: Option<u32>,
    held: usize,
    lease_ms: u64,
    window_ms: u64,
}

/// There or back.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    seconds: Spread,
    p99_before_ms: Spread,
    p99_at_rest_ms: Spread,
    p99_on_its_way_ms: Spread,
    rate_before: Spread,
    rate_during: Spread,
    /// In a second.
    least_before: Spread,
    least_during: Spread,
}

impl Report {
    pub(crate) fn new(machine: Machine, plan: &Plan, rounds: &[Round], naive: Naive) -> Self {
        let bounds = [("3 to 4", 0), ("4 to 3", 1)]
            .into_iter()
            .flat_map(|(what, way)| bounds(what, way, rounds));
        let both = |pick: fn(&Round) -> [u32; 2]| rounds.iter().flat_map(pick).sum();
        Self {
            bench: "resize",
            machine,
            others: Spread::of(rounds.iter().map(|round| round.others)),
            parameters: Parameters {
                rounds: plan.rounds,
                tasks: plan.tasks,
                rate: plan.rate,
                held: plan.held,
                lease_ms: plan.lease.as_millis() as u64,
                window_ms: plan.window.as_millis() as u64,
            },
            rows: vec![Row::of("3 to 4", 0, rounds), Row::of("4 to 3", 1, rounds)],
            lost: rounds.iter().map(|round| round.lost).sum(),
            slots_moved: both(|round| round.resized.each_ref().map(|resized| resized.slots_moved)),
            optimum: both(|round| round.optimum),
            locks_carried: (rounds.iter().flat_map(|round| &round.resized))
                .map(|resized| resized.locks_carried)
                .sum(),
            naive,
            bounds: bounds.collect(),
        }
    }

    /// Prints it, and writes it.
    pub(crate) fn publish(&self, common: &Common) -> Result<(), Failure> {
        let Parameters {
            rounds,
            tasks,
            rate,
            held,
            lease_ms,
            ..
        } = self.parameters;
        let rate = rate.map_or("as fast as they can".into(), |rate| {
            format!("{rate} times a second")
        });
        println!("{}", self.machine);
        println!(
            "{SHARDS} shards and one that joins and leaves; {held} locks held for {lease_ms} ms at a time, \
             {tasks} tasks that take and give back others, {rate}"
        );
        println!("{rounds} rounds, there and back; median (min … max) of them");
        println!("other work on the machine: {:.1} processors\n", self.others);
        let head = [
            "",
            "seconds",
            "p99 ms before",
            "at rest",
            "on its way",
            "acquires/s before",
            "during",
            "least before",
            "during",
        ];
        print_table(&head, &self.rows.iter().map(Row::cells).collect::<Vec<_>>());
        let Self {
            lost,
            slots_moved,
            optimum,
            locks_carried,
            naive,
            ..
        } = self;
        println!("\nheld locks lost: {lost}");
        println!(
            "slots moved: {slots_moved}, of {optimum} that had to; locks carried: {locks_carried}"
        );
        println!(
            "a map that is only changed: of {} locks held, {} were granted to somebody else too\n",
            naive.held, naive.held_twice
        );
        print_bounds(&self.bounds, rounds, self.others);
        common.write(self.bench, self)?;
        if *lost > 0 || slots_moved != optimum {
            return Err("a lock was lost, or more slots moved than had to".into());
        }
        Ok(())
    }
}

fn bounds(what: &str, way: usize, rounds: &[Round]) -> Vec<Bound> {
    let before = values(rounds, |round| p99(&round.before[way].at_rest));
    // What two windows at rest differ by.
    let same = Spread::of_ratios(
        &values(rounds, |round| p99(&round.before[1].at_rest)),
        &values(rounds, |round| p99(&round.before[0].at_rest)),
    );
    let ratio = |pick: fn(&Round, usize) -> f64, below: &[f64]| {
        let above: Vec<f64> = rounds.iter().map(|round| pick(round, way)).collect();
        Spread::of_ratios(&above, below)
    };
    let rates = values(rounds, |round| round.before[way].rate());
    let same_rate = Spread::of_ratios(
        &values(rounds, |round| round.before[1].least()),
        &values(rounds, |round| round.before[0].rate()),
    );
    let least = values(rounds, |round| round.before[way].least());
    let same_least = Spread::of_ratios(
        &values(rounds, |round| round.before[1].least()),
        &values(rounds, |round| round.before[0].least()),
    );
    vec![
        Bound::new(
            format!("{what}: acquire p99, slots on their way / before"),
            Limit::AtMost(2.0),
            ratio(|round, way| p99(&round.during[way].on_its_way), &before),
            Some(same),
        ),
        Bound::new(
            format!("{what}: acquire p99, slots at rest / before"),
            Limit::AtMost(1.2),
            ratio(|round, way| p99(&round.during[way].at_rest), &before),
            Some(same),
        ),
        Bound::new(
            format!("{what}: the least in a second / before"),
            Limit::AtLeast(0.8),
            ratio(|round, way| round.during[way].least(), &rates),
            Some(same_rate),
        ),
        Bound::new(
            format!("{what}: the least in a second / the least before"),
            Limit::AtLeast(0.8),
            ratio(|round, way| round.during[way].least(), &least),
            Some(same_least),
        ),
    ]
}

impl Row {
    fn of(what: &'static str, way: usize, rounds: &[Round]) -> Self {
        let spread = |pick: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(pick));
        Self {
            what,
            seconds: spread(&|round| round.during[way].length.as_secs_f64()),
            p99_before_ms: spread(&|round| p99(&round.before[way].at_rest)),
            p99_at_rest_ms: spread(&|round| p99(&round.during[way].at_rest)),
            p99_on_its_way_ms: spread(&|round| p99(&round.during[way].on_its_way)),
            rate_before: spread(&|round| round.before[way].rate()),
            rate_during: spread(&|round| round.during[way].rate()),
            least_before: spread(&|round| round.before[way].least()),
            least_during: spread(&|round| round.during[way].least()),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.what.to_owned(),
            format!("{:.1}", self.seconds),
            format!("{:.2}", self.p99_before_ms),
            format!("{:.2}", self.p99_at_rest_ms),
            format!("{:.2}", self.p99_on_its_way_ms),
            format!("{:.0}", self.rate_before),
            format!("{:.0}", self.rate_during),
            format!("{:.0}", self.least_before),
            format!("{:.0}", self.least_during),
        ]
    }
}

/// In milliseconds.
fn p99(latencies: &Histogram<u64>) -> f64 {
    latencies.value_at_quantile(0.99) as f64 / 1e6
}

fn values(rounds: &[Round], pick: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(pick).collect()
}
