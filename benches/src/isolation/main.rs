//! What a stopped shard costs everybody else.
//!
//! One client, three Redis servers of its own. Tasks take and give back locks on keys of each shard, on a
//! schedule; some hundreds of other locks are held and renewed. In each round two windows follow one
//! another, and in every second round one server is stopped (SIGSTOP) between them: the p99 of the *others'*
//! keys while it is stopped, against that of just before. The rounds between, in which nothing is
//! stopped, show what the machine does to such a ratio.
//!
//! Nothing is omitted: a pair counts from when it was due, not from when its task got to it, and in
//! the window in which it was due, however late it is done. A shard's tasks have only its keys.
//!
//! *Not* measured: throughput (see `uncontended`), several processes, networks, waiting for a held lock.
//!
//! Run: `scripts/bench isolation [--quick]`.

mod load;
mod measure;
mod renewals;
mod report;

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use measure::Plan;
use ringfence_benches::{Failure, Machine};

/// What a stopped shard costs the locks of the others.
#[derive(Debug, Parser)]
struct Options {
    /// Short windows and few rounds: less than a minute, and less exact.
    #[arg(long)]
    quick: bool,
    /// Pairs of windows with a stop, and as many without. 9 if not said, 5 with --quick; bounds want
    /// 5 or more.
    #[arg(long)]
    rounds: Option<usize>,
    /// Tasks for each shard; each takes and gives back a lock of its own 100 times a second.
    #[arg(long, default_value_t = 8)]
    tasks: usize,
    /// Locks held on each shard.
    #[arg(long, default_value_t = 150)]
    held: usize,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench/isolation.json")]
    json: PathBuf,
}

impl Options {
    fn plan(&self) -> Plan {
        let (rounds, window_ms) = if self.quick { (5, 1500) } else { (9, 3000) };
        Plan {
            rounds: self.rounds.unwrap_or(rounds).max(1),
            window: Duration::from_millis(window_ms),
            tasks: self.tasks,
            held: self.held,
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
    let rounds = runtime.block_on(measure::run(&plan))?;
    report::Report::new(machine, &plan, &rounds).publish(&options.json)
}
