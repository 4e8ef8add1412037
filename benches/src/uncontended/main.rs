//! Pairs of acquire and release on distinct keys over one Redis, beside what else could be used.
//!
//! In each round every contender has its turn, in another order each time; a bound counts on the
//! median of the rounds' ratios, and ringfence takes part twice, so that its ratio against itself
//! shows what the machine does to a ratio. Latency is that of a closed loop: tasks do nothing
//! between pairs. All tasks, and the server, share the machine.
//!
//! At few tasks it matters where the scheduler puts the server: beside the client on one processor,
//! or on another that has to be woken for every call. On a virtual machine that is a factor of three,
//! and it changes by the second. `--place` decides it.
//!
//! *Not* measured: contention, waiting, more than one shard or process, networks, persistence,
//! TLS, latency at a given rate of arrivals.
//!
//! Run: `scripts/bench uncontended [--quick]`.

mod contenders;
mod measure;
mod report;

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Parser;
use measure::Plan;
use ringfence_benches::{Failure, Machine, Place, Timing};
use ringfence_coordinator::spawn::RedisServer;

/// Pairs of acquire and release on distinct keys over one Redis of its own, beside what else could
/// be used.
#[derive(Debug, Parser)]
struct Options {
    /// Short slices and few rounds: at most a minute, and less exact.
    #[arg(long)]
    quick: bool,
    /// How many tasks, one key each.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024")]
    tasks: Vec<NonZeroUsize>,
    /// Rounds; bounds want 5 or more. 11 if not said, 5 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only contenders whose names start with one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which processors the server and this process may run on.
    #[arg(long, value_enum, default_value = "free")]
    place: Place,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench/uncontended.json")]
    json: PathBuf,
}

impl Options {
    fn plan(&self) -> Plan {
        let (rounds, timing) = if self.quick {
            (5, Timing::of_ms(40, 220))
        } else {
            (11, Timing::of_ms(100, 550))
        };
        Plan {
            tasks: self.tasks.iter().copied().map(usize::from).collect(),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            timing,
            place: self.place,
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|start| name.starts_with(start))
    }
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let machine = Machine::here();
    options.place.client(machine.cores)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(&options, machine))
}

async fn run(options: &Options, machine: Machine) -> Result<(), Failure> {
    let server = RedisServer::spawn().await?;
    let server_pid = server.pid().ok_or("the server is gone")?;
    options.place.server(server_pid)?;
    let mut contenders = contenders::all(&server.url()).await?;
    contenders.retain(|contender| options.wants(contender.name()));
    let plan = options.plan();
    let results = measure::run(&contenders, &plan, server_pid).await?;
    report::Report::new(machine, &plan, &results).publish(&options.json)
}
