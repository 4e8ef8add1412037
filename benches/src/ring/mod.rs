//! Key to shard: how long a lookup takes, how evenly keys fall, how many move when a shard comes.
//!
//! Three contenders at each number of shards: our table (`quota`), and the hashring crate, a classic ring, with one point a
//! shard as it comes (`hashring`), and with a hundred (`hashring-100`). Each is timed in turn, in
//! slices, in every round. `lookup` starts from the key's hash; for the hashring crate that means a
//! hasher that hands it on. `with hash` starts from namespace and key; there the hashring crate has
//! its own SipHash.
//!
//! max/mean and moves are counted over the same sample of hashes for all: at a thousand shards
//! chance alone makes max/mean 1.03. `slots` is exact, and ours alone. `moved` is the part of the
//! sample that changes its shard as one more comes, over the part that one is due, 1 / (n + 1):
//! below 1 the newcomer gets less than its share. `plan` is the moves of our plan, over the fewest
//! that reach the same numbers of slots.
//!
//! *Not* measured: cold caches, making a table, weights.
//!
//! Run: `scripts/bench ring`.

mod contenders;

use std::{hint::black_box, num::NonZeroUsize};

use clap::Args;
use contenders::{Contender, Lookup};
use ringfence_ring::key_hash;
use serde::Serialize;

use crate::{Common, Effort, Failure, Machine, Spread, given_or, now, print_table};

/// What a lookup may take at a hundred shards.
const BOUND: (usize, f64) = (100, 5.0);

/// Hashes looked up in turn while timing: 512 KiB of them, read in order.
const TIMED_KEYS: usize = 1 << 16;

/// Key to shard: time of a lookup, evenness, moves.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many shards: 3,10,100,1000 if not said.
    #[arg(long, value_delimiter = ',')]
    shards: Vec<NonZeroUsize>,
    /// How often each contender is timed: 9 times if not said, 3 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// Hashes that max/mean and moves are counted over: 10,000,000 if not said, a tenth of them with --quick.
    #[arg(long)]
    sample: Option<u64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    machine: Machine,
    rounds: usize,
    sample: u64,
    rows: Vec<Row>,
}

/// One contender at one number of shards.
#[derive(Debug, Serialize)]
struct Row {
    contender: &'static str,
    shards: usize,
    lookup_ns: Spread,
    with_hash_ns: Spread,
    max_over_mean: f64,
    slots_max_over_mean: Option<f64>,
    moved_over_due: f64,
    plan_over_optimum: Option<f64>,
}

pub(crate) fn main(options: &Options) -> Result<(), Failure> {
    let (rounds, sample, keys, shards) = match options.common.effort() {
        Effort::Full => (9, 10_000_000, TIMED_KEYS, &[3, 10, 100, 1000][..]),
        Effort::Quick => (3, 1_000_000, TIMED_KEYS, &[3, 10, 100, 1000][..]),
        Effort::Smoke => (1, 10_000, 256, &[3, 10][..]),
    };
    let rounds = options.rounds.unwrap_or(rounds).max(1);
    let sample = options.sample.unwrap_or(sample);
    let keys = Keys::new(keys);
    let given: Vec<usize> = options.shards.iter().map(|shards| shards.get()).collect();
    let mut rows = Vec::new();
    for shards in given_or(&given, shards) {
        eprintln!("{shards} shards");
        let contenders = contenders::all(shards)?;
        let times = times(&contenders, &keys, rounds);
        let counted = contenders.iter().zip(times);
        rows.extend(counted.map(|(contender, (lookup_ns, with_hash_ns))| Row {
            contender: contender.name,
            shards,
            lookup_ns,
            with_hash_ns,
            max_over_mean: max_over_mean(&*contender.lookup, shards, sample),
            slots_max_over_mean: contender.slots_max_over_mean,
            moved_over_due: moved_over_due(contender, shards, sample),
            plan_over_optimum: contender.plan_over_optimum,
        }));
    }
    let report = Report {
        bench: "ring",
        machine: Machine::here(),
        rounds,
        sample,
        rows,
    };
    report.print();
    options.common.write(report.bench, &report)
}

