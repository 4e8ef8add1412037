//! The cost of a resize for the clients that keep using the ring.
//!
//! Locks are held and renewed, as many as are asked for; tasks take and give back other locks as fast as they
//! can; and meanwhile a fourth Redis server joins three, and leaves again. In each round: the acquires of the
//! time before, of those while slots move, apart for slots on their way and for all others; and the least
//! that was done in any second, against what was done before, and against the least of as many seconds before:
//! at rest the machine, too, has seconds in which it does less.
//!
//! Two windows at rest, before and between, show what the machine does to such a ratio.
//!
//! Beside it, what a library does that only changes its map: the same locks, plainly taken at their shard by a
//! map of three, then asked for by a map of four. A grant of a held lock is a second holder.
//!
//! *Not* measured: several processes, networks, waiting for a held lock.
//!
//! Run: `scripts/bench resize [--quick]`.

mod held;
mod load;
mod measure;
mod naive;
mod report;

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use measure::Plan;
use ringfence_benches::{Failure, Machine};

/// The cost of a resize for the clients that keep using the ring.
#[derive(Debug, Parser)]
struct Options {
    /// Fewer locks and short leases: about eleven minutes, and less exact.
    #[arg(long)]
    quick: bool,
    /// Resizes there and back. 5 if not said; bounds want 5 or more.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Tasks that take and give back locks.
    #[arg(long, default_value_t = 16)]
    tasks: usize,
    /// Acquires a second, of all tasks together; as fast as they can if not said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Locks held: 100,000 if not said, 10,000 with --quick.
    #[arg(long)]
    held: Option<usize>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench/resize.json")]
    json: PathBuf,
}

impl Options {
    fn plan(&self) -> Plan {
        let (held, lease_s, window_s) = if self.quick {
            (10_000, 6, 30)
        } else {
            (100_000, 30, 90)
        };
        Plan {
            rounds: self.rounds.max(1),
            tasks: self.tasks,
            rate: self.rate,
            held: self.held.unwrap_or(held),
            lease: Duration::from_secs(lease_s),
            window: Duration::from_secs(window_s),
        }
    }
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let machine = Machine::here();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let plan = options.plan();
    let (rounds, naive) = runtime.block_on(measure::run(&plan))?;
    report::Report::new(machine, &plan, &rounds, naive).publish(&options.json)
}