/// Keys to time with, and their hashes.
struct Keys {
    keys: Vec<Vec<u8>>,
    hashes: Vec<u64>,
}

impl Keys {
    fn new(count: usize) -> Self {
        let keys: Vec<Vec<u8>> = (0..count)
            .map(|number| format!("order/{number}").into_bytes())
            .collect();
        Self {
            hashes: keys.iter().map(|key| key_hash("default", key)).collect(),
            keys,
        }
    }
}

/// Nanoseconds a lookup: from the hash, and from the key. The contenders in turn, every round.
fn times(contenders: &[Contender], keys: &Keys, rounds: usize) -> Vec<(Spread, Spread)> {
    let mut times = vec![(Vec::new(), Vec::new()); contenders.len()];
    for round in 0..rounds {
        for step in 0..contenders.len() {
            let index = (round + step) % contenders.len();
            let lookup = &*contenders[index].lookup;
            times[index]
                .0
                .push(ns_each(keys, || lookup.hashes(&keys.hashes)));
            times[index]
                .1
                .push(ns_each(keys, || lookup.keys(&keys.keys)));
        }
    }
    times
        .into_iter()
        .map(|(lookup, with_hash)| (Spread::of(lookup), Spread::of(with_hash)))
        .collect()
}

/// Nanoseconds of one of the lookups of all `keys`, which `all` does. Once before, untimed.
fn ns_each(keys: &Keys, all: impl Fn() -> usize) -> f64 {
    const TIMES: usize = 20;
    black_box(all());
    let start = now();
    for _ in 0..TIMES {
        black_box(all());
    }
    start.elapsed().as_secs_f64() * 1e9 / (TIMES * keys.keys.len()) as f64
}

/// `sample` hashes, well spread and always the same (SplitMix64).
fn sample_hashes(sample: u64) -> impl Iterator<Item = u64> {
    (1..=sample).map(|number| {
        let mut hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    })
}

fn max_over_mean(lookup: &dyn Lookup, shards: usize, sample: u64) -> f64 {
    let mut counts = vec![0u64; shards];
    sample_hashes(sample).for_each(|hash| counts[lookup.shard(hash)] += 1);
    let most = counts.iter().max().copied().unwrap_or(0);
    most as f64 * shards as f64 / sample as f64
}

/// Moved as one more shard comes, over what that one is due.
fn moved_over_due(contender: &Contender, shards: usize, sample: u64) -> f64 {
    let moves = |hash: &u64| contender.lookup.shard(*hash) != contender.with_one_more.shard(*hash);
    let moved = sample_hashes(sample).filter(moves).count();
    moved as f64 * (shards + 1) as f64 / sample as f64
}

impl Report {
    fn print(&self) {
        println!("{}", self.machine);
        println!(
            "median (min … max) of {} rounds; {} sampled hashes\n",
            self.rounds, self.sample
        );
        let head = [
            "shards",
            "",
            "lookup ns",
            "with hash ns",
            "max/mean",
            "slots",
            "moved",
            "plan",
        ];
        let exact =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
        let cells = self.rows.iter().map(|row| {
            vec![
                row.shards.to_string(),
                row.contender.to_owned(),
                format!("{:.1}", row.lookup_ns),
                format!("{:.1}", row.with_hash_ns),
                format!("{:.3}", row.max_over_mean),
                exact(row.slots_max_over_mean),
                format!("{:.3}", row.moved_over_due),
                exact(row.plan_over_optimum),
            ]
        });
        print_table(&head, &cells.collect::<Vec<_>>());
        println!();
        self.print_bound();
    }

    fn print_bound(&self) {
        let (shards, at_most) = BOUND;
        let ours = self
            .rows
            .iter()
            .find(|row| row.contender == "quota" && row.shards == shards);
        if let Some(Row { lookup_ns, .. }) = ours {
            let verdict = if lookup_ns.median <= at_most {
                "reached"
            } else {
                "NOT REACHED"
            };
            println!("at {shards} shards at most {at_most} ns a lookup: {lookup_ns:.1}, {verdict}");
        }
    }
}
